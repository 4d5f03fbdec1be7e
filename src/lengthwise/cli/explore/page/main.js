import { attentionBars, attentionMap, boundChart, histogram } from "/charts.js";
import { folded, heaviest, make, short, table, tenTo } from "/tables.js";

const PAUSE = 150;
const MOST_ROWS = 100;

const $ = (id) => document.getElementById(id);
const input = $("input");
const state = { construction: "", values: {}, texts: {}, answers: {} };
let known;

const panels = {
  bound: { show: showBound, reads: false },
  simulation: { show: showSimulation, reads: true },
  attention: { show: showAttention, reads: true },
};

function parameters() {
  return known.constructions[state.construction].parameters;
}

function values() {
  return state.values[state.construction];
}

function buildConstructions() {
  for (const [name, one] of Object.entries(known.constructions)) {
    const radio = make("input", { type: "radio", name: "construction", value: name });
    radio.addEventListener("change", () => choose(name));
    $("constructions").append(make("label", {}, radio, one.title));
    state.values[name] = Object.fromEntries(one.parameters.map((each) => [each.name, each.default]));
    state.texts[name] = one.example;
  }
}

function choose(name) {
  state.construction = name;
  document.querySelector(`input[name=construction][value=${name}]`).checked = true;
  $("about").textContent = known.constructions[name].about;
  $("parameters").replaceChildren(...parameters().map(slider));
  input.value = state.texts[name];
  bindResidue();
  tellInput();
  refresh(Object.keys(panels));
}

function slider(control) {
  const id = `parameter-${control.name}`;
  const scale = control.logarithmic ? Math.log10 : Number;
  const range = make("input", { type: "range", id });
  range.min = scale(control.low);
  range.max = scale(control.high);
  range.step = control.step;
  range.value = scale(values()[control.name]);
  range.setAttribute("aria-describedby", `${id}-help`);
  const shown = make("output", { htmlFor: id });
  shown.setAttribute("aria-live", "off");
  const tell = () => {
    shown.textContent = short(values()[control.name]);
    range.setAttribute("aria-valuetext", shown.textContent);
  };
  range.addEventListener("input", () => {
    const moved = control.logarithmic ? Number((10 ** range.value).toPrecision(4)) : Number(range.value);
    values()[control.name] = Math.min(control.high, Math.max(control.low, moved));
    tell();
    if (control.name === "period") bindResidue();
    if (control.name === "vocabulary") tellInput();
    refresh(control.name === "tolerance" ? ["bound", "simulation"] : Object.keys(panels));
  });
  tell();
  return make(
    "div",
    { className: "parameter" },
    make("label", { htmlFor: id }, control.label),
    shown,
    range,
    make("p", { className: "quiet", id: `${id}-help` }, control.help),
  );
}

function bindResidue() {
  const residue = $("parameter-residue");
  if (!residue) return;
  residue.max = values().period - 1;
  residue.disabled = values().period === 1;
  if (values().residue >= values().period) {
    residue.value = values().period - 1;
    residue.dispatchEvent(new Event("input"));
  }
}

function tellInput() {
  const last = (values().vocabulary || 2) - 1;
  $("input-help").textContent =
    `Tokens 0 to ${last}, as digits; (01)^20 is 01 twenty times. At most ${known.longest_input} tokens.`;
}

function refresh(names) {
  for (const name of names) {
    const panel = panels[name];
    $(name).classList.add("waiting");
    clearTimeout(panel.timer);
    panel.stale = true;
    panel.timer = setTimeout(() => panel.asking || ask(name), PAUSE);
  }
}

async function ask(name) {
  const panel = panels[name];
  panel.stale = false;
  panel.asking = true;
  const given = { construction: state.construction, ...values() };
  if (panel.reads) given.input = input.value;
  try {
    const reply = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(given),
    });
    const answer = await reply.json();
    trouble("");
    if (!panel.stale) settle(name, reply.ok ? answer : null, answer.error);
  } catch {
    trouble("The server does not answer: start lengthwise explore again, then move something.");
  } finally {
    panel.asking = false;
    if (panel.stale) ask(name);
  }
}

function settle(name, answer, error) {
  const section = $(name);
  const status = section.querySelector(".status");
  section.classList.remove("waiting");
  status.textContent = answer ? answer.sentence : error;
  status.classList.toggle("error", !answer);
  state.answers[name] = answer;
  if (panels[name].reads) input.setAttribute("aria-invalid", String(!answer));
  display(name);
}

function display(name) {
  const content = $(name).querySelector(".content");
  const answer = state.answers[name];
  content.replaceChildren(...(answer ? panels[name].show(answer, content) : []));
}

