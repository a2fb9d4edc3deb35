// What the stepper knows of a trace, without a page: pure functions from the trace and an index k.
// k = 0 is "nothing read yet", k is the state after event k, and k = last may be the stream's end.

export const LIFECYCLE = 0, TEXT = 1, ARGUMENTS = 2, DONE = 3, COMPLETED = 4, STOPPED = 5;
export const OTHER = 6, UNREAD = 7, END = 8;

// Read the form that payload.py writes. Binary columns are little-endian and may come unaligned.
// Where `raw` is deflated, it is null until `unpackRaw` has brought it.
export function readTrace(wire) {
  const column = (value, Type) => new Type(bytesOf(value).slice().buffer);
  const count = wire.count;
  const trace = {
    ...wire,
    count,
    last: wire.end ? count + 1 : count,
    kind: column(wire.kind, Uint16Array),
    role: column(wire.role, Uint8Array),
    buffer: column(wire.buffer, Int32Array),
    size: column(wire.size, Uint32Array),
    offset: column(wire.offset, Uint32Array),
    raw: wire.deflated ? null : bytesOf(wire.raw),
    buffers: wire.buffers.map((buffer) => ({
      ...buffer,
      at: column(buffer.at, Uint32Array),
      ends: utf16Ends(buffer.text, column(buffer.length, Uint32Array)),
      length: column(buffer.length, Uint32Array),
    })),
  };
  const calls = trace.buffers.filter(({ kind }) => kind === "arguments");
  const names = new Map();
  for (const { name } of calls) names.set(name, (names.get(name) ?? 0) + 1);
  for (const buffer of trace.buffers) {
    buffer.spoken = spokenName(buffer, names.get(buffer.name) > 1);
  }
  trace.runs = foldRuns(trace);
  return trace;
}

