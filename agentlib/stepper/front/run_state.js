// What the run stepper knows of a run, without a page: pure functions from the trace and an index
// k. k = 0 is before the run, k is the state after moment k. It uses the names of state.js.

const RUN_DELTAS = new Set(["text", "arguments"]);
const RUN_STREAM = new Set(["lifecycle", "text", "arguments", "done", "completed", "stopped"]);

const RUN_VERDICTS = new Set(["closed", "released", "discarded"]);

// Read the form that run_payload.py writes.
export function readRun(wire) {
  const column = (value, Type) => new Type(bytesOf(value).slice().buffer);
  const run = {
    ...wire,
    kind: column(wire.kind, Uint8Array),
    label: column(wire.label, Uint32Array),
    beside: column(wire.beside, Uint32Array),
    change: column(wire.change, Uint32Array),
    turn: column(wire.turn, Uint32Array),
    buffer: column(wire.buffer, Int32Array),
    buffers: wire.buffers.map((buffer) => {
      const length = column(buffer.length, Uint32Array);
      return { ...buffer, at: column(buffer.at, Uint32Array), length,
        ends: utf16Ends(buffer.text, length) };
    }),
  };
  run.changes = [];
  for (let k = 1; k <= run.last; k++) if (isRunChange(run, k)) run.changes.push(k);
  return run;
}

export const runKind = (run, k) => (k ? run.kinds[run.kind[k - 1]] : "");
export const runLabel = (run, k) => (k ? run.words[run.label[k - 1]] : "before the run");
export const runBeside = (run, k) => run.words[run.beside[k - 1]];
export const runSentence = (run, k) =>
  (k ? run.words[run.change[k - 1]] : "nothing was asked yet");
export const runTurn = (run, k) => (k ? run.turn[k - 1] : 0);

// Whether a moment is anything but one more delta of the same buffer.
export function isRunChange(run, k) {
  const kind = runKind(run, k);
  return !(k > 1 && RUN_DELTAS.has(kind) && kind === runKind(run, k - 1) &&
    run.buffer[k - 1] === run.buffer[k - 2]);
}

export const nextRunChange = (run, k) => run.changes[countUpTo(run.changes, k)] ?? run.last;
export const previousRunChange = (run, k) =>
  run.changes[countUpTo(run.changes, k - 1) - 1] ?? 0;

// The next moment of one of these kinds, or k itself where none is left.
export function nextRunKind(run, k, ...kinds) {
  for (let to = k + 1; to <= run.last; to++) if (kinds.includes(runKind(run, to))) return to;
  return k;
}

// The moment whose place on the axis is nearest to `part` of it.
export function nearestMoment(run, part) {
  const after = Math.min(run.last, countUpTo(run.place, part));
  const before = Math.max(0, after - 1);
  return part - run.place[before] < run.place[after] - part ? before : after;
}

const runStands = (k) => ({ start, end }) => start <= k && !(end > 0 && end <= k);

// Everything that the run stepper shows at k. It depends on the first k moments alone.
export function runStateAt(run, k) {
  const turn = runTurn(run, k);
  const calls = new Map();
  for (const call of run.calls) if (call.at <= k) calls.set(call.id, call);
  const gate = run.gate[countUpTo(run.gate, k, ({ at }) => at) - 1];
  const verdict = run.gate.filter(({ at, state }) => at <= k && RUN_VERDICTS.has(state)).at(-1);
  const texts = run.buffers.filter(({ start }) => start <= k);
  return {
    k,
    turn,
    gate,
    verdict: verdict?.state ?? "closed",
    kind: runKind(run, k),
    calls: [...calls.values()],
    buffers: texts.filter((buffer) => buffer.turn === turn)
      .map((buffer) => runBufferAt(buffer, k, calls.get(buffer.id))),
    said: texts.filter(({ kind }) => kind !== "arguments")
      .map((buffer) => runBufferAt(buffer, k)),
    history: run.history.filter(runStands(k)),
    published: run.published.filter(runStands(k)),
    left: run.left.map(({ name, at, words, part }) => {
      const place = countUpTo(at, k) - 1;
      return { name, words: words[place], part: part[place] };
    }),
  };
}

function runBufferAt(buffer, k, call) {
  const grown = countUpTo(buffer.at, k);
  return {
    buffer,
    call,
    end: grown ? buffer.ends[grown - 1] : 0,
    fresh: grown > 1 ? buffer.ends[grown - 2] : 0,
    length: grown ? buffer.length[grown - 1] : 0,
    grew: grown > 0 && buffer.at[grown - 1] === k,
    done: buffer.done > 0 && buffer.done <= k,
  };
}

const RUN_OPEN = new Set(["released", "runs", "waits for approval"]);

export function runCounts({ calls }) {
  const count = (wanted) => calls.filter(({ state }) => wanted(state)).length;
  return {
    executed: count((state) => state === "executed"),
    pending: count((state) => RUN_OPEN.has(state)),
    unknown: count((state) => state === "unknown" || state === "timed_out"),
  };
}

export const runSeconds = (value) =>
  `${Number(value.toFixed(2)).toLocaleString("en-US", { maximumFractionDigits: 2 })} s`;

export const runPlace = (run, k) =>
  `moment ${number(k)} of ${number(run.last)} · ${runSeconds(k ? run.at[k - 1] : 0)}`;

export const RUN_GATE_WORD = {
  idle: "NOT ASKED", closed: "CLOSED", released: "RELEASED", discarded: "DISCARDED",
  waiting: "WAITING", ended: "ENDED",
};

// One sentence for a screen reader: where the run is, and what the moment changed.
export function runAnnouncement(run, state) {
  const { k, turn, gate } = state;
  if (k === 0) return "Before the run.";
  const where = turn ? `, turn ${turn}` : "";
  return plain(`Moment ${k} of ${run.last}${where}, ${clip(runLabel(run, k), 60)}. ` +
    `${clip(runSentence(run, k), 160)}. Gate ${RUN_GATE_WORD[gate.state].toLowerCase()}.`);
}
