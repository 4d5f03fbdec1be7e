"use strict";

/* Decoders: accuracy by bin of input lengths, and in the course of training. */
const DECODER_MODES = [
  ["seeds", "every seed"],
  ["median", "median only"],
];

const RANGE = { range: [-0.04, 1.04], tickformat: ".0%", dtick: 0.25 };

function binTraces(panel, seeds) {
  const traces = [];
  panel.series.forEach((series, place) => {
    const color = theme.of(series.color);
    const aside = 0.3 * ((place + 0.5) / panel.series.length - 0.5);
    const at = panel.bins.map((_, bin) => bin + aside);
    const shown = series.seeds.filter((one) => seeds.shows(one.seed));
    const points = shown.flatMap((one) => one.values.map((value, bin) => ({ one, bin, value })).filter(({ value }) => value !== null));
    if (points.length) {
      traces.push({
        x: points.map(({ bin }) => at[bin]),
        y: points.map(({ value }) => value),
        text: points.map(
          ({ one, bin, value }) =>
            `${plain(series.label)}, seed ${one.seed}<br>input length ${panel.bins[bin]}<br>` +
            `${(100 * value).toFixed(1)}% right<br>run ${plain(one.run)}`,
        ),
        hovertemplate: "%{text}<extra></extra>",
        mode: "markers",
        name: "seeds",
        legendgroup: series.label,
        showlegend: false,
        opacity: 0.55,
        cliponaxis: false,
        marker: { color, size: 8 },
      });
    }
    traces.push({
      x: at,
      y: series.median,
      mode: "lines",
      name: plain(series.label),
      legendgroup: series.label,
      line: { color, width: 2.5 },
      hovertemplate: "median over seeds: %{y:.1%}<extra></extra>",
    });
  });
  return traces;
}

function drawBins(plot, chart, seeds) {
  const panel = chart.panels[chart.chosen];
  const made = layout({
    xaxis: axis("input length", {
      tickmode: "array",
      tickvals: panel.bins.map((_, bin) => bin),
      ticktext: panel.bins,
      range: [-0.4, panel.bins.length - 0.6],
      showgrid: false,
    }),
    yaxis: axis("share of right sequences", RANGE),
    shapes: [],
  }, panel.series.map((series) => series.label));
  if (panel.within > 0 && panel.within < panel.bins.length) {
    const x = panel.within - 0.5;
    const line = { color: theme.color("quiet"), width: 1.5, dash: "dot" };
    made.shapes.push({ type: "line", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line });
  }
  return Plotly.react(plot, binTraces(panel, seeds), made, config());
}

function drawLearning(plot, chart, seeds) {
  const setting = chart.settings[chart.chosen];
  const traces = [];
  for (const bin of setting.bins) {
    const color = theme.of(bin.color);
    const shown = bin.seeds.filter((one) => seeds.shows(one.seed));
    if (shown.length) {
      const lines = shown.map((one) => ({
        x: one.steps,
        y: one.values,
        text: one.steps.map(
          (step, place) =>
            `input length ${bin.label}, seed ${one.seed}<br>after ${step.toLocaleString("en")} steps<br>` +
            `${(100 * one.values[place]).toFixed(1)}% right<br>run ${plain(one.run)}`,
        ),
      }));
      const mode = setting.steps.length > 1 ? "lines" : "markers";
      traces.push(
        joined(lines, { mode, name: "seeds", legendgroup: bin.label, showlegend: false, opacity: 0.45, line: { color, width: 1 } }),
      );
    }
    traces.push({
      x: setting.steps,
      y: bin.median,
      mode: "lines+markers",
      name: bin.label,
      legendgroup: bin.label,
      line: { color, width: 2.5 },
      marker: { size: 6 },
      hovertemplate: `input length ${bin.label}, median over seeds<br>after %{x:,} steps: %{y:.1%}<extra></extra>`,
    });
  }
  const made = layout({
    xaxis: axis("training steps", { rangemode: "tozero", tickformat: "," }),
    yaxis: axis("share of right sequences", RANGE),
  });
  made.legend.title = { text: "input length" };
  return Plotly.react(plot, traces, made, config());
}
