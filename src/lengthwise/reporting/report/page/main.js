"use strict";

/* The page comes alive: charts with their controls, tables, downloads. */
const report = JSON.parse(document.getElementById("report-data").textContent);

const KINDS = {
  losses: { draw: drawLosses, modes: LIMIT_MODES, choices: (chart) => chart.settings, words: "setting" },
  plateaus: { draw: drawPlateaus, modes: LIMIT_MODES, choices: () => [], words: "" },
  bins: { draw: drawBins, modes: DECODER_MODES, choices: (chart) => chart.panels, words: "task" },
  learning: { draw: drawLearning, modes: DECODER_MODES, choices: (chart) => chart.settings, words: "setting" },
};

const charts = [];

function buildSection(section) {
  const figures = [...section.querySelectorAll("[data-chart]")];
  if (!figures.length) return;
  const own = figures.map((figure) => {
    const chart = report.charts[figure.dataset.chart];
    const kind = KINDS[chart.kind];
    const labels = kind.choices(chart).map((choice) => choice.label);
    chart.chosen = Math.max(0, labels.indexOf(chart.selected));
    const made = { figure, chart, kind, labels, plot: figure.querySelector(".plot") };
    return made;
  });
  const numbers = own.find(({ chart }) => chart.seeds).chart.seeds;
  const seeds = new Seeds(numbers, own[0].kind.modes, () => own.forEach((one) => one.draw()));
  for (const one of own) {
    one.draw = () => one.kind.draw(one.plot, one.chart, seeds);
    const changed = (place) => {
      one.chart.chosen = place;
      one.draw();
    };
    one.figure.querySelector(".controls").append(...chooser(one.labels, one.chart.chosen, one.kind.words, changed));
    one.figure.querySelector("[data-png]").addEventListener("click", () => {
      const { clientWidth: width, clientHeight: height } = one.plot;
      Plotly.downloadImage(one.plot, { format: "png", filename: one.figure.dataset.chart, width, height, scale: 2 });
    });
  }
  if (numbers.length > 1) figures[0].before(seeds.controls(section.id));
  charts.push(...own);
}

/* Big reports stay quick: a chart is drawn when it comes near the window. */
function drawWhenSeen() {
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        seen.unobserve(entry.target);
        const one = charts.find(({ plot }) => plot === entry.target);
        one.drawn = true;
        one.draw();
        document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true"); // no picture: words are measured in it
      }
    },
    { rootMargin: "600px" },
  );
  charts.forEach(({ plot }) => seen.observe(plot));
}

function redraw() {
  charts.filter((one) => one.drawn).forEach((one) => one.draw());
}

async function save(name) {
  const packed = document.querySelector(`script[data-file="${name}"]`).textContent;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const address = URL.createObjectURL(new Blob([await new Response(text).blob()], { type: "text/csv" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

document.querySelectorAll("section").forEach(buildSection);
drawWhenSeen();
theme.listeners.push(redraw);
document.querySelectorAll("[data-table]").forEach((box) => new RunsTable(box, report.tables[box.dataset.table]));
document.querySelectorAll("[data-download]").forEach((button) => {
  button.addEventListener("click", async () => {
    const status = document.getElementById("downloads-status");
    try {
      await save(button.dataset.download);
      status.textContent = `${button.dataset.download} is saved.`;
    } catch (error) {
      status.textContent = `${button.dataset.download} cannot be saved: ${error.message}`;
    }
  });
});

let wasNarrow = narrow();
window.addEventListener("resize", () => {
  if (narrow() === wasNarrow) return;
  wasNarrow = narrow();
  redraw();
});
