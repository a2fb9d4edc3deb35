// The lanes: what arrives, the gate, and a hasty adapter, on one axis of events. The picture is for
// the eye; the slider that lies over it is for the mouse, for keys and for screen readers.

const EDGE = 12;                // room at both ends of the axis, in pixels
const GLYPH_SPACE = 13;         // where events lie closer than this, they are drawn as bars
const BAR = 3;                  // width of a bar, in pixels
const LETTER = 6.2;             // what a letter of the lanes takes, about, in pixels
const EVENTS_Y = 16, GATE_Y = 42, HASTY_Y = 66;
const MOST_HAMMERS = 60;
// Where events share a bar, it shows the one that says most.
const RANK = [2, 1, 1, 3, 5, 6, 0, 0, 6];

const axisOf = (width, last) => (k) =>
  EDGE + (last ? Math.min(1, k / last) : 0) * Math.max(0, width - 2 * EDGE);

function glyph(role, x, y, scale) {
  return shape("path", `glyph role-${role}`,
    { d: SHAPES[role], transform: `translate(${x - 6 * scale} ${y - 6 * scale}) scale(${scale})` });
}

// One bar for each few pixels of the axis, drawn as one path for each role.
function bars(trace, width) {
  const x = axisOf(width, trace.last);
  const slots = Math.max(1, Math.floor((width - 2 * EDGE) / BAR));
  const best = new Int8Array(slots + 1).fill(-1);
  for (let k = 1; k <= trace.last; k++) {
    const slot = Math.round((k / trace.last) * slots), role = roleAt(trace, k);
    if (best[slot] < 0 || RANK[role] > RANK[best[slot]]) best[slot] = role;
  }
  const paths = new Map();
  best.forEach((role, slot) => {
    if (role < 0) return;
    const left = x((slot / slots) * trace.last) - BAR / 2;
    const tall = RANK[role] > 2 ? 16 : 10;
    paths.set(role, `${paths.get(role) ?? ""}M${left.toFixed(1)} ${EVENTS_Y - tall / 2}` +
      `h${BAR - 0.6}v${tall}h-${BAR - 0.6}z`);
  });
  return [...paths].map(([role, d]) => shape("path", `bar role-${role}`, { d }));
}

// The gate's lane: closed until it decides, then what it decided.
function gateLane({ gate, last }, width, y, words) {
  const x = axisOf(width, last), decided = gate.find(({ state }) => state !== "closed");
  const until = decided ? x(decided.at) : x(last);
  const box = { y: y - 6, height: 12, rx: 3 };
  const end = width - EDGE + 6, rest = end - until;
  const closed = { ...box, x: EDGE - 6, width: (rest > 14 ? until : end) - EDGE + 6 };
  const drawn = [shape("rect", "lane lane-closed", closed)];
  if (decided) {
    if (rest > 14) {
      drawn.push(shape("rect", `lane lane-${decided.state}`, { ...box, x: until, width: rest }));
    }
    const left = (rest > 14 ? until : Math.min(until, end - 7)) - 5;
    drawn.push(shape("path", `lane-mark lane-mark-${decided.state}`,
      { d: ICONS[decided.state], transform: `translate(${left} ${y - 5}) scale(.85)` }));
  }
  const room = Math.floor((until - EDGE - 16) / LETTER);
  if (words && room > 5) {
    drawn.push(written(clip(plain(words), room), EDGE + 2, y, "lane-words"));
  }
  return drawn;
}

function written(words, x, y, name) {
  const node = shape("text", name, { x, y: y + 4 });
  node.textContent = words;
  return node;
}

// The hasty adapter's lane: a hammer wherever a tool would have been run.
function hastyLane({ hasty, last }, width, y) {
  const x = axisOf(width, last);
  const drawn = [shape("path", "lane-line", { d: `M${EDGE} ${y}H${width - EDGE}` })];
  const groups = [];
  for (const call of hasty) {
    const at = x(call.at), before = groups.at(-1);
    if (before && at - before.x < 22) before.calls.push(call);
    else if (groups.length < MOST_HAMMERS) groups.push({ x: at, calls: [call] });
  }
  groups.forEach(({ x: at, calls }, i) => {
    const words = calls.length > 1 ? `would run ${plural(calls.length, "call")}`
      : `would run ${plain(clip(calls[0].name || "a call", 24))}`;
    const after = (groups[i + 1]?.x ?? width) - 14, long = words.length * LETTER;
    const left = (groups[i - 1]?.x ?? 0) + 14;
    drawn.push(shape("rect", "hammer-box", { x: at - 10, y: y - 8, width: 20, height: 16, rx: 4 }),
      shape("path", "hammer", { d: ICONS.hasty, transform: `translate(${at - 6} ${y - 6})` }));
    if (after - at - 16 >= long) drawn.push(written(words, at + 16, y, "hammer-words"));
    else if (at - 16 - left >= long) {
      drawn.push(written(words, at - 16 - long, y, "hammer-words"));
    }
  });
  if (!groups.length) {
    drawn.push(shape("rect", "lane-gap", { x: EDGE + 6, y: y - 7, width: 84, height: 14 }),
      written("runs nothing", EDGE + 10, y, "lane-faint"));
  }
  return drawn;
}

