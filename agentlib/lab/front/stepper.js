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
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select")) return null;
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

// The entry. Of the model it uses get, on, set and save_changes, so that a page without a kernel
// can stand in for one.
function render({ model, el }) {
  const trace = readTrace(model.get("trace"));
  const id = `ags-${Math.random().toString(36).slice(2)}`;
  let k = clamp(model.get("index"), trace.last), saved = k;
  let frame = 0, telling = 0, alive = true;

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
  const root = make("div", "root", head.root, make("div", "track", time.root, scrub.root), body,
    ...below.map((panel) => panel.root), help, spoken.spoken);

  function paint() {
    frame = 0;
    if (!alive) return;
    const state = stateAt(trace, k);
    root.dataset.gate = state.gate.state;
    for (const panel of panels) panel.paint(state);
    // The kernel is told after the frame, not within it.
    if (k !== saved && !telling) telling = setTimeout(tell);
  }

  function tell() {
    telling = 0;
    if (k === saved) return;
    saved = k;
    model.set("index", k);
    model.save_changes();
  }

  root.className = "ags";
  root.tabIndex = 0;
  root.dataset.lmSuppressShortcuts = "true";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", `stepper: ${plain(clip(trace.title, 120))}`);
  root.addEventListener("keydown", (event) => {
    const action = keyAction(event, actions);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
  model.on("change:index", () => {
    const to = clamp(model.get("index"), trace.last);
    if (!alive || to === saved) return;
    saved = to;
    seek(to);
  });

  // The list and the timeline follow the room that they get; the body keeps its greatest height.
  let tallest = 0, width = 0;
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      if (target === list.box) list.resize(contentRect.height);
      else if (target === time.root) {
        if (contentRect.width !== width) { tallest = 0; body.style.minHeight = ""; }
        width = contentRect.width;
        time.resize(width);
      } else if (contentRect.height > tallest) {
        tallest = contentRect.height;
        body.style.minHeight = `${Math.min(tallest, 900)}px`;
      }
    }
    move(k);
  });
  if (!trace.raw) {
    unpackRaw(model.get("trace")).then((raw) => { trace.raw = raw; move(k); });
  }
  el.append(root);
  for (const node of [list.box, time.root, detail]) sizes.observe(node, { box: "border-box" });
  paint();
  return () => {
    alive = false;
    play.stop();
    spoken.stop();
    sizes.disconnect();
    cancelAnimationFrame(frame);
    clearTimeout(telling);
  };
}

export default { render };