export async function unpackRaw(wire) {
  const packed = new Blob([bytesOf(wire.raw)]).stream();
  const stream = packed.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function bytesOf(value) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

// Lengths count code points; a JavaScript string is cut at UTF-16 units. They differ past U+FFFF.
function utf16Ends(text, lengths) {
  if (!/[\ud800-\udfff]/.test(text)) return lengths;
  let points = 0, units = 0;
  return lengths.map((length) => {
    for (; points < length && units < text.length; points++) {
      units += text.codePointAt(units) > 0xffff ? 2 : 1;
    }
    return units;
  });
}

// The first event of each run: neighbouring deltas of one buffer are a run, all else stands alone.
function foldRuns({ count, last, role, buffer }) {
  const starts = new Uint32Array(last);
  let runs = 0;
  for (let i = 0; i < last; i++) {
    const delta = i < count && (role[i] === TEXT || role[i] === ARGUMENTS);
    if (delta && i > 0 && role[i] === role[i - 1] && buffer[i] === buffer[i - 1]) continue;
    starts[runs++] = i + 1;
  }
  return starts.subarray(0, runs);
}

// How many of the increasing `values` are at most `limit`.
export function countUpTo(values, limit, key = (value) => value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(values[middle]) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const clamp = (k, last) => Math.max(0, Math.min(last, Math.trunc(k) || 0));

export const runOf = (trace, k) => countUpTo(trace.runs, k) - 1;

export function nextChange(trace, k) {
  return trace.runs[runOf(trace, k) + 1] ?? trace.last;
}

export function previousChange(trace, k) {
  return trace.runs[countUpTo(trace.runs, k - 1) - 1] ?? 0;
}

export function roleAt(trace, k) {
  return k > trace.count ? END : trace.role[k - 1];
}

export function kindAt(trace, k) {
  return k > trace.count ? trace.end.label : trace.names[trace.kind[k - 1]];
}

// The next event at which the gate changes, or null; the first at which a hasty adapter acts.
export function nextGateChange(trace, k) {
  return trace.gate.find(({ at }) => at > k)?.at ?? null;
}

export const firstHasty = (trace) => trace.hasty[0]?.at ?? null;

// For each check, the step at which it is decided: from there on it says what it says at the end.
// One that says so from the start is decided with the gate; null is one that only waits.
export function decidedAt(trace) {
  const final = trace.gate.at(-1).findings;
  return trace.checks.map((_, i) => {
    const [status] = final[i] ?? ["waiting"];
    if (status === "waiting") return null;
    let at = trace.gate.length - 1;
    while (at > 0 && trace.gate[at - 1].findings[i]?.[0] === status) at--;
    return trace.gate.at(at || -1).at;
  });
}

// Everything that the stepper shows at k. It depends on the first k events alone.
export function stateAt(trace, k) {
  const gateIndex = Math.max(0, countUpTo(trace.gate, k, (entry) => entry.at) - 1);
  const gate = trace.gate[gateIndex];
  return {
    k,
    gate,
    gateIndex,
    role: k ? roleAt(trace, k) : null,
    kind: k ? kindAt(trace, k) : null,
    touched: k && k <= trace.count ? trace.buffer[k - 1] : -1,
    buffers: trace.buffers.filter(({ start }) => start <= k).map((buffer) => bufferAt(buffer, k)),
    hasty: trace.hasty.filter((call) => call.at <= k),
    released: gate.state === "released" ? trace.released : [],
  };
}

function bufferAt(buffer, k) {
  const grown = countUpTo(buffer.at, k);
  return {
    buffer,
    end: grown ? buffer.ends[grown - 1] : 0,
    fresh: grown > 1 ? buffer.ends[grown - 2] : 0,
    length: grown ? buffer.length[grown - 1] : 0,
    grew: grown > 0 && buffer.at[grown - 1] === k,
    done: buffer.done > 0 && buffer.done <= k,
  };
}

// The bytes of event k as text; `limit` bounds how many bytes are decoded.
export function rawAt(trace, k, limit = Infinity) {
  if (k < 1 || k > trace.count || !trace.raw) return "";
  const from = trace.offset[k - 1], to = Math.min(trace.offset[k], from + limit);
  return new TextDecoder().decode(trace.raw.subarray(from, to));
}

export const rawSize = (trace, k) => trace.offset[k] - trace.offset[k - 1];

// Where a fragment stands in the JSON text of an event, as [from, to], or null.
export function fragmentRange(raw, fragment) {
  if (!fragment) return null;
  const usual = JSON.stringify(fragment), at = raw.indexOf(usual);
  if (at >= 0) return [at + 1, at + usual.length - 1];
  for (const { 0: found, index } of raw.matchAll(/"(?:[^"\\]|\\.)*"/g)) {
    try {
      if (JSON.parse(found) === fragment) return [index + 1, index + found.length - 1];
    } catch { /* no JSON string: what is not understood is not marked */ }
  }
  return null;
}

// Where a reader is, in words; it is counted in events, and the end of a cut stream is after them.
export function placeWords(trace, k) {
  const count = number(trace.count);
  return k > trace.count ? `end, after event ${count} of ${count}`
    : `event ${number(k)} of ${count}`;
}

export const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

export const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

// A kind without what every row would repeat.
export function shortKind(kind) {
  const short = kind.replace(/^response\./, "").replace(/^function_call_arguments\./, "arguments.");
  return clip(short, 80);
}

// One sentence: what event k changed.
export function describe(trace, state) {
  const { k, role, touched } = state;
  if (k === 0) return "Nothing has been read yet.";
  const pending = state.buffers.find(({ buffer }) => buffer === trace.buffers[touched]);
  const what = pending && pending.buffer.spoken;
  const added = k <= trace.count ? plural(trace.size[k - 1], "character") : "";
  switch (role) {
    case TEXT: return `${added} of draft ${pending?.buffer.kind ?? "text"} arrived.`;
    case ARGUMENTS: return `${added} arrived for ${what}: ${number(pending?.length ?? 0)} in all.`;
    case DONE: return `${pending ? doneName(pending.buffer, state.kind) : "An item is"} done: ` +
      "progress only.";
    case COMPLETED: return "The response is complete and every check holds: it is released.";
    case STOPPED: return "Discarded here: nothing of this response is released.";
    case OTHER: return "This event changes nothing.";
    case UNREAD: return "This event is not read: the verdict stands.";
    case END: return capital(trace.end.detail).replace(/\.?$/, ".");
  }
  return pending?.buffer.start === k ? `A pending buffer opens for ${what}.`
    : "The response or an item begins: nothing to act on.";
}

function doneName({ kind, spoken }, event) {
  if (shortKind(event).startsWith("output_item.done")) return `The item of ${spoken} is`;
  return kind === "arguments" ? `The arguments of ${spoken} are` : capital(`${spoken} is`);
}

// What a sentence calls a buffer: a call by its name, and by its ID where others have that name.
function spokenName({ kind, name, call_id: id }, shared) {
  if (kind !== "arguments") return `the ${kind}`;
  const words = clip(name || "a call without a name", 60);
  return plain(shared ? `${words} (${clip(id ?? "", 40)})` : words);
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const GATE_WORD = { closed: "Gate closed", released: "Released", discarded: "Discarded" };

export function announcement(trace, state) {
  const place = state.k === 0 ? "Start" : state.k > trace.count ? "End of the stream"
    : `Event ${state.k} of ${trace.count}`;
  const ran = state.hasty.length;
  const kind = state.k && state.k <= trace.count ? `, ${plain(shortKind(state.kind))}` : "";
  return `${place}${kind}. ${plain(describe(trace, state))} ${GATE_WORD[state.gate.state]}.` +
    (ran ? ` A hasty adapter ran ${plural(ran, "call")}.` : "");
}

// Characters that hide, or that reorder their neighbours, so that a text looks like another one.
const HIDDEN = new RegExp(
  "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
  "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb" +
  "\\ud800-\\udfff\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]", "u");
const HIDDEN_RUNS = new RegExp(`((${HIDDEN.source})\\2*)`, "gu");

const codeName = (character) =>
  `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// Split a text into [piece, hidden]: a hidden character becomes its code, a repeated one a count.
export function pieces(text) {
  if (!HIDDEN.test(text)) return text ? [[text, false]] : [];
  const found = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN_RUNS)) {
    if (match.index > from) found.push([text.slice(from, match.index), false]);
    const times = match[1].length / match[2].length;
    found.push([codeName(match[2]) + (times > 1 ? ` ×${times}` : ""), true]);
    from = match.index + match[1].length;
  }
  if (from < text.length) found.push([text.slice(from), false]);
  return found;
}

export function plain(text) {
  return pieces(text).map(([piece, hidden]) => (hidden ? `<${piece}>` : piece)).join("");
}

// At most `limit` UTF-16 units, never half a character.
export function clip(text, limit) {
  return text.length <= limit ? text : text.slice(0, wholeBefore(text, limit)) + "…";
}

// The nearest cut at or before `at` that splits no surrogate pair.
export function wholeBefore(text, at) {
  return at > 0 && /[\udc00-\udfff]/.test(text.charAt(at)) ? at - 1 : at;
}

// Indent JSON by its brackets alone: every number, name and escape stays as it was received.
export function indentJson(text) {
  let out = "", depth = 0, from = 0;
  const line = () => "\n" + "  ".repeat(Math.max(0, Math.min(depth, 40)));
  const token = /"[^"\\]*(?:\\[^][^"\\]*)*"?|[[{]\s*[\]}]|[[\]{},:]|\s+/g;
  for (const match of text.matchAll(token)) {
    const found = match[0];
    out += text.slice(from, match.index);
    from = match.index + found.length;
    if (found === "{" || found === "[") { depth++; out += found + line(); }
    else if (found === "}" || found === "]") { depth--; out += line() + found; }
    else if (found === ",") out += found + line();
    else if (found === ":") out += ": ";
    else if (/^[[{]/.test(found)) out += found[0] + found.at(-1);
    else if (found[0] === '"') out += found;
  }
  return out + text.slice(from);
}