function waitingWords(trace) {
  const closed = trace.gate.findLast(({ state }) => state === "closed");
  const waiting = closed.findings.filter(([status]) => status === "waiting").length;
  const [, what] = /^waiting( for .*)$/.exec(closed.headline) ?? [];
  return what ? `closed: ${plural(waiting, "check")} wait${what}` : "closed";
}

function lanesPanel(trace, go) {
  const range = make("input", "range");
  Object.assign(range, { type: "range", min: 0, max: trace.last, step: 1 });
  range.setAttribute("aria-label", "event");
  range.addEventListener("input", () => go(Number(range.value)));
  const picture = shape("svg", "lanes-picture", { "aria-hidden": "true" });
  const axis = make("div", "axis", picture, range);
  const names = make("div", "lane-names", ...["events", "gate", "hasty"].map((word) =>
    make("div", "", word)));
  names.setAttribute("aria-hidden", "true");
  const words = waitingWords(trace);
  let width = 0, drawn = 0, x = null, glyphs = [], parts = null;

  function layout() {
    if (drawn === width) return;
    drawn = width;
    x = axisOf(width, trace.last);
    const space = (width - 2 * EDGE) / Math.max(1, trace.last);
    const close = space < GLYPH_SPACE;
    const rail = shape("path", "rail", { d: `M${x(0)} ${EVENTS_Y}H${x(trace.last)}` });
    const done = shape("path", "rail-done", {});
    const start = shape("path", "rail-start", { d: `M${x(0)} ${EVENTS_Y - 5}v10` });
    const r = close ? 5 : 11;
    const now = shape("circle", "now-ring", { cy: EVENTS_Y, r });
    const line = shape("path", "now-line", { d: `M0 ${EVENTS_Y + r}V${HASTY_Y + 10}` });
    const later = shape("rect", "cover", { y: EVENTS_Y - 10, height: 20 });
    glyphs = close ? [] : Array.from({ length: trace.last }, (_, i) =>
      glyph(roleAt(trace, i + 1), x(i + 1), EVENTS_Y, space < 20 ? 0.8 : 1));
    parts = { done, now, line, later };
    picture.setAttribute("viewBox", `0 0 ${width} ${HASTY_Y + 14}`);
    picture.replaceChildren(rail, ...(close ? [...bars(trace, width), later] : []), done, start,
      ...gateLane(trace, width, GATE_Y, words), ...hastyLane(trace, width, HASTY_Y),
      line, ...glyphs, now);
  }

  return {
    root: make("div", "lanes", names, axis),
    axis,
    resize(to) { width = to; },
    paint({ k }) {
      range.value = k;
      setAttribute(range, "aria-valuetext", placeWords(trace, k));
      if (!width) return;
      layout();
      const at = x(k);
      parts.done.setAttribute("d", `M${x(0)} ${EVENTS_Y}H${at}`);
      parts.now.setAttribute("cx", at);
      parts.line.setAttribute("transform", `translate(${at})`);
      parts.later.setAttribute("x", at);
      parts.later.setAttribute("width", Math.max(0, width - at));
      glyphs.forEach((node, i) => node.classList.toggle("ags-later", i + 1 > k));
    },
  };
}

// One line of an edit's answer: the gate and the hasty adapter of one of the two streams.
function answerLane(verdict, last, width) {
  const picture = shape("svg", "answer-picture",
    { "aria-hidden": "true", viewBox: `0 0 ${width} 34` });
  picture.replaceChildren(...gateLane({ ...verdict, last }, width, 8, ""),
    ...hastyLane({ ...verdict, last }, width, 25));
  return picture;
}
