/* The setting in the page's address, behind #, so that it can be reloaded and shared. */

export function written(construction, values, input) {
  return `#${new URLSearchParams({ construction, ...values, input })}`;
}

/* The setting that an address holds; what is missing or out of range is left out, null if nothing is there. */
export function read(hash, known) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const construction = given.get("construction");
  if (!Object.hasOwn(known.constructions, construction ?? "")) return null;
  const values = {};
  for (const control of known.constructions[construction].parameters) {
    const text = given.get(control.name);
    const value = Number(text);
    if (control.infinite && text === known.infinite) values[control.name] = text;
    else if (text && value >= control.low && value <= control.high) {
      if (!control.whole || Number.isInteger(value)) values[control.name] = value;
    }
  }
  const input = given.get("input");
  return { construction, values, input: input === null ? null : input.slice(0, known.longest_text) };
}
