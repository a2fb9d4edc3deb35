// What if: a button for each change of a run. The kernel runs the recording again with the change;
// the run as it was stands below the lanes, for comparison.

const RUN_CHANGES = {
  stop: ["stop the run here", "the caller cancels the run at this moment"],
  cut: ["cut the stream here", "the stream of this turn ends after this moment"],
  deny: ["deny the approval", "the person says no, where the next approval is answered"],
  fail: ["the tool fails", "the tool that runs, or is the next to run, raises"],
  twice: ["resume twice", "the saved run is resumed once more after its end"],
};

// The moment that a change is about, where it is asked for at k; null where it is not possible.
export function runTarget(targets, name, k) {
  const found = (targets?.[name] ?? []).find(([from, to]) => from <= k && k <= to);
  return found ? found[2] : null;
}

function runWhatIf(model, view) {
  const before = make("div", "run-before"), words = make("div", "run-answer");
  words.setAttribute("aria-live", "polite");
  const buttons = new Map(Object.entries(RUN_CHANGES).map(([name, [label, hint]]) =>
    [name, runButton(label, hint, () => ask(name))]));
  const undo = runButton("as it was", "take the change back", () => send([]));
  const row = make("div", "run-changes", make("span", "run-caption", "what if"),
    ...buttons.values(), undo);
  const root = make("div", "run-whatif", before, words, row);
  let old = null;

  function ask(name) {
    const target = runTarget(model.get("whatif").targets, name, view().now());
    if (target !== null) send([name, target]);
  }
  function send(change) {
    setText(words, change.length ? "the run is run again …" : "");
    model.set("change", change);
    model.save_changes();
  }
  function show() {
    const { lines = [], error = "", before: wire } = model.get("whatif") ?? {};
    old = wire ? runLanes(readRun(wire), null, "run-small") : null;
    before.replaceChildren(...(old ? [make("div", "run-caption", "as it was"), old.root] : []));
    old?.paint({ k: wire.last });
    words.replaceChildren(...(error ? [error] : lines).map((line) =>
      stream("run-answer-line", line, 240)));
    root.classList.toggle("ags-run-changed", Boolean(wire));
  }
  model.on("change:whatif", () => { show(); });
  show();
  return {
    root,
    paint({ k }) {
      const whatif = model.get("whatif") ?? {};
      row.hidden = !whatif.targets && !(model.get("change") ?? []).length;
      const changed = Boolean((model.get("change") ?? []).length);
      for (const [name, button] of buttons) {
        button.hidden = changed;
        setAttribute(button, "aria-disabled", runTarget(whatif.targets, name, k) === null);
      }
      undo.hidden = !changed;
    },
  };
}
