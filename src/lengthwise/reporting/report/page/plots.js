"use strict";

/* What all plots share: how they look, which seeds are shown, and how text from runs is kept text. */
const NARROW = 640;

function make(name, properties = {}, ...children) {
  const made = document.createElement(name);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

/* plotly reads a little HTML in its labels: what comes out of files must not be read so. */
function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function short(value) {
  return value === null ? "not finite" : String(Number(value.toPrecision(3)));
}

function faint(color, share) {
  const part = (from) => parseInt(color.slice(from, from + 2), 16);
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${share})`;
}

function narrow() {
  return window.innerWidth < NARROW;
}

/* Lines of several seeds as one trace: points of one line, then a gap. */
function joined(lines, properties) {
  const trace = { x: [], y: [], text: [], mode: "lines", hovertemplate: "%{text}<extra></extra>", ...properties };
  for (const line of lines) {
    trace.x.push(...line.x, null);
    trace.y.push(...line.y, null);
    trace.text.push(...line.text, "");
  }
  return trace;
}

function axis(title, more = {}) {
  return {
    title: { text: title, standoff: 8, font: { size: 13 } },
    gridcolor: theme.color("grid"),
    linecolor: theme.color("quiet"),
    tickcolor: theme.color("quiet"),
    showline: true,
    zeroline: false,
    ticks: "outside",
    ticklen: 4,
    automargin: true,
    ...more,
  };
}

function powers(title, low, high, more = {}) {
  const range = [Math.log10(low), Math.log10(high)];
  const dtick = Math.max(1, Math.ceil((range[1] - range[0]) / (narrow() ? 5 : 10)));
  return axis(title, { type: "log", range, dtick, exponentformat: "power", showexponent: "all", ...more });
}

/* Ticks at training lengths, as many as there is room for, far enough apart in the logarithm. */
function lengthTicks(lengths) {
  const apart = Math.log(lengths[lengths.length - 1] / lengths[0]) / (narrow() ? 7 : 14);
  const kept = [];
  for (const length of lengths) {
    if (!kept.length || Math.log(length / kept[kept.length - 1]) >= apart * 0.999) kept.push(length);
  }
  return { tickmode: "array", tickvals: kept, ticktext: kept.map(String) };
}

/* A legend stands beside the plot, or below it where there is no room for its words. */
function layout(more, labels = []) {
  const below = narrow() || labels.some((label) => label.length > 26);
  return {
    paper_bgcolor: theme.color("paper"),
    plot_bgcolor: theme.color("paper"),
    font: { color: theme.color("ink"), family: "system-ui, sans-serif", size: 12 },
    margin: { l: 56, r: 20, t: narrow() ? 12 : 36, b: 48 },
    hovermode: "closest",
    hoverlabel: { bgcolor: theme.color("page"), bordercolor: theme.color("line"), font: { color: theme.color("ink") } },
    legend: below
      ? { orientation: "h", x: 0, y: -0.2, yanchor: "top", font: { size: 11 } }
      : { x: 1.02, y: 1, xanchor: "left", font: { size: 11 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: theme.color("quiet"), activecolor: theme.color("accent") },
    dragmode: narrow() ? false : "zoom",
    ...more,
  };
}

/* The buttons are named one by one: some of plotly's own would open other sites. A tap counts as a double click,
   which must not change what is shown. */
function config() {
  const modeBarButtons = [["zoomIn2d", "zoomOut2d", "resetScale2d"]];
  return { responsive: true, displaylogo: false, displayModeBar: !narrow(), modeBarButtons, doubleClick: "reset" };
}

/* A horizontal line across the plot, named at one end. */
function across(height, name, side) {
  return {
    shapes: [
      {
        type: "line",
        xref: "paper",
        x0: 0,
        x1: 1,
        y0: height,
        y1: height,
        layer: "above", // below, a gridline at the same height would hide it
        line: { color: theme.color("quiet"), width: 1.5, dash: "dash" },
      },
    ],
    annotations: [
      {
        xref: "paper",
        x: side === "left" ? 0.01 : 0.99,
        y: Math.log10(height),
        text: name,
        showarrow: false,
        xanchor: side,
        yanchor: "bottom",
        yshift: 2,
        borderpad: 1,
        bgcolor: faint(theme.color("paper"), 0.6), // a curve at the tolerance is seen behind its name
        font: { size: 11, color: theme.color("quiet") },
      },
    ],
  };
}

/* Which seeds are shown, and how; shared by the charts of a section. */
class Seeds {
  constructor(numbers, modes, changed) {
    this.numbers = numbers;
    this.hidden = new Set();
    this.mode = modes[0][0];
    this.modes = modes;
    this.changed = changed;
  }

  shows(seed) {
    return this.mode === "seeds" && !this.hidden.has(seed);
  }

  controls(section) {
    const name = `show-${section}`;
    const radios = this.modes.map(([mode, words]) => {
      const input = make("input", { type: "radio", name, value: mode, checked: mode === this.mode });
      input.addEventListener("change", () => {
        this.mode = mode;
        each.disabled = mode !== "seeds";
        this.changed();
      });
      return make("label", {}, input, words);
    });
    const each = this.numbers.length > 24 ? this.typed() : this.boxes();
    return make("div", { className: "seeds" }, make("fieldset", {}, make("legend", {}, "show"), ...radios), each);
  }

  boxes() {
    const boxes = this.numbers.map((seed) => {
      const input = make("input", { type: "checkbox", value: seed, checked: true });
      input.addEventListener("change", () => {
        if (input.checked) this.hidden.delete(seed);
        else this.hidden.add(seed);
        this.changed();
      });
      return make("label", {}, input, String(seed));
    });
    return make("fieldset", {}, make("legend", {}, "seeds"), ...boxes);
  }

  typed() {
    const input = make("input", { type: "text", placeholder: "all, or 0-3, 7", autocomplete: "off" });
    input.addEventListener("input", () => {
      const ranges = [...input.value.matchAll(/(\d+)(?:\s*-\s*(\d+))?/g)].map(([, low, high]) => [+low, +(high ?? low)]);
      const within = (seed) => !ranges.length || ranges.some(([low, high]) => low <= seed && seed <= high);
      this.hidden = new Set(this.numbers.filter((seed) => !within(seed)));
      this.changed();
    });
    return make("fieldset", {}, make("label", {}, "seeds", input));
  }
}

/* A choice between settings, if there are several. */
function chooser(labels, chosen, words, changed) {
  if (labels.length < 2) return [];
  const options = labels.map((label, place) => make("option", { value: place, selected: place === chosen }, label));
  const select = make("select", {}, ...options);
  select.addEventListener("change", () => changed(Number(select.value)));
  return [make("label", {}, words, select)];
}
