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

/* A part that scrolls, and so must be reached by keyboard. */
export function scrolling(title, className, ...children) {
  const made = make("div", { className, tabIndex: 0 }, ...children);
  made.setAttribute("role", "group");
  made.setAttribute("aria-label", title);
  made.dataset.keep = title;
  return made;
}

/* A table that is folded away; it stays open or closed when its panel is drawn again. */
export function folded(panel, title, ...children) {
  const before = [...panel.querySelectorAll("details")].find((one) => one.dataset.title === title);
  const summary = make("summary", {}, title);
  summary.dataset.keep = `fold ${title}`;
  const inside = scrolling(title, "scroll", ...children);
  const made = make("details", { open: before ? before.open : false }, summary, inside);
  made.dataset.title = title;
  return made;
}

/* Put new content into a panel; what had the focus or was scrolled still has and is. */
export function refill(panel, children) {
  const kept = new Map([...panel.querySelectorAll("[data-keep]")].map((one) => [one.dataset.keep, one]));
  const places = new Map([...kept].map(([key, one]) => [key, [one.scrollLeft, one.scrollTop]]));
  const focused = panel.contains(document.activeElement) ? document.activeElement.dataset.keep : undefined;
  panel.replaceChildren(...children);
  for (const one of panel.querySelectorAll("[data-keep]")) {
    const place = places.get(one.dataset.keep);
    if (place) [one.scrollLeft, one.scrollTop] = place;
    if (one.dataset.keep === focused) one.focus({ preventScroll: true });
  }
}

export function short(value) {
  if (value === null) return "none";
  return typeof value === "string" ? value : String(Number(value.toPrecision(4)));
}

export function tenTo(exponent) {
  if (exponent === null) return "none";
  if (exponent < 15) return Math.round(10 ** exponent).toLocaleString("en");
  const whole = Math.floor(exponent);
  return `${(10 ** (exponent - whole)).toFixed(2)}e${whole}`;
}

export function counted(number) {
  return `${number.toLocaleString("en")} token${number === 1 ? "" : "s"}`;
}

/* The positions that get most of any head's weight, in order. */
export function heaviest(heads, most) {
  const largest = heads[0].weights.map((_, index) => Math.max(...heads.map((head) => head.weights[index])));
  const places = largest.map((_, index) => index);
  if (places.length <= most) return places;
  return places.sort((a, b) => largest[b] - largest[a] || b - a).slice(0, most).sort((a, b) => a - b);
}
