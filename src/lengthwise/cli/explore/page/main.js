import { read, written } from "/address.js";
import { showAttention, showBound, showSimulation } from "/panels.js";
import { make, refill, short } from "/tables.js";

const PAUSE = 80; // milliseconds between a movement and the question
const TYPING = 600; // before a mistake is told of an input that may not be finished
const SLOW = 400; // before the page says that it is computing
const QUIET = 1000; // of rest before a screen reader is told
const PATIENCE = 30000; // before an answer is given up
const REMEMBERED = 150; // answers

const $ = (id) => document.getElementById(id);
const input = $("input");
const state = { construction: "", values: {}, texts: {}, answers: {} };
const answered = new Map();
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

function begin() {
  for (const [name, one] of Object.entries(known.constructions)) {
    state.values[name] = Object.fromEntries(one.parameters.map((each) => [each.name, each.default]));
    state.texts[name] = one.example;
  }
}

function buildConstructions() {
  for (const [name, one] of Object.entries(known.constructions)) {
    const radio = make("input", { type: "radio", name: "construction", value: name });
    radio.addEventListener("change", () => choose(name));
    $("constructions").append(make("label", {}, radio, one.title));
  }
}

function choose(name) {
  state.construction = name;
  document.querySelector(`input[name=construction][value=${name}]`).checked = true;
  $("about").textContent = `${known.constructions[name].title}: ${known.constructions[name].about}`;
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
  range.step = control.logarithmic ? "any" : control.step;
  const given = values()[control.name];
  range.value = scale(given === known.infinite ? control.default : given);
  range.setAttribute("aria-describedby", `${id}-help`);
  const shown = make("output", { htmlFor: id });
  shown.setAttribute("aria-live", "off");
  const tell = () => {
    shown.textContent = short(values()[control.name]);
    range.setAttribute("aria-valuetext", shown.textContent);
  };
  const moved = () => {
    const value = control.logarithmic ? Number((10 ** range.value).toPrecision(3)) : Number(range.value);
    values()[control.name] = Math.min(control.high, Math.max(control.low, value));
    change(control, tell);
  };
  range.addEventListener("input", moved);
  if (control.logarithmic) {
    range.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      range.value = Math.round(Number(range.value) / control.step + step) * control.step;
      moved();
    });
  }
  tell();
  const parts = [make("label", { htmlFor: id }, control.label), shown, range];
  if (control.infinite) parts.push(infinite(control, id, range, moved, tell));
  return make("div", { className: "parameter" }, ...parts, make("p", { className: "quiet", id: `${id}-help` }, control.help));
}

function infinite(control, id, range, moved, tell) {
  const box = make("input", { type: "checkbox", id: `${id}-infinite` });
  box.checked = values()[control.name] === known.infinite;
  range.disabled = box.checked;
  box.addEventListener("change", () => {
    range.disabled = box.checked;
    if (!box.checked) return moved();
    values()[control.name] = known.infinite;
    change(control, tell);
  });
  return make("label", { className: "choice" }, box, "infinite precision");
}

function change(control, tell) {
  tell();
  if (control.name === "period") bindResidue();
  if (control.name === "vocabulary") tellInput();
  refresh(control.name === "tolerance" ? ["bound", "simulation"] : Object.keys(panels));
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

/* Ask for what some panels show, once nothing has moved for a moment; the newest question wins. */
function refresh(names) {
  clearTimeout(refresh.timer);
  refresh.timer = setTimeout(() => history.replaceState(null, "", written(state.construction, values(), input.value)), 250);
  for (const name of names) {
    const panel = panels[name];
    const given = { construction: state.construction, ...values() };
    if (panel.reads) given.input = input.value;
    panel.wanted = JSON.stringify(given);
    clearTimeout(panel.timer);
    const reply = answered.get(name + panel.wanted);
    if (reply) {
      settle(name, reply);
      continue;
    }
    wait(name);
    panel.timer = setTimeout(() => panel.asking || ask(name), PAUSE);
  }
}

async function ask(name) {
  const panel = panels[name];
  const question = panel.wanted;
  panel.asking = true;
  try {
    const response = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: question,
      signal: AbortSignal.timeout(PATIENCE),
    });
    const reply = { status: response.status, answer: await response.json() };
    trouble("");
    if (response.status < 500) remember(name + question, reply);
    if (panel.wanted === question) settle(name, reply);
  } catch (error) {
    if (panel.wanted === question) {
      trouble(
        error.name === "TimeoutError"
          ? "This takes too long: move something."
          : "The server does not answer: start lengthwise explore again, then move something.",
      );
      settle(name, { status: 0, answer: { error: "No answer." } });
    }
  } finally {
    panel.asking = false;
    if (panel.wanted !== question && !answered.has(name + panel.wanted)) ask(name);
  }
}

