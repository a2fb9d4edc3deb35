// The panels that move a reader along a trace: header and controls, timeline, scrubber, event list.
// A panel is {root, paint(state)}; painting touches only what changed.

const ROW = 26;                 // height of a row of the event list, in pixels; see stepper.css
const SPARE_ROWS = 6;           // rows kept ready above and below the visible ones
const DOT_SPACE = 30;           // least distance between two dots of the timeline, in pixels
const SPEEDS = [1, 2, 5, 20, 100, 1000]; // events a second

function headPanel(trace, actions) {
  const place = make("span", "place");
  const back = [
    control("first", "first", "to the start (Home)", actions.first, "brief"),
    control("back", "back", "one event back (Left)", actions.back, "brief"),
  ];
  const on = [
    control("step", "step", "one event on (Right)", actions.step, "primary"),
    control("change", "next change", "to the next run of events (Shift+Right)", actions.change),
    control("last", "last", "to the end (End)", actions.last, "brief"),
  ];
  const play = control("play", "play", "play or pause (Space)", actions.play);
  const speed = make("select", "speed");
  for (const rate of SPEEDS) {
    speed.append(new Option(`${number(rate)}×`, rate, rate === 2, rate === 2));
  }
  speed.setAttribute("aria-label", "speed, events a second");
  speed.title = "events a second";
  const controls = make("div", "controls", ...back, ...on, play, speed);
  controls.setAttribute("role", "group");
  controls.setAttribute("aria-label", "controls");
  const title = make("div", "title", stream("name", trace.title, 120),
    make("div", "under", stream("subtitle", trace.subtitle, 200), place));
  return {
    root: make("div", "head", title, controls),
    rate: () => Number(speed.value),
    playing(on) {
      play.replaceChildren(draw(ICONS[on ? "pause" : "play"], "icon"),
        make("span", "word", on ? "pause" : "play"));
    },
    paint({ k }) {
      const end = k > trace.count;
      setText(place, `${end && k ? "end of the stream, after event" : "event"} ` +
        `${number(Math.min(k, trace.count))} of ${number(trace.count)}`);
      for (const button of back) setAttribute(button, "aria-disabled", k === 0);
      for (const button of on) setAttribute(button, "aria-disabled", k === trace.last);
    },
  };
}

// A dot for each run; where they do not all fit, a window of them. It is for the eye and the mouse:
// the event list is the same for keys and screen readers.
function timePanel(trace, go) {
  const total = trace.runs.length;
  const rail = make("div", "rail");
  const done = make("div", "rail-done");
  const before = make("span", "more before");
  const after = make("span", "more after");
  const dots = make("div", "dots");
  const root = make("div", "time", rail, done, before, after, dots);
  root.setAttribute("aria-hidden", "true");
  let width = 0, start = 0, shown = [], painted = null;

  function layout(run) {
    const pad = width < 600 ? 34 : 60;
    const room = Math.max(2, Math.floor((width - 2 * pad) / DOT_SPACE) + 1);
    const fits = total <= room;
    const edge = Math.min(3, room >> 2);
    if (fits) start = 0;
    else if (run < start + edge || run >= start + room - edge) {
      start = Math.max(0, Math.min(total - room, run - (room >> 1)));
    }
    start = Math.min(start, Math.max(0, total - room));
    const count = Math.min(room, total);
    const key = `${width} ${start}`;
    if (painted === key) return;
    painted = key;
    const space = count > 1 ? Math.min(240, (width - 2 * pad) / (count - 1)) : 0;
    const left = (width - space * (count - 1)) / 2;
    shown = Array.from({ length: count }, (_, i) => dot(start + i, left + i * space));
    dots.replaceChildren(...shown.map(({ node }) => node));
    rail.style.left = `${left}px`;
    rail.style.width = `${space * (count - 1)}px`;
    done.style.left = `${left}px`;
    setText(before, start > 0 ? `‹ ${number(start)}` : "");
    const rest = total - start - count;
    setText(after, rest > 0 ? `${number(rest)} ›` : "");
  }

  function dot(run, x) {
    const first = trace.runs[run];
    const role = roleAt(trace, first);
    const label = dotLabel(trace, run);
    const node = make("div", `dot role-${role}`, draw(SHAPES[role], "shape", 16),
      make("span", "dot-label", label));
    node.style.left = `${x}px`;
    node.title = `event ${number(first)}: ${plain(clip(kindAt(trace, first), 80))}`;
    node.addEventListener("click", () => go(first));
    const weight = role === TEXT || role === ARGUMENTS ? 1 : 2;
    return { node, run, x, half: label.length * 3.1 + 4, weight };
  }

  // Labels in order of weight, each only where it touches none that is already there.
  function label(current) {
    const taken = [];
    const byWeight = [...shown].sort((a, b) =>
      (b.run === current) - (a.run === current) || b.weight - a.weight || a.run - b.run);
    for (const item of byWeight) {
      const free = taken.every(({ x, half }) => Math.abs(x - item.x) >= half + item.half);
      if (free) taken.push(item);
      item.node.classList.toggle("ags-quiet", !free);
    }
  }

  return {
    root,
    resize(to) { width = to; },
    paint({ k }) {
      if (!width || !total) return;
      const current = runOf(trace, k);
      layout(current);
      for (const { node, run } of shown) {
        node.classList.toggle("ags-now", run === current);
        node.classList.toggle("ags-later", run > current);
      }
      label(current);
      const reached = Math.max(0, Math.min(shown.length - 1, current - start));
      done.style.width = current < start ? "0" : `${shown[reached].x - shown[0].x}px`;
    },
  };
}

