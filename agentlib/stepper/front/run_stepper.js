// The run stepper: a recorded run, every state of which is already in the browser, so that a step
// asks no kernel. These files stand one after the other in one module, behind host.js,
// state.js and page.js.

const RUN_RATE = 4;              // moments a second, when it plays

function runKeyAction(event, actions) {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.target.matches("select, input, textarea")) return null;
  const { key, shiftKey } = event;
  const list = event.target.matches("[role=listbox]");
  if (key === "ArrowRight") return shiftKey ? actions.change : actions.step;
  if (key === "ArrowLeft") return shiftKey ? actions.backChange : actions.back;
  if (key === "ArrowDown" && list) return actions.step;
  if (key === "ArrowUp" && list) return actions.back;
  if (key === "Home") return actions.first;
  if (key === "End") return actions.last;
  if (key === " " && !event.target.matches("button")) return actions.play;
  return null;
}

// One run in the page, and the moment that it shows. `painted` is called after each frame.
function openRun(wire, start, id, painted) {
  const run = readRun(wire);
  let k = clamp(start, run.last), frame = 0, alive = true, timer = 0;
  const stop = () => { clearInterval(timer); timer = 0; head.playing(false); };
  function move(to) {
    k = clamp(to, run.last);
    if (!frame) frame = requestAnimationFrame(paint);
  }
  const seek = (to) => { stop(); move(to); };
  const actions = {
    first: () => seek(0),
    last: () => seek(run.last),
    step: () => seek(k + 1),
    back: () => seek(k - 1),
    change: () => seek(nextRunChange(run, k)),
    backChange: () => seek(previousRunChange(run, k)),
    turn: () => seek(nextRunKind(run, k, "turn", "outcome")),
    tool: () => seek(nextRunKind(run, k, "tool")),
    play() {
      if (timer) return stop();
      if (k === run.last) move(0);
      timer = setInterval(() => { if (k < run.last) move(k + 1); else stop(); }, 1000 / RUN_RATE);
      head.playing(true);
    },
  };
  const head = runHead(run, actions);
  const lanes = runLanes(run, seek), strip = runStrip(run), list = runList(run, seek, id);
  const spoken = runSpoken(run, () => timer !== 0);
  const detail = runStream(), left = runLeft(), screens = runScreens();
  const panels = [head, lanes, strip, spoken, list, detail, left, screens];
  function paint() {
    frame = 0;
    if (!alive) return;
    const state = runStateAt(run, k);
    for (const panel of panels) panel.paint(state);
    painted(state, run);
  }
  const size = new ResizeObserver(() => { if (!frame) frame = requestAnimationFrame(paint); });
  return {
    run,
    actions,
    seek,
    now: () => k,
    nodes: [head.root, lanes.root, strip.root, spoken.root,
      make("div", "run-body", list.root, detail.root, left.root), screens.root, spoken.region],
    begin() { size.observe(list.box); paint(); },
    close() {
      alive = false;
      stop();
      spoken.stop();
      size.disconnect();
      cancelAnimationFrame(frame);
    },
  };
}

// The entry. Of the model it uses get, on, set and save_changes, so that a page without a kernel
// can stand in for one.
function render({ model, el }) {
  const id = `ags-run-${Math.random().toString(36).slice(2)}`;
  const root = make("div", " run-root"), part = make("div", "run-part");
  root.className = "ags ags-run";
  const whatIf = runWhatIf(model, () => view);
  let view = null, saved = model.get("index"), telling = 0, alive = true;

  function painted(state, run) {
    root.dataset.gate = state.gate.state;
    whatIf.paint(state, run);
    if (state.k !== saved && !telling) telling = setTimeout(tell);
  }
  function tell() {
    telling = 0;
    if (view.now() === saved) return;
    saved = view.now();
    model.set("index", saved);
    model.save_changes();
  }
  function show(start) {
    const focused = part.contains(document.activeElement);
    view?.close();
    view = openRun(model.get("trace"), start, id, painted);
    part.replaceChildren(...view.nodes);
    root.setAttribute("aria-label", `run stepper: ${plain(clip(view.run.title, 120))}`);
    view.begin();
    if (focused) root.focus({ preventScroll: true });
  }
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  const leave = [keepKeys(root)];
  root.addEventListener("keydown", (event) => {
    const action = runKeyAction(event, view.actions);
    if (!action) return;
    event.preventDefault();
    action();
  });
  model.on("change:index", () => {
    const to = clamp(model.get("index"), view.run.last);
    if (!alive || to === saved) return;
    saved = to;
    view.seek(to);
  });
  model.on("change:trace", () => { if (alive) show(view.now()); });
  root.append(part, whatIf.root);
  el.append(root);
  leave.push(followTheme(root));
  show(saved);
  return () => {
    alive = false;
    for (const each of leave) each();
    view.close();
    clearTimeout(telling);
  };
}

export default { render };
