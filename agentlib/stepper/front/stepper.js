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
  if (key === "g" || key === "G") return actions.gate;
  if (key === "h" || key === "H") return actions.hasty;
  if (event.target.matches("[role=listbox]")) {
    if (key === "ArrowDown") return actions.step;
    if (key === "ArrowUp") return actions.back;
  }
  if (key === " " && !event.target.matches("button, summary")) return actions.play;
  return null;
}

// What moves a view, by name. What a reader does to one stepper, `told` brings to those abreast of
// it: each does the same by itself, since in each the gate changes at another event.
function actionsOf(view, told) {
  const { trace, now, seek, move, play } = view;
  const acts = {
    first: () => seek(0),
    back: () => seek(now() - 1),
    step: () => seek(now() + 1),
    change: () => seek(nextChange(trace, now())),
    backChange: () => seek(previousChange(trace, now())),
    gate: () => seek(nextGateChange(trace, now()) ?? now()),
    hasty: () => seek(firstHasty(trace) ?? now()),
    last: () => seek(trace.last),
    part: (part) => seek(Math.round(part * trace.last)),
    on: (n) => move(now() + n),
  };
  const asked = Object.fromEntries(Object.entries(acts).map(([name, act]) =>
    [name, () => { act(); told({ name }); }]));
  return {
    ...asked,
    follow: ({ name, by }) => acts[name](by),
    go(k) {
      seek(k);
      told({ name: "part", by: trace.last ? now() / trace.last : 0 });
    },
    tick(n) {
      acts.on(n);
      told({ name: "on", by: n });
      return now() < trace.last;
    },
    play() {
      if (!play.on() && now() === trace.last) asked.first();
      play.toggle();
    },
  };
}

// One trace in the page: its panels, and the step that they show. `heard` speaks to the reader,
// `painted` is called after each frame, `told` with what the reader does.
function openView(wire, start, id, { heard, painted, told }) {
  const trace = readTrace(wire);
  let k = clamp(start, trace.last), frame = 0, alive = true, spoken = k;

  function move(to) {
    k = clamp(to, trace.last);
    if (!frame) frame = requestAnimationFrame(paint);
  }
  const seek = (to) => { play.stop(); move(to); };
  const play = player((n) => actions.tick(n), () => head.rate(), (on) => head.playing(on));
  const actions = actionsOf({ trace, now: () => k, seek, move, play }, told);
  const head = headPanel(trace, actions);
  const lanes = lanesPanel(trace, actions.go);
  const strip = stripPanel();
  const list = listPanel(trace, actions.go, id);
  const raw = rawPanel(trace);
  const texts = textPanel(), calls = bufferPanel(trace), caption = captionPanel(trace);
  const checks = checksPanel(trace, actions.go), notes = notesPanel(trace);
  const panels = [head, lanes, strip, list, raw, caption, texts, checks, notes];
  const known = knownColumn(caption.root, texts.root, calls.root);
  const body = make("div", "body", make("div", "column column-events", list.root, raw.root), known,
    make("div", "column column-gate", checks.root, notes.root));

  function paint() {
    frame = 0;
    if (!alive) return;
    const state = stateAt(trace, k);
    for (const panel of panels) panel.paint(state);
    if (calls.paint(state)) calls.reveal(known);
    if (k !== spoken) heard.later(() => announcement(trace, stateAt(trace, k)), play.on());
    spoken = k;
    painted(state, trace);
  }

  // The list and the lanes follow the room that they get.
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      (target === list.box ? list.resize(contentRect.height) : lanes.resize(contentRect.width));
    }
    move(k);
  });
  if (!trace.raw) unpackRaw(wire).then((raw) => { trace.raw = raw; move(k); });
  return {
    nodes: [head.root, lanes.root, strip.root, body],
    actions,
    seek,
    trace,
    now: () => k,
    // Once its nodes are in the page.
    begin() {
      for (const node of [list.box, lanes.axis]) sizes.observe(node);
      paint();
    },
    close() {
      alive = false;
      play.stop();
      sizes.disconnect();
      cancelAnimationFrame(frame);
    },
  };
}

function knownColumn(...panels) {
  const label = make("div", "label", "what is known now");
  const hint = make("div", "hint", "what the event changed is marked");
  const head = make("div", "label-row", label, hint);
  const column = make("div", "column column-known", head, ...panels);
  column.tabIndex = 0;
  return named(column, label, "known");
}

// The one live region: it speaks steps at a bearable pace, and everything else at once.
function announcer() {
  const root = make("div", "unseen");
  let timer = 0, next = null;
  root.setAttribute("aria-live", "polite");
  const stop = () => { clearTimeout(timer); timer = 0; };
  return {
    root,
    stop,
    say(words) { stop(); setText(root, words); },
    later(words, slowly) {
      next = words;
      const speak = () => { timer = 0; setText(root, next()); };
      if (!timer) timer = setTimeout(speak, slowly ? 2000 : 150);
    },
  };
}

// Those abreast of each other: what the reader does to one, all of the same group do.
function abreast(model, id, follow) {
  const heard = ({ detail }) => {
    if (detail.from !== id && detail.group === model.get("together")) follow(detail);
  };
  window.addEventListener("agentlib-step", heard);
  return {
    tell(did) {
      const group = model.get("together");
      const detail = { ...did, from: id, group };
      if (group) window.dispatchEvent(new CustomEvent("agentlib-step", { detail }));
    },
    close: () => window.removeEventListener("agentlib-step", heard),
  };
}

// A file that is dropped anywhere on the stepper is opened.
function takeDrops(root, drop) {
  const over = (on) => root.classList.toggle("ags-over", on);
  root.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    over(true);
  });
  root.addEventListener("dragleave", () => over(false));
  root.addEventListener("drop", (event) => {
    over(false);
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    event.stopPropagation();
    drop(event.dataTransfer.files[0]);
  });
}

// The entry. Of the model it uses get, on, set and save_changes, so that a page without a kernel
// can stand in for one.
function render({ model, el }) {
  const id = `ags-${Math.random().toString(36).slice(2)}`;
  const part = make("div", "part"), heard = announcer();
  const whatIf = whatIfPanel(model, (k) => view.seek(k), heard.say);
  const root = make("div", "root", make("div", "frame", part, whatIf.root, heard.root));
  const group = abreast(model, id, (did) => view.actions.follow(did));
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

  // The row below stays where it is, and so does the focus within it.
  function show(start) {
    const focused = part.contains(root.getRootNode().activeElement);
    view?.close();
    view = openView(model.get("trace"), start, id, { heard, painted, told: group.tell });
    part.replaceChildren(...view.nodes);
    root.setAttribute("aria-label", `stepper: ${plain(clip(view.trace.title, 120))}`);
    view.begin();
    if (focused) root.focus({ preventScroll: true });
  }

  root.className = "ags";
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  root.addEventListener("keydown", (event) => {
    const action = keyAction(event, view.actions);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
  if (model.get("whatif")) takeDrops(root, whatIf.drop);
  model.on("change:index", () => {
    const to = clamp(model.get("index"), view.trace.last);
    if (!alive || to === saved) return;
    saved = to;
    view.seek(to);
  });
  model.on("change:trace", () => { if (alive) show(view.now()); });
  el.append(root);
  const leave = [keepKeys(root), followTheme(root), group.close];
  saved = model.get("index");
  show(saved);
  return () => {
    alive = false;
    view.close();
    heard.stop();
    clearTimeout(telling);
    for (const each of leave) each();
  };
}

export default { render };