function scrubPanel(trace, go) {
  const range = make("input", "range");
  range.type = "range";
  range.min = 0;
  range.max = trace.last;
  range.step = 1;
  range.setAttribute("aria-label", "event");
  range.addEventListener("input", () => go(Number(range.value)));
  const output = make("output", "count");
  return {
    root: make("div", "scrub", range, output),
    paint({ k }) {
      range.value = k;
      range.style.setProperty("--at", trace.last ? k / trace.last : 0);
      setAttribute(range, "aria-valuetext",
        k > trace.count ? "end of the stream" : `event ${k} of ${trace.count}`);
      setText(output, `step ${number(k)} / ${number(trace.last)}`);
    },
  };
}

// The event list: a listbox of which only the visible rows, and the current one, are in the page.
function listPanel(trace, go, id) {
  const space = make("div", "rows");
  const box = make("div", "list", space);
  const legend = make("div", "legend");
  const rows = new Map();
  let height = 0, top = 0, current = 0, scheduled = false, placed = false;
  space.style.height = `${trace.last * ROW}px`;
  space.setAttribute("role", "presentation");
  box.setAttribute("role", "listbox");
  box.setAttribute("aria-label", "events");
  box.tabIndex = 0;
  legend.setAttribute("aria-hidden", "true");
  const roles = new Set(trace.role);
  if (trace.end) roles.add(END);
  for (const role of [...roles].sort((a, b) => a - b)) {
    legend.append(make("span", `role-${role}`, draw(SHAPES[role], "shape"), ROLE_NAMES[role]));
  }
  box.addEventListener("click", (event) => {
    const row = event.target.closest("[data-k]");
    if (row) go(Number(row.dataset.k));
  });
  box.addEventListener("scroll", () => {
    top = box.scrollTop;
    if (!scheduled) requestAnimationFrame(() => { scheduled = false; fill(); });
    scheduled = true;
  });

  function row(k) {
    const role = roleAt(trace, k);
    const event = k <= trace.count;
    const pending = event && trace.buffers[trace.buffer[k - 1]];
    const size = event && trace.size[k - 1];
    const kind = shortKind(kindAt(trace, k));
    const node = make("div", `row role-${role}`, make("span", "number", number(k)),
      draw(SHAPES[role], "shape"), stream("kind", kind));
    if (pending?.name && !size && !kind.endsWith(pending.name)) {
      node.append(stream("of", pending.name, 40));
    }
    if (size) node.append(make("span", "of", `+${number(size)}`));
    if (role >= DONE && role !== OTHER) node.append(unseen(` (${ROLE_NAMES[role]})`));
    node.append(make("span", "unseen when"));
    node.id = `${id}-${k}`;
    node.dataset.k = k;
    node.style.top = `${(k - 1) * ROW}px`;
    node.title = plain(clip(kindAt(trace, k), 120));
    node.setAttribute("role", "option");
    node.setAttribute("aria-posinset", k);
    node.setAttribute("aria-setsize", trace.last);
    return node;
  }

  function fill() {
    const from = Math.max(1, Math.floor(top / ROW) + 1 - SPARE_ROWS);
    const to = Math.min(trace.last, Math.ceil((top + height) / ROW) + SPARE_ROWS);
    for (const [k, node] of rows) {
      if ((k < from || k > to) && k !== current) { node.remove(); rows.delete(k); }
    }
    const wanted = Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
    if (current && (current < from || current > to)) wanted.push(current);
    for (const k of wanted) {
      if (!rows.has(k)) { rows.set(k, row(k)); space.append(rows.get(k)); }
      const node = rows.get(k);
      const when = k === current ? "now" : k > current ? "later" : "past";
      if (node.when === when) continue;
      node.when = when;
      node.classList.toggle("ags-now", when === "now");
      node.classList.toggle("ags-later", when === "later");
      node.setAttribute("aria-selected", when === "now");
      node.lastChild.textContent = when === "later" ? ", not yet read" : "";
    }
  }

  return {
    root: make("div", "events", box, legend),
    resize(to) { height = to; },
    box,
    paint({ k }) {
      current = k;
      if (!height) return;
      const at = (k - 1) * ROW, margin = Math.min(2 * ROW, height / 3);
      const most = Math.max(0, trace.last * ROW - height);
      // Scrolling forces a layout: it scrolls far, so that most steps do not scroll.
      let wanted = top;
      if (!placed) wanted = at - height / 2;
      else if (at - margin < top) wanted = at - (2 * height) / 3;
      else if (at + ROW + margin > top + height) wanted = at - height / 3;
      placed = true;
      wanted = Math.max(0, Math.min(most, Math.round(wanted)));
      if (wanted !== top) box.scrollTop = top = wanted;
      fill();
      if (k) setAttribute(box, "aria-activedescendant", `${id}-${k}`);
      else box.removeAttribute("aria-activedescendant");
    },
  };
}