function remember(key, reply) {
  answered.set(key, reply);
  if (answered.size > REMEMBERED) answered.delete(answered.keys().next().value);
}

function wait(name) {
  const panel = panels[name];
  $(name).classList.add("waiting");
  $(name).setAttribute("aria-busy", "true");
  panel.slow ??= setTimeout(() => $(name).classList.add("slow"), SLOW);
}

function settle(name, { status, answer }, patiently = true) {
  const [panel, section] = [panels[name], $(name)];
  const mistaken = answer.mistake !== undefined;
  if (mistaken && patiently && state.answers[name]) {
    panel.timer = setTimeout(() => settle(name, { status, answer }, false), TYPING);
    return;
  }
  const good = status === 200 && !mistaken;
  clearTimeout(panel.slow);
  panel.slow = undefined;
  section.classList.remove("waiting", "slow");
  section.setAttribute("aria-busy", "false");
  if (panel.reads) mistake(mistaken ? answer.mistake : "");
  const told = section.querySelector(".status");
  told.textContent = good ? answer.sentence : mistaken ? "Nothing to show: the input is not understood." : answer.error;
  told.classList.toggle("error", !good && !mistaken);
  state.answers[name] = good ? answer : null;
  panel.brief = good ? answer.brief : (answer.mistake ?? answer.error);
  display(name);
  summarize();
}

function mistake(sentence) {
  input.setAttribute("aria-invalid", String(Boolean(sentence)));
  $("input-error").textContent = sentence;
  $("input-error").hidden = !sentence;
}

/* The answers in few words: at once at the edge of a narrow window, after a rest to a screen reader. */
function summarize() {
  const briefs = [...new Set(Object.values(panels).map((panel) => panel.brief))].filter(Boolean);
  $("summary").textContent = briefs.slice(0, 2).join("; ");
  clearTimeout(summarize.timer);
  summarize.timer = setTimeout(() => {
    const all = `${briefs.join("; ")}.`;
    if (summarize.told && all !== summarize.told) say(all);
    summarize.told = all;
  }, QUIET);
}

function say(sentence) {
  $("announce").textContent = sentence;
}

function display(name) {
  const content = $(name).querySelector(".content");
  const answer = state.answers[name];
  refill(content, answer ? panels[name].show(answer, content, say) : []);
}

function trouble(sentence) {
  if ($("trouble").textContent !== sentence) $("trouble").textContent = sentence;
  $("trouble").hidden = !sentence;
}

/* Begin as the address says, or with what it does not say as it was. */
function load() {
  const given = read(location.hash, known);
  if (given) {
    Object.assign(state.values[given.construction], given.values);
    if (given.input !== null) state.texts[given.construction] = given.input;
  }
  choose(given ? given.construction : state.construction || "modp");
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
  $("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address keeps the setting
    $("bound-heading").focus();
  });
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("reset").addEventListener("click", () => {
    begin();
    choose(state.construction);
  });
  begin();
  buildConstructions();
  load();
  window.addEventListener("hashchange", () => location.hash.includes("construction=") && load());
  let width = document.querySelector("main").clientWidth;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === width) return;
    width = contentRect.width;
    requestAnimationFrame(() => Object.keys(panels).forEach(display));
  }).observe(document.querySelector("main"));
}

start();
