// The stepper: an anywidget view over a trace whose every state is already in the browser, so that
// a step asks no kernel. The files of this folder stand one after the other in one module.

// Steps by the clock: `tick(n)` moves n events and says whether there are more.
function player(tick, rate, changed) {
  let timer = 0, due = 0;
  const stop = () => { clearTimeout(timer); if (timer) { timer = 0; changed(false); } };
  const next = () => {
    const now = performance.now();
    const n = Math.max(0, Math.min(1000, Math.floor(((now - due) * rate()) / 1000) + 1));
    due += (n * 1000) / rate();
    if (!tick(n)) return stop();
    timer = setTimeout(next, Math.max(16, due - performance.now()));
  };
  return {
    stop,
    on: () => timer !== 0,
    toggle() {
      if (timer) return stop();
      due = performance.now() + 1000 / rate();
      timer = setTimeout(next, 1000 / rate());
      changed(true);
    },
  };
}

function keyAction(event, actions) {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.target.matches("select, textarea")) return null;
  const { key, shiftKey } = event;
  if (key === "ArrowRight") return shiftKey ? actions.change : actions.step;
  if (key === "ArrowLeft") return shiftKey ? actions.backChange : actions.back;
  if (key === "Home") return actions.first;
  if (key === "End") return actions.last;
  if (event.target.matches("[role=listbox]")) {
    if (key === "ArrowDown") return actions.step;
    if (key === "ArrowUp") return actions.back;
  }
  if (key === " " && !event.target.matches("button, summary")) return actions.play;
  return null;
}

// One trace in the page: its panels above and below the what-if row, and the step that they show.
// `painted` is called after each frame; `room` is what the page remembers of its size.
function openView(wire, start, id, room, painted) {
  const trace = readTrace(wire);
  let k = clamp(start, trace.last), frame = 0, alive = true;

  function move(to) {
    k = clamp(to, trace.last);
    if (!frame) frame = requestAnimationFrame(paint);
  }
  const seek = (to) => { play.stop(); move(to); };
  const actions = {
    first: () => seek(0),
    back: () => seek(k - 1),
    step: () => seek(k + 1),
    change: () => seek(nextChange(trace, k)),
    backChange: () => seek(previousChange(trace, k)),
    last: () => seek(trace.last),
    play() {
      if (!play.on() && k === trace.last) move(0);
      play.toggle();
    },
  };
  const head = headPanel(trace, actions);
  const play = player((n) => { move(k + n); return k < trace.last; }, head.rate, head.playing);
  const time = timePanel(trace, seek);
  const list = listPanel(trace, seek, id);
  const spoken = spokenPanel(trace, play.on);
  const scrub = scrubPanel(trace, seek);
  const right = [spoken, textPanel(), bufferPanel(trace), gatePanel(trace)];
  const below = [rawPanel(trace), notesPanel(trace)];
  const panels = [head, time, scrub, list, ...right, ...below];
  const detail = make("div", "detail", ...right.map(({ root }) => root));
  const body = make("div", "body", list.root, detail);
  const help = make("div", "help",
    "keys: ← → step · shift ← → change · home end · space plays");

  function paint() {
    frame = 0;
    if (!alive) return;
    const state = stateAt(trace, k);
    for (const panel of panels) panel.paint(state);
    painted(state, trace);
  }

  // The list and the timeline follow the room that they get; the body keeps its greatest height.
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      if (target === list.box) list.resize(contentRect.height);
      else if (target === time.root) {
        if (contentRect.width !== room.width) { room.tallest = 0; body.style.minHeight = ""; }
        room.width = contentRect.width;
        time.resize(room.width);
      } else if (contentRect.height > room.tallest) {
        room.tallest = contentRect.height;
        keepHeight();
      }
    }
    move(k);
  });
  const keepHeight = () => { body.style.minHeight = `${Math.min(room.tallest, 900)}px`; };
  if (!trace.raw) unpackRaw(wire).then((raw) => { trace.raw = raw; move(k); });
  return {
    above: [head.root, make("div", "track", time.root, scrub.root)],
    below: [body, ...below.map((panel) => panel.root), help, spoken.spoken],
    actions,
    seek,
    trace,
    now: () => k,
    // Once its nodes are in the page.
    begin() {
      if (room.tallest) keepHeight();
      for (const node of [list.box, time.root, detail]) sizes.observe(node, { box: "border-box" });
      paint();
    },
    close() {
      alive = false;
      play.stop();
      spoken.stop();
      sizes.disconnect();
      cancelAnimationFrame(frame);
    },
  };
}

// The entry. Of the model it uses get, on, set and save_changes, so that a page without a kernel
// can stand in for one.
function render({ model, el }) {
  const id = `ags-${Math.random().toString(36).slice(2)}`;
  const room = { tallest: 0, width: 0 };
  const above = make("div", "part"), below = make("div", "part");
  const whatIf = whatIfPanel(model, (k) => view.seek(k));
  const root = make("div", "root", above, whatIf.root, below);
  let view = null, saved = 0, telling = 0, alive = true;

  function painted(state, trace) {
    root.dataset.gate = state.gate.state;
    whatIf.paint(state, trace);
    // The kernel is told after the frame, not within it.
    if (state.k !== saved && !telling) telling = setTimeout(tell);
  }

  function tell() {
    telling = 0;
    if (view.now() === saved) return;
    saved = view.now();
    model.set("index", saved);
    model.save_changes();
  }

  // The row between the parts stays where it is, and so does the focus within it.
  function show(start) {
    const focused = [above, below].some((part) => part.contains(document.activeElement));
    view?.close();
    view = openView(model.get("trace"), start, id, room, painted);
    above.replaceChildren(...view.above);
    below.replaceChildren(...view.below);
    root.setAttribute("aria-label", `stepper: ${plain(clip(view.trace.title, 120))}`);
    view.begin();
    if (focused) root.focus({ preventScroll: true });
  }

  root.className = "ags";
  root.tabIndex = 0;
  root.dataset.lmSuppressShortcuts = "true";
  root.setAttribute("role", "group");
  root.addEventListener("keydown", (event) => {
    const action = keyAction(event, view.actions);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
  model.on("change:index", () => {
    const to = clamp(model.get("index"), view.trace.last);
    if (!alive || to === saved) return;
    saved = to;
    view.seek(to);
  });
  model.on("change:trace", () => { if (alive) show(view.now()); });
  el.append(root);
  saved = model.get("index");
  show(saved);
  return () => {
    alive = false;
    view.close();
    clearTimeout(telling);
  };
}

export default { render };
