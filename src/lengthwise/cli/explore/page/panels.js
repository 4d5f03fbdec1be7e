import { attentionBars, attentionMap, boundChart, histogram } from "/charts.js";
import { counted, folded, heaviest, make, scrolling, short, table, tenTo } from "/tables.js";

const MOST_ROWS = 100;

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

/* A command line, and a button that copies it. */
function command(name, line, say) {
  const code = make("code", {}, line);
  const button = make("button", { type: "button" }, "Copy the command");
  button.setAttribute("aria-label", `Copy the command of the ${name}`);
  button.dataset.keep = `copy ${name}`;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    say("Copied.");
    setTimeout(() => (button.textContent = "Copy the command"), 2000);
  });
  return make("div", { className: "command" }, scrolling(`the command of the ${name}`, "line", code), button);
}

export function showBound(answer, content, say) {
  const order = answer.order;
  const curve = answer.curve.map((one) => [
    short(one.tolerance),
    tenTo(one.log10_length),
    one.log10_order === null ? "more than 1e300" : tenTo(one.log10_order),
  ]);
  const grown = answer.growth.map((one) => [`longer if ${one.if}`, one.times]);
  const rows = (list) => list.map((one) => [one.name, one.words]);
  const numbers = make("div", { className: "pair" }, big(answer.length_label, answer.length_words, answer.theorem));
  if (order) numbers.append(big(order.label, order.length_words, `${order.theorem}. ${order.words}`));
  const headings = ["tolerance", "certified", "of this order (paper)"];
  const drawn = answer.curve.some((one) => one.log10_order !== null);
  const key = legend("certified", `of this order (paper)${drawn ? "" : ", beyond the figure"}`);
  return [
    numbers,
    make("figure", {}, boundChart(answer, content.clientWidth), key),
    table(`Terms: ${answer.terms_are}`, ["term", "value"], rows(answer.terms)),
    folded(content, "Bound against tolerance, as a table", table("Lengths that suffice", headings, curve)),
    folded(
      content,
      "What the theorem took in, and what would make it longer",
      table("Constants of the model", ["constant", "value"], rows(answer.parameters)),
      ...(grown.length ? [table("Growth", ["change", "length"], grown)] : []),
    ),
    command("bound", answer.command, say),
  ];
}

export function showSimulation(answer, content, say) {
  const string = (name, one) =>
    make(
      "div",
      {},
      make("h3", {}, `${name}, ${counted(one.length)}`),
      scrolling(`tokens of ${name}`, "tokens", one.text),
      make("p", { className: "quiet" }, `output ${one.output_words}`),
    );
  const rows = answer.types.map((type, index) => [
    type,
    ...[answer.x, answer.z].flatMap((one) => [String(one.counts[index]), `${(100 * one.shares[index]).toFixed(1)}%`]),
  ]);
  const headings = [answer.types_are, "in x", "share of x", "in z", "share of z"];
  const errors = [
    ["measured", answer.error_words],
    ["guaranteed by the theorem", answer.guaranteed_words],
    ["tolerance", short(answer.tolerance)],
  ];
  return [
    make("div", { className: "pair" }, string("x", answer.x), string("z", answer.z)),
    make("figure", {}, histogram(answer, content.clientWidth), legend("x (left)", "z (right)")),
    table(`Difference of the outputs on x and on z, method ${answer.method}`, ["difference", "value"], errors),
    folded(content, "Histograms, as a table", table("How often each type occurs", headings, rows)),
    command("simulation", answer.command, say),
  ];
}

export function showAttention(answer, content) {
  const named = (head) => `layer ${head.layer}, head ${head.head}`;
  const figures = answer.heads.map((head) =>
    make(
      "figure",
      {},
      make("figcaption", {}, `${named(head)}: weights of the last position${head.regime ? ` (regime: ${head.regime})` : ""}`),
      attentionBars(answer.tokens, head, content.clientWidth, named(head)),
    ),
  );
  const mapped = answer.heads.filter((head) => head.map);
  const maps = mapped.map((head) =>
    make(
      "figure",
      {},
      make("figcaption", {}, `${named(head)}: every position (row) to those up to it (column)`),
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
  const parts = [...figures, folded(content, "Attention of the last position, as a table", weights)];
  if (!maps.length) {
    return [...parts, make("p", { className: "quiet" }, `Up to ${answer.longest_map} tokens, every position is shown.`)];
  }
  const columns = ["from", ...answer.tokens.map((_, index) => `to ${index + 1}`)];
  const whole = mapped.map((head) =>
    table(named(head), columns, head.map.map((row, index) => [String(index + 1), ...row.map(short)])),
  );
  return [
    ...parts,
    make("div", { className: "pair" }, ...maps),
    folded(content, "Attention of every position, as a table", ...whole),
  ];
}
