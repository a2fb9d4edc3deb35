// The panels that move a reader along a trace: header and controls, and the list of events.
// A panel is {root, paint(state)}; painting touches only what changed.

const COARSE = matchMedia("(pointer: coarse)");
const SPARE_ROWS = 6;           // rows kept ready above and below the visible ones
const SPEEDS = [1, 2, 5, 20, 100, 1000]; // events a second

function headPanel(trace, actions) {
  const place = make("span", "count");
  const button = (icon, label, hint, name = "") =>
    plainButton(label, hint, actions[icon], name, icon);
  const back = [
    button("first", "first", "to the start (Home)", "brief"),
    button("back", "back", "one event back (Left)"),
  ];
  const step = button("step", "step", "one event on (Right)", "primary");
  const gate = button("gate", "gate change", "to the next event at which the gate changes (G)");
  const hasty = button("hasty", "first hasty act",
    "to the event at which a hasty adapter would first run a tool (H)");
  const play = button("play", "play", "play or pause (Space)");
  const last = button("last", "last", "to the end (End)", "brief");
  const speed = make("select", "speed");
  for (const rate of SPEEDS) {
    speed.append(new Option(`${number(rate)}×`, rate, rate === 2, rate === 2));
  }
  speed.setAttribute("aria-label", "speed, events a second");
  speed.title = "events a second";
  const controls = make("div", "controls", ...back, step, gate, hasty, last, play, speed);
  controls.setAttribute("role", "group");
  controls.setAttribute("aria-label", "controls");
  const title = make("div", "title", stream("name", trace.title, 120),
    stream("subtitle", trace.subtitle, 200));
  const acts = firstHasty(trace);
  return {
    root: make("div", "head", title, controls, place),
    rate: () => Number(speed.value),
    playing(on) {
      play.replaceChildren(draw(ICONS[on ? "pause" : "play"], "icon"),
        make("span", "word", on ? "pause" : "play"));
    },
    paint({ k }) {
      setText(place, placeWords(trace, k));
      for (const each of back) setAttribute(each, "aria-disabled", k === 0);
      for (const each of [step, last]) setAttribute(each, "aria-disabled", k === trace.last);
      setAttribute(gate, "aria-disabled", nextGateChange(trace, k) === null);
      setAttribute(hasty, "aria-disabled", acts === null || acts === k);
    },
  };
}

// The events of which a reader wants to see a list: all, or those of one role.
function filterOf(trace, changed) {
  const roles = new Set(trace.role);
  if (trace.end) roles.add(END);
  const select = make("select", "filter", new Option("all kinds", ""));
  for (const role of [...roles].sort((a, b) => a - b)) {
    select.append(new Option(ROLE_NAMES[role], role));
  }
  select.setAttribute("aria-label", "events shown");
  const api = { root: select, shown: null };
  select.addEventListener("change", () => {
    const all = Array.from({ length: trace.last }, (_, i) => i + 1);
    const role = Number(select.value);
    api.shown = select.value === "" ? null
      : Uint32Array.from(all.filter((k) => roleAt(trace, k) === role));
    changed();
  });
  return api;
}

// The event list: a listbox of which only the visible rows, and the current one, are in the page.
function listPanel(trace, go, id) {
  const tall = COARSE.matches ? 44 : 22;
  const space = make("div", "rows");
  const box = make("div", "list", space);
  const filter = filterOf(trace, refill);
  const rows = new Map();
  let height = 0, top = 0, current = 0, scheduled = false, placed = false;
  const length = () => filter.shown?.length ?? trace.last;
  const at = (place) => filter.shown?.[place - 1] ?? place;
  // How many of the rows are at or before event k.
  const placeOf = (k) => (filter.shown ? countUpTo(filter.shown, k) : k);
  space.style.height = `${length() * tall}px`;
  space.setAttribute("role", "presentation");
  box.setAttribute("role", "listbox");
  box.setAttribute("aria-label", "events");
  box.tabIndex = 0;
  box.style.setProperty("--ags-row", `${tall}px`);
  box.addEventListener("click", (event) => {
    const row = event.target.closest("[data-k]");
    if (row) go(Number(row.dataset.k));
  });
  box.addEventListener("scroll", () => {
    top = box.scrollTop;
    if (!scheduled) requestAnimationFrame(() => { scheduled = false; fill(); });
    scheduled = true;
  });

  function refill() {
    space.replaceChildren();
    rows.clear();
    space.style.height = `${length() * tall}px`;
    placed = false;
    paint({ k: current });
  }

  function row(place) {
    const k = at(place), role = roleAt(trace, k);
    const event = k <= trace.count;
    const pending = event && trace.buffers[trace.buffer[k - 1]];
    const size = event && trace.size[k - 1];
    const kind = shortKind(kindAt(trace, k));
    const node = make("div", `row role-${role}`, make("span", "number", event ? number(k) : ""),
      draw(SHAPES[role], "shape"), stream("kind", kind));
    if (pending?.name && !size && !kind.endsWith(pending.name)) {
      node.append(stream("of", pending.name, 40));
    }
    if (size) node.append(make("span", "more", `+${number(size)}`));
    if (role >= DONE && role !== OTHER) node.append(unseen(` (${ROLE_NAMES[role]})`));
    node.append(make("span", "unseen when"));
    node.id = `${id}-${k}`;
    node.dataset.k = k;
    node.style.top = `${(place - 1) * tall}px`;
    node.title = plain(clip(kindAt(trace, k), 120));
    node.setAttribute("role", "option");
    node.setAttribute("aria-posinset", place);
    node.setAttribute("aria-setsize", length());
    return node;
  }

  function fill() {
    const from = Math.max(1, Math.floor(top / tall) + 1 - SPARE_ROWS);
    const to = Math.min(length(), Math.ceil((top + height) / tall) + SPARE_ROWS);
    const here = placeOf(current);
    for (const [place, node] of rows) {
      if ((place < from || place > to) && place !== here) { node.remove(); rows.delete(place); }
    }
    const wanted = Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
    if (here && (here < from || here > to)) wanted.push(here);
    for (const place of wanted) {
      if (!rows.has(place)) { rows.set(place, row(place)); space.append(rows.get(place)); }
      const node = rows.get(place), k = at(place);
      const when = k === current ? "now" : k > current ? "later" : "past";
      if (node.when === when) continue;
      node.when = when;
      node.classList.toggle("ags-now", when === "now");
      node.classList.toggle("ags-later", when === "later");
      node.setAttribute("aria-selected", when === "now");
      node.lastChild.textContent = when === "later" ? ", not yet read" : "";
    }
  }

  function paint({ k }) {
    current = k;
    if (!height) return;
    const here = placeOf(k), above = (here - 1) * tall, margin = Math.min(2 * tall, height / 3);
    const most = Math.max(0, length() * tall - height);
    // Scrolling forces a layout: it scrolls far, so that most steps do not scroll.
    let wanted = top;
    if (!placed) wanted = above - height / 2;
    else if (above - margin < top) wanted = above - (2 * height) / 3;
    else if (above + tall + margin > top + height) wanted = above - height / 3;
    placed = true;
    wanted = Math.max(0, Math.min(most, Math.round(wanted)));
    if (wanted !== top) box.scrollTop = top = wanted;
    fill();
    if (here && at(here) === k) setAttribute(box, "aria-activedescendant", `${id}-${k}`);
    else box.removeAttribute("aria-activedescendant");
  }

  const label = make("div", "label", make("span", "", "events"), filter.root);
  return {
    root: make("div", "events", label, box),
    resize(to) { height = to; },
    box,
    paint,
  };
}