function trouble(sentence) {
  $("trouble").textContent = sentence;
  $("trouble").hidden = !sentence;
}

function legend(first, second) {
  const key = (other) => make("span", { className: other ? "key other" : "key" });
  return make("figcaption", {}, key(false), first, key(true), second);
}

function big(title, value, below) {
  return make(
    "div",
    {},
    make("h3", {}, title),
    make("div", { className: "number" }, value),
    make("p", { className: "quiet" }, below),
  );
}

function showBound(answer, content) {
  const order = answer.order;
  const curve = answer.curve.map((one) => [
    short(one.tolerance),
    tenTo(one.log10_length),
    one.log10_order === null ? "-" : tenTo(one.log10_order),
  ]);
  const grown = answer.growth.map((one) => [`longer if ${one.if}`, one.times]);
  const rows = (list) => list.map((one) => [one.name, one.words]);
  const numbers = make("div", { className: "pair" }, big("certified length", answer.length_words, answer.theorem));
  if (order) numbers.append(big(order.label, order.length_words, `${order.theorem}. ${order.words}`));
  return [
    numbers,
    make("figure", {}, boundChart(answer, content.clientWidth), legend("certified", "of this order (paper)")),
    table(`Terms: ${answer.terms_are}`, ["term", "value"], rows(answer.terms)),
    folded(content, "Bound against tolerance, as a table", table("Lengths", ["tolerance", "certified", "order"], curve)),
    folded(
      content,
      "What the theorem took in, and what would make it longer",
      table("Constants of the model", ["constant", "value"], rows(answer.parameters)),
      ...(grown.length ? [table("Growth", ["change", "length"], grown)] : []),
    ),
  ];
}

function showSimulation(answer, content) {
  const string = (name, one) =>
    make(
      "div",
      {},
      make("h3", {}, `${name}, ${one.length.toLocaleString("en")} tokens`),
      tokens(name, one.text),
      make("p", { className: "quiet" }, `output ${one.output_words}`),
    );
  const rows = answer.types.map((type, index) => [
    type,
    ...[answer.x, answer.z].flatMap((one) => [String(one.counts[index]), `${(100 * one.shares[index]).toFixed(1)}%`]),
  ]);
  const headings = [answer.types_are, "in x", "share of x", "in z", "share of z"];
  const errors = [
    ["measured", answer.error_words],
    [`guaranteed (${answer.guarantee})`, answer.guaranteed_words],
    ["tolerance", short(answer.tolerance)],
  ];
  return [
    make("div", { className: "pair" }, string("x", answer.x), string("z", answer.z)),
    make("figure", {}, histogram(answer, content.clientWidth), legend("x", "z")),
    table(`Difference of the outputs on x and on z, method ${answer.method}`, ["error", "value"], errors),
    folded(content, "Histograms, as a table", table("How often each type occurs", headings, rows)),
  ];
}

function tokens(name, text) {
  const made = make("div", { className: "tokens", tabIndex: 0 }, text);
  made.setAttribute("role", "group");
  made.setAttribute("aria-label", `tokens of ${name}`);
  return made;
}

function showAttention(answer, content) {
  const named = (head) => `layer ${head.layer}, head ${head.head}`;
  const figures = answer.heads.map((head) =>
    make(
      "figure",
      {},
      make("figcaption", {}, named(head) + (head.regime ? ` (${head.regime})` : "")),
      attentionBars(answer.tokens, head, content.clientWidth, named(head)),
    ),
  );
  const maps = answer.heads
    .filter((head) => head.map)
    .map((head) =>
      make(
        "figure",
        {},
        make("figcaption", {}, `${named(head)}, every query (row)`),
        attentionMap(answer.tokens, head, content.clientWidth, named(head)),
      ),
    );
  const places = heaviest(answer.heads, MOST_ROWS);
  const which = places.length < answer.tokens.length ? `, the ${MOST_ROWS} positions with most` : "";
  const rows = places.map((place) => [
    String(place + 1),
    String(answer.tokens[place]),
    ...answer.heads.map((head) => short(head.weights[place])),
  ]);
  const weights = table(`Weights of the last position${which}`, ["position", "token", ...answer.heads.map(named)], rows);
  return [...figures, make("div", { className: "pair" }, ...maps), folded(content, "Attention, as a table", weights)];
}

async function start() {
  try {
    known = await (await fetch("/api/controls")).json();
  } catch {
    trouble("The server does not answer: start lengthwise explore again, then load this page.");
    return;
  }
  input.maxLength = known.longest_text;
  input.addEventListener("input", () => {
    state.texts[state.construction] = input.value;
    refresh(["simulation", "attention"]);
  });
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  buildConstructions();
  choose("modp");
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    Object.keys(panels).forEach(display);
  });
}

start();
