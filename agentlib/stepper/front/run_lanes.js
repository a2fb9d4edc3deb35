// The header and the lanes of the run stepper: who does what, on one axis of moments and seconds.
// A panel is {root, paint(state)}; painting touches only what changed.

const RUN_LANE_NAMES = {
  turn: "turn", model: "model", gate: "gate", tools: "tools", user: "user sees",
};
const RUN_BAR_WORDS = {
  turn: "turn", opening: "opening", "first event": "waits for the first event",
  streaming: "streams", closed: "gate closed", released: "released", discarded: "discarded",
  tool: "runs", queue: "waits for a place", approval: "a person is asked",
  draft: "draft, not committed",
  committed: "committed", kept: "kept from the user", repair: "asked again",
};

const RUN_FLIP = 0.86;           // the part of the axis behind which a label has no room

function runButton(label, hint, action, name = "") {
  const button = make("button", `run-button ${name}`.trim(), label);
  button.type = "button";
  button.title = hint;
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") action();
  });
  return button;
}

function runHead(run, actions) {
  const place = make("span", "run-place");
  const button = (name, label, hint, style) => {
    const made = runButton(label, hint, actions[name], style);
    made.dataset.action = name;
    return made;
  };
  const first = button("first", "|◀", "to the start (Home)");
  first.setAttribute("aria-label", "to the start");
  const back = button("back", "◀ back", "one moment back (Left)");
  const step = button("step", "▶ step", "one moment on (Right)", "run-primary");
  const turn = button("turn", "▶| next turn", "to where the next turn begins (Shift+Right)");
  const tool = button("tool", "▶| tool", "to where the next tool begins");
  const play = button("play", "▷ play", "play or pause (Space)");
  const controls = make("div", "run-controls", first, back, step, turn, tool, play, place);
  controls.setAttribute("role", "group");
  controls.setAttribute("aria-label", "controls");
  const title = make("div", "run-title", stream("run-name", run.title, 120),
    make("div", "run-under", stream("", run.subtitle, 160)));
  return {
    root: make("div", "run-head", title, controls),
    playing: (on) => setText(play, on ? "❚❚ pause" : "▷ play"),
    paint({ k }) {
      setText(place, runPlace(run, k));
      for (const each of [first, back]) setAttribute(each, "aria-disabled", k === 0);
      setAttribute(step, "aria-disabled", k === run.last);
      setAttribute(turn, "aria-disabled", nextRunKind(run, k, "turn", "outcome") === k);
      setAttribute(tool, "aria-disabled", nextRunKind(run, k, "tool") === k);
    },
  };
}

// For the eye and the mouse: the list of moments says the same to keys and screen readers.
function runLanes(run, go, name = "") {
  const bars = [];
  const cursor = make("div", "run-cursor");
  const tracks = make("div", "run-tracks", ...run.lanes.map((lane) => track(lane)), cursor);
  const root = make("div", `run-lanes ${name}`.trim(), tracks);
  root.setAttribute("aria-hidden", "true");

  function track(lane) {
    const own = run.bars.filter((bar) => bar.lane === lane);
    const rows = 1 + own.reduce((most, { row }) => Math.max(most, row), 0);
    const line = make("div", "run-line", ...own.map(bar));
    line.style.setProperty("--rows", rows);
    return make("div", `run-lane run-lane-${lane}`,
      make("span", "run-lane-name", RUN_LANE_NAMES[lane]), line);
  }

  function bar(each) {
    const node = make("div", `run-bar run-is-${each.kind.replaceAll(" ", "-")}`);
    const label = make("bdi", "run-bar-label");
    const from = run.place[each.start], to = run.place[each.end];
    node.style.left = `${from * 100}%`;
    node.style.setProperty("--row", each.row);
    node.style.setProperty("--wide", `${Math.max(0, to - from) * 100}%`);
    node.classList.toggle("ags-run-point", each.start === each.end);
    // A label beside its bar stands on the other side where the axis ends.
    node.classList.toggle("ags-run-flip", to > RUN_FLIP);
    node.title = `${plain(clip(each.label, 60))} ${RUN_BAR_WORDS[each.kind] ?? ""}`.trim();
    node.append(make("div", "run-fill"), label);
    bars.push({ ...each, node, words: label, fill: node.firstChild, from, to, shown: "" });
    return node;
  }

  function seek(event) {
    const box = cursor.parentElement.querySelector(".ags-run-line").getBoundingClientRect();
    if (box.width) go(nearestMoment(run, (event.clientX - box.left) / box.width));
  }
  if (go) {
    tracks.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      tracks.setPointerCapture(event.pointerId);
      seek(event);
    });
    tracks.addEventListener("pointermove", (event) => {
      if (tracks.hasPointerCapture(event.pointerId)) seek(event);
    });
  }
  return {
    root,
    paint({ k }) {
      cursor.style.setProperty("--at", run.place[Math.min(k, run.last)]);
      for (const each of bars) {
        const now = each.start > k ? "later" : each.end > k ? "open" : "past";
        const done = now === "later" ? 0 : now === "past" ? 1
          : (run.place[k] - each.from) / (each.to - each.from || 1);
        each.fill.style.width = `${done * 100}%`;
        if (each.shown !== now) each.node.dataset.when = each.shown = now;
        const more = each.more && each.known <= k ? ` · ${each.more}` : "";
        setText(each.words, now === "later" && each.kind !== "turn" ? ""
          : clip(each.label + more, 60));
      }
    },
  };
}
