"use strict";

/* Limit transformers: loss against test length, and plateau against training length. */
const LIMIT_MODES = [
  ["seeds", "every seed"],
  ["range", "median and range"],
  ["median", "median only"],
];

function lossTraces(setting, seeds) {
  const traces = [];
  for (const group of setting.groups) {
    const color = group.answer ? theme.color("answer") : theme.of(group.color);
    const shared = { legendgroup: String(group.length), line: { color, width: 1 } };
    const bounded = group.lengths.map((_, at) => at).filter((at) => group.low[at] > 0 && group.high[at] !== null);
    if (seeds.mode === "range" && group.seeds.length > 1) {
      const x = bounded.map((at) => group.lengths[at]);
      const edge = { x, mode: "lines", showlegend: false, hoverinfo: "skip", legendgroup: shared.legendgroup };
      traces.push(
        { ...edge, y: bounded.map((at) => group.low[at]), line: { width: 0 } },
        { ...edge, y: bounded.map((at) => group.high[at]), line: { width: 0 }, fill: "tonexty", fillcolor: faint(color, 0.2) },
      );
    }
    const shown = group.seeds.filter((one) => seeds.shows(one.seed));
    if (shown.length) {
      const lines = shown.map((one) => {
        const x = one.lengths || group.lengths;
        const text = x.map(
          (at, place) =>
            `trained at ${group.length}, seed ${one.seed}<br>test length ${at.toLocaleString("en")}<br>` +
            `loss ${short(one.losses[place])} ± ${short(one.errors[place])} (standard error)<br>run ${plain(one.run)}`,
        );
        return { x, y: one.losses, text };
      });
      traces.push(joined(lines, { ...shared, name: `seeds at ${group.length}`, opacity: 0.45, showlegend: false }));
    }
    traces.push({
      ...shared,
      x: group.lengths,
      y: group.median,
      mode: "lines",
      name: group.answer ? `<b>${group.length}</b>` : String(group.length),
      line: { color, width: group.answer ? 3.5 : 2 },
      text: group.lengths.map(
        (at, place) =>
          `trained at ${group.length}, median over seeds<br>test length ${at.toLocaleString("en")}<br>` +
          `loss ${short(group.median[place])}, from ${short(group.low[place])} to ${short(group.high[place])}`,
      ),
      hovertemplate: "%{text}<extra></extra>",
    });
    if (group.limit !== null) {
      traces.push({
        x: [group.lengths[group.lengths.length - 1]],
        y: [group.limit],
        mode: "markers",
        marker: { symbol: "diamond", size: 9, color },
        legendgroup: shared.legendgroup,
        showlegend: false,
        cliponaxis: false,
        hovertemplate: `trained at ${group.length}: limit ${short(group.limit)} (median over seeds)<extra></extra>`,
      });
    }
  }
  return traces;
}

function drawLosses(plot, chart, seeds) {
  const setting = chart.settings[chart.chosen];
  const lengths = setting.groups.map((group) => group.length);
  const longest = Math.max(...setting.groups.map((group) => group.lengths[group.lengths.length - 1]));
  const [low, high] = setting.heights;
  const made = layout({
    ...across(chart.tolerance, "tolerance", "right"),
    xaxis: powers("test length", Math.max(0.5, 0.8 * Math.min(...lengths)), longest),
    yaxis: powers("test loss", low, high),
  });
  made.legend.title = { text: "trained at" };
  return Plotly.react(plot, lossTraces(setting, seeds), made, config());
}

const SYMBOLS = { level: "circle", "the limit": "circle", rising: "triangle-up-open", falling: "triangle-down-open" };

