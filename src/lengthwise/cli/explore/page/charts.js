const NARROWEST = 240; // no figure is drawn narrower, whatever there is room for
const SPACE = "http://www.w3.org/2000/svg";

export function draw(name, attributes = {}, ...children) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function picture(width, height, label) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
}

function power(exponent) {
  if (exponent >= 0 && exponent <= 4) return (10 ** exponent).toLocaleString("en");
  if (exponent < 0 && exponent >= -4) return (10 ** exponent).toFixed(-exponent);
  return `1e${exponent}`;
}

export function boundChart(answer, room) {
  const [width, height] = [Math.max(room, NARROWEST), 272];
  const box = { left: 52, right: width - 12, top: 26, bottom: height - 40 };
  const points = answer.curve.map((one) => ({ ...one, x: Math.log10(one.tolerance) }));
  const heights = points.flatMap((one) => [one.log10_length, one.log10_order]).filter((one) => one !== null);
  const label = "Length that suffices against tolerance, both logarithmic; the numbers are in the table below.";
  const svg = picture(width, height, label);
  if (!heights.length) return svg;
  const [low, high] = [Math.floor(Math.min(...heights)), Math.ceil(Math.max(...heights))];
  const [first, last] = [points[0].x, points[points.length - 1].x];
  const across = (x) => box.left + ((x - first) / (last - first)) * (box.right - box.left);
  const up = (y) => box.bottom - ((y - low) / Math.max(1, high - low)) * (box.bottom - box.top);
  const step = Math.max(1, Math.ceil((high - low) / 6));
  for (let y = low; y <= high; y += step) {
    svg.append(
      draw("line", { x1: box.left, x2: box.right, y1: up(y), y2: up(y), class: "grid" }),
      draw("text", { x: box.left - 6, y: up(y) + 4, "text-anchor": "end" }, power(y)),
    );
  }
  for (let x = Math.ceil(first - 1e-9); x <= last + 1e-9; x += 1) {
    const anchor = x >= last - 1e-9 ? "end" : x <= first + 1e-9 ? "start" : "middle";
    svg.append(draw("text", { x: across(x), y: box.bottom + 16, "text-anchor": anchor }, power(x)));
  }
  const middle = (box.left + box.right) / 2;
  svg.append(
    draw("text", { x: middle, y: height - 6, "text-anchor": "middle" }, "tolerance"),
    draw("text", { x: 0, y: 11 }, "length that suffices"),
    draw("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }),
  );
  for (const [key, kind] of [["log10_order", "second-line"], ["log10_length", "first-line"]]) {
    const known = points.filter((one) => one[key] !== null);
    const line = known.map((one) => `${across(one.x).toFixed(1)},${up(one[key]).toFixed(1)}`);
    svg.append(draw("polyline", { points: line.join(" "), class: kind }));
  }
  if (answer.log10_length !== null) {
    const [x, y] = [across(Math.log10(answer.tolerance)), up(answer.log10_length)];
    svg.append(
      draw("line", { x1: x, x2: x, y1: box.top, y2: box.bottom, class: "axis", "stroke-dasharray": "2 3" }),
      draw("circle", { cx: x, cy: y, r: 5, class: "first" }),
    );
  }
  return svg;
}

export function histogram(answer, space) {
  const [width, height] = [Math.max(space, NARROWEST), 214];
  const box = { left: 44, right: width - 4, top: 24, bottom: height - 38 };
  const top = Math.max(...answer.x.shares, ...answer.z.shares, 0.01);
  const svg = picture(width, height, "Histograms of x and of z; the numbers are in the table below.");
  for (const part of [0, 0.5, 1]) {
    const y = box.bottom - part * (box.bottom - box.top);
    svg.append(
      draw("line", { x1: box.left, x2: box.right, y1: y, y2: y, class: part ? "grid" : "axis" }),
      draw("text", { x: box.left - 6, y: y + 4, "text-anchor": "end" }, `${Number((100 * part * top).toPrecision(2))}%`),
    );
  }
  const room = (box.right - box.left) / answer.types.length;
  const bar = Math.min(28, room * 0.4);
  const every = Math.ceil((answer.types_are === "token" ? 14 : 34) / room);
  answer.types.forEach((type, index) => {
    const middle = box.left + (index + 0.5) * room;
    [answer.x, answer.z].forEach((one, side) => {
      const size = (one.shares[index] / top) * (box.bottom - box.top);
      const place = { x: middle + (side - 1) * bar, y: box.bottom - size, width: bar - 1, height: size };
      svg.append(draw("rect", { ...place, class: side ? "second" : "first" }));
    });
    if (index % every === 0) {
      svg.append(draw("text", { x: middle, y: box.bottom + 15, "text-anchor": "middle" }, type));
    }
  });
  const middle = (box.left + box.right) / 2;
  svg.append(
    draw("text", { x: middle, y: height - 6, "text-anchor": "middle" }, answer.types_are),
    draw("text", { x: 0, y: 11 }, "share of the string"),
  );
  return svg;
}

export function attentionBars(tokens, head, space, name) {
  const [width, height] = [Math.max(space, NARROWEST), 92];
  const box = { left: 56, right: width - 4, top: 8, bottom: height - 24 };
  const top = Math.max(...head.weights, 1e-12);
  const svg = picture(width, height, `${name}: weights of the last position; the numbers are in the table below.`);
  const room = (box.right - box.left) / tokens.length;
  const bars = head.weights.map((weight, index) => {
    const size = (weight / top) * (box.bottom - box.top);
    if (size < 0.05) return "";
    const wide = Math.max(room * 0.85, 1);
    return `M${(box.left + index * room).toFixed(2)} ${box.bottom}v${(-size).toFixed(2)}h${wide.toFixed(2)}V${box.bottom}z`;
  });
  svg.append(
    draw("line", { x1: box.left, x2: box.right, y1: box.top, y2: box.top, class: "grid" }),
    draw("path", { d: bars.join(""), class: "first" }),
    draw("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }),
    draw("text", { x: box.left - 6, y: box.top + 5, "text-anchor": "end" }, String(Number(top.toPrecision(2)))),
    draw("text", { x: box.left - 6, y: box.bottom + 4, "text-anchor": "end" }, "0"),
  );
  if (room >= 9) {
    tokens.forEach((token, index) => {
      const place = { x: box.left + (index + 0.42) * room, y: box.bottom + 15, "text-anchor": "middle" };
      svg.append(draw("text", place, String(token)));
    });
  } else {
    for (const [place, anchor, text] of [[box.left, "start", "position 1"], [box.right, "end", `position ${tokens.length}`]]) {
      svg.append(draw("text", { x: place, y: box.bottom + 15, "text-anchor": anchor }, text));
    }
  }
  return svg;
}

export function attentionMap(tokens, head, space, name) {
  const size = Math.max(Math.min(space, 280), NARROWEST);
  const edge = 18;
  const cell = (size - edge) / tokens.length;
  const svg = picture(size, size, `${name}: weights of every query (row) to every key (column), a stronger colour for more; the numbers are in the table below.`);
  svg.setAttribute("width", size);
  svg.classList.add("map");
  head.map.forEach((row, query) => {
    row.forEach((weight, key) => {
      if (key > query) return;
      const place = { x: edge + key * cell, y: edge + query * cell, width: cell * 0.96, height: cell * 0.96 };
      svg.append(draw("rect", { ...place, class: "first", "fill-opacity": (0.06 + 0.94 * weight).toFixed(3) }));
    });
    if (cell >= 9) {
      const along = edge + (query + 0.5) * cell;
      svg.append(
        draw("text", { x: along, y: 12, "text-anchor": "middle" }, String(tokens[query])),
        draw("text", { x: 6, y: along + 4, "text-anchor": "middle" }, String(tokens[query])),
      );
    }
  });
  if (cell < 9) {
    svg.append(
      draw("text", { x: edge, y: 12 }, "position 1"),
      draw("text", { x: size, y: 12, "text-anchor": "end" }, `position ${tokens.length}`),
    );
  }
  return svg;
}
