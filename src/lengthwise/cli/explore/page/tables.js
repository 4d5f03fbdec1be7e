export function make(name, properties = {}, ...children) {
  const made = document.createElement(name);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

export function table(caption, headings, rows) {
  const cell = (text, index) => (index ? make("td", {}, text) : make("th", { scope: "row" }, text));
  return make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...headings.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))),
  );
}

/* A table that is folded away; it stays open or closed when its panel is drawn again. */
export function folded(panel, title, ...children) {
  const before = [...panel.querySelectorAll("details")].find((one) => one.dataset.title === title);
  const scroll = make("div", { className: "scroll", tabIndex: 0 }, ...children);
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", title);
  const made = make("details", { open: before ? before.open : false }, make("summary", {}, title), scroll);
  made.dataset.title = title;
  return made;
}

export function short(value) {
  return value === null ? "infinite" : String(Number(value.toPrecision(4)));
}

export function tenTo(exponent) {
  if (exponent === null) return "infinite";
  if (exponent < 15) return Math.round(10 ** exponent).toLocaleString("en");
  const whole = Math.floor(exponent);
  return `${(10 ** (exponent - whole)).toFixed(2)}e${whole}`;
}

/* The positions that get most of any head's weight, in order. */
export function heaviest(heads, most) {
  const largest = heads[0].weights.map((_, index) => Math.max(...heads.map((head) => head.weights[index])));
  const places = largest.map((_, index) => index);
  if (places.length <= most) return places;
  return places.sort((a, b) => largest[b] - largest[a] || b - a).slice(0, most).sort((a, b) => a - b);
}