function plateauTraces(chart, seeds, top) {
  const traces = [];
  for (const series of chart.series) {
    const color = chart.series.length > 1 ? theme.of(series.color) : theme.color("quiet");
    const group = series.label;
    const points = series.points.filter((point) => seeds.shows(point.seed));
    const finite = points.filter((point) => point.value !== null);
    const lost = points.filter((point) => point.value === null);
    const told = (point) =>
      `${plain(series.label)}<br>trained at ${point.length}, seed ${point.seed}${point.stage ? `, ${point.stage}` : ""}<br>` +
      (point.value === null
        ? "diverged"
        : `plateau ${short(point.value)}, interval ${short(point.low)} to ${short(point.high)}, ${point.trend}`) +
      `<br>run ${plain(point.run)}`;
    if (finite.length) {
      traces.push({
        x: finite.map((point) => point.length),
        y: finite.map((point) => point.value),
        text: finite.map(told),
        hovertemplate: "%{text}<extra></extra>",
        mode: "markers",
        name: "seeds",
        legendgroup: group,
        showlegend: false,
        opacity: 0.65,
        marker: {
          color,
          size: 7,
          symbol: finite.map((point) => (point.stage === "pilot" && SYMBOLS[point.trend] === "circle" ? "circle-open" : SYMBOLS[point.trend])),
        },
        error_y: {
          type: "data",
          symmetric: false,
          array: finite.map((point) => point.high - point.value),
          arrayminus: finite.map((point) => point.value - point.low),
          color,
          thickness: 1,
          width: 2,
        },
      });
    }
    if (lost.length) {
      traces.push({
        x: lost.map((point) => point.length),
        y: lost.map(() => top),
        text: lost.map(told),
        hovertemplate: "%{text}<extra></extra>",
        mode: "markers",
        name: "diverged",
        legendgroup: group,
        showlegend: false,
        cliponaxis: false,
        marker: { color, size: 9, symbol: "x-thin-open" },
      });
    }
    traces.push({
      x: series.median.map(([length]) => length),
      y: series.median.map(([, value]) => value),
      mode: "lines",
      name: chart.series.length > 1 ? plain(series.label) : "median of seeds",
      legendgroup: group,
      line: { color, width: 2 },
      hovertemplate: "trained at %{x}, median over seeds: %{y:.3g}<extra></extra>",
    });
  }
  return [...traces, ...adviceTraces(chart.advice, chart.tolerance)];
}

function adviceTraces(advice, tolerance) {
  if (!advice) return [];
  const traces = [];
  const blue = theme.color("accent");
  if (advice.fit) {
    const line = (points, properties) => ({
      x: points.map(([x]) => x),
      y: points.map(([, y]) => y),
      mode: "lines",
      hovertemplate: "fit at %{x:.3g}: %{y:.3g}<extra></extra>",
      ...properties,
    });
    traces.push(
      line(advice.fit.seen, { name: `fit, ∝ N<sup>${advice.fit.exponent}</sup>`, line: { color: blue, width: 3 } }),
      line(advice.fit.beyond, { showlegend: false, line: { color: blue, width: 2, dash: "dash" } }),
    );
  }
  if (advice.predicted) {
    traces.push({
      x: [advice.predicted],
      y: [tolerance],
      mode: "markers",
      name: `predicted ${advice.predicted}<br>(${advice.interval_words})`,
      marker: { symbol: "diamond", size: 12, color: blue },
      hovertemplate: `predicted ${advice.predicted}, ${advice.interval_words}<extra></extra>`,
    });
  }
  if (advice.confirmed) {
    const [length, value] = advice.confirmed;
    traces.push({
      x: [length],
      y: [value],
      mode: "markers",
      name: `shortest that sufficed: ${length}`,
      marker: { symbol: "star", size: 17, color: theme.color("answer") },
      hovertemplate: `shortest that sufficed: ${length}, plateau ${short(value)}<extra></extra>`,
    });
  }
  return traces;
}

function drawPlateaus(plot, chart, seeds) {
  const points = chart.series.flatMap((series) => series.points);
  const medians = chart.series.flatMap((series) => series.median);
  const values = [...points.map((point) => point.value), ...medians.map(([, value]) => value)].filter((value) => value > 0);
  const [low, high] = [Math.min(...values, chart.tolerance) / 3, Math.max(...values, chart.tolerance) * 3];
  const lengths = [...new Set(medians.map(([length]) => length))].sort((a, b) => a - b);
  const [first, last] = [lengths[0], lengths[lengths.length - 1]];
  const made = layout({
    ...across(chart.tolerance, "tolerance", "left"),
    xaxis: powers("training length", first / 1.15, last * 1.15, lengthTicks(lengths)),
    yaxis: powers("plateau of the test loss", low, high),
  }, chart.series.length > 1 ? chart.series.map((series) => series.label) : []);
  if (chart.advice?.interval) {
    const [x0, x1] = chart.advice.interval;
    const band = { type: "rect", yref: "paper", x0, x1, y0: 0, y1: 1, layer: "below", line: { width: 0 } };
    made.shapes.push({ ...band, fillcolor: theme.color("accent"), opacity: 0.12 });
  }
  return Plotly.react(plot, plateauTraces(chart, seeds, high), made, config());
}
