"use strict";

/* The table of every run: sorted by a heading, filtered by typing. */
const ROWS = 200;

/* A name of several words as one word. */
function oneWord(name) {
  return name.toLowerCase().replaceAll(" ", "_");
}

class RunsTable {
  constructor(box, { headings, rows }) {
    this.headings = headings;
    this.rows = rows.map((cells) => ({
      cells,
      texts: cells.map((cell) => (Array.isArray(cell) ? cell[0] : cell)),
    }));
    this.shown = this.rows;
    this.sorting = { column: -1, down: false };
    this.limit = ROWS;
    this.head = box.querySelector("thead");
    this.body = box.querySelector("tbody");
    this.status = box.querySelector(".status");
    this.more = box.querySelector(".more");
    this.names = this.namesOfSeveralWords();
    this.numeric = headings.map((_, column) => rows.some((cells) => Array.isArray(cells[column])));
    this.head.append(make("tr", {}, ...headings.map((heading, column) => this.heading(heading, column))));
    this.more.addEventListener("click", () => {
      this.limit += ROWS;
      this.draw();
    });
    box.querySelector("input").addEventListener("input", (event) => this.filter(event.target.value));
    this.filter("");
  }

  heading(words, column) {
    const button = make("button", { type: "button" }, words);
    const made = make("th", { scope: "col" }, button);
    button.addEventListener("click", () => {
      const again = this.sorting.column === column;
      this.sorting = { column, down: again && !this.sorting.down };
      [...this.head.rows[0].cells].forEach((cell) => cell.removeAttribute("aria-sort"));
      made.setAttribute("aria-sort", this.sorting.down ? "descending" : "ascending");
      this.sort();
      this.draw();
    });
    return made;
  }

  /* Of headings, as "trained at", and inside of settings, as "learning rate = 0.001"; longer ones first. */
  namesOfSeveralWords() {
    const column = this.headings.indexOf("setting");
    const settings = new Set(column < 0 ? [] : this.rows.map((row) => row.texts[column]));
    const inside = [...settings].flatMap((one) => one.split(", ")).map((part) => part.split(" = ")[0]);
    const names = [...new Set([...this.headings, ...inside])].map((name) => name.toLowerCase());
    return names.filter((name) => name.includes(" ")).sort((a, b) => b.length - a.length);
  }

  filter(text) {
    let asked = text.toLowerCase().replace(/\s*=\s*/g, "=").replace(/\s+/g, " ");
    for (const name of this.names) asked = asked.replaceAll(`${name}=`, `${oneWord(name)}=`);
    const words = asked.split(" ").filter(Boolean);
    const tests = words.map((word) => this.test(word));
    this.shown = this.rows.filter((row) => tests.every((test) => test(row)));
    this.limit = ROWS;
    this.sort();
    this.draw();
  }

  /* name=value asks the column of that name, or a part of a setting; a number, whole numeric cells; a word,
     parts of the other ones. */
  test(word) {
    const [name, ...value] = word.split("=");
    if (value.length) {
      const columns = [...this.headings.keys()].filter((at) => oneWord(this.headings[at]) === name);
      if (columns.length) return (row) => columns.some((at) => this.matches(row, at, value.join("=")));
      const parts = (text) => text.split(", ").map((part) => oneWord(part.replaceAll(" = ", "=")));
      return (row) => row.texts.some((text) => parts(text).some((part) => part === word || part.startsWith(`${word}_`)));
    }
    return (row) => row.texts.some((_, at) => this.matches(row, at, word));
  }

  matches(row, column, word) {
    const text = row.texts[column].toLowerCase();
    if (this.headings[column] === "run") return text.startsWith(word) && word.length > 3;
    return this.numeric[column] ? text === word : text.includes(word);
  }

  sort() {
    const { column, down } = this.sorting;
    if (column < 0) return;
    const key = (row) => (Array.isArray(row.cells[column]) ? row.cells[column][1] ?? Infinity : row.cells[column]);
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const natural = (a, b) => a.localeCompare(b, "en", { numeric: true });
    const compare = this.numeric[column] ? order : natural;
    this.shown = [...this.shown].sort((a, b) => (down ? -1 : 1) * compare(key(a), key(b)));
  }

  draw() {
    const some = this.shown.slice(0, this.limit);
    this.body.replaceChildren(
      ...some.map((row) => {
        const cells = row.texts.map((text, column) =>
          column ? make("td", { className: this.numeric[column] ? "number" : "" }, text) : make("th", { scope: "row" }, text),
        );
        return make("tr", { className: row.texts.includes("diverged") ? "diverged" : "" }, ...cells);
      }),
    );
    const count = (rows) => rows.length.toLocaleString("en");
    const part = some.length < this.shown.length ? `; the first ${count(some)} are shown` : "";
    this.status.textContent = `${count(this.shown)} of ${count(this.rows)} runs${part}`;
    this.more.hidden = some.length >= this.shown.length;
  }
}
