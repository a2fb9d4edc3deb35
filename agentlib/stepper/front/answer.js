// The answer to an edit, the two streams as two lanes, and what passes a step on to somebody else.

// Both streams on one axis, where they differ first, and the edits as code.
function answerPanel(seek, undo, reset, say) {
  const lanes = ["before", "now"].map((name) => {
    const icon = make("span", "gate-icon"), text = make("span", "verdict-text");
    const axis = make("div", "verdict-axis");
    const root = make("div", "verdict", make("span", "chip-word", name), axis,
      make("div", "verdict-words", icon, text));
    return { name, icon, text, axis, root };
  });
  const differ = make("span", "differ");
  const show = plainButton("show it", "go to that event", () => seek(Number(show.dataset.k)));
  const code = make("code", "whatif-code");
  const copied = make("span", "faint");
  const copy = plainButton("copy", "copy the line", () => copyShown(code, code.whole, (words) => {
    setText(copied, words);
    say(words);
  }));
  const changes = [plainButton("undo", "take the last edit back", undo),
    plainButton("reset", "take all edits back", reset)];
  const root = make("div", "whatif-answer", ...lanes.map((lane) => lane.root),
    make("div", "whatif-row", make("span", "chip-word", "differ"), differ, show),
    make("div", "whatif-row", make("span", "chip-word", "as code"), code, copy, ...changes,
      copied));
  let told = null, width = 0;
  code.tabIndex = 0;
  code.setAttribute("role", "group");
  code.setAttribute("aria-label", "the edits as code");
  // Keys that move a caret or a selection within the line are no steps.
  code.addEventListener("keydown", (event) => {
    if (event.shiftKey && event.key.startsWith("Arrow")) event.stopPropagation();
  });

  function drawLanes() {
    if (!told?.edits.length || !width) return;
    const last = Math.max(told.before.last, told.now.last);
    for (const { name, axis } of lanes) axis.replaceChildren(answerLane(told[name], last, width));
  }

  const sizes = new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === width) return;
    width = contentRect.width;
    drawLanes();
  });
  sizes.observe(lanes[0].axis);
  return {
    root,
    held: () => root.contains(root.getRootNode().activeElement),
    sentence: ({ edits, now, before, difference }) => (edits.length
      ? `now ${now.text}; ${now.hasty_text}. Before ${before.text}; ${before.hasty_text}. ` +
        `They differ ${difference}.` : ""),
    busy(on) {
      setAttribute(root, "aria-busy", on);
      for (const button of changes) setAttribute(button, "aria-disabled", on);
    },
    paint(next) {
      told = next;
      root.hidden = !told.edits.length;
      setText(copied, "");
      if (root.hidden) return;
      for (const { name, icon, text, root: line } of lanes) {
        const { state, text: words, hasty_text: hasty } = told[name];
        line.dataset.state = state;
        text.dataset.name = name;
        icon.replaceChildren(draw(ICONS[state], "icon", 13));
        setText(text, `${clip(words, 400)} · ${hasty}`);
      }
      setText(differ, told.difference);
      show.hidden = told.differs === null;
      show.dataset.k = told.differs ?? 0;
      code.whole = told.code;
      setText(code, clip(told.code, 4000));
      drawLanes();
    },
  };
}

// The step as something to pass on: a line of code, or in a saved page a link to it.
function sharePanel(model, say) {
  const code = make("code", "whatif-code");
  const said = make("span", "faint");
  const root = make("div", "whatif-row shared", code, said);
  const button = plainButton("share step", "copy what opens this step again", share, "", "share");
  let k = 0;
  root.hidden = true;
  code.tabIndex = 0;
  code.setAttribute("role", "group");
  code.setAttribute("aria-label", "what opens this step again");

  function share() {
    const whatif = model.get("whatif");
    const text = whatif ? `${whatif.shown}.seek(${k})` : linkTo(model.get("place"), k);
    root.hidden = false;
    setText(code, clip(text, 4000));
    copyShown(code, text, (words) => { setText(said, words); say(words); });
  }

  return {
    root,
    button,
    paint(state) {
      if (state.k !== k) root.hidden = true;
      k = state.k;
    },
  };
}

// The address of a step in a saved page; `place` is the number of its stepper there.
function linkTo(place, k) {
  return `${document.URL.split("#")[0]}#${place > 1 ? `stepper=${place}&` : ""}step=${k}`;
}

// The step that an address asks for, of the stepper of this number, or null.
function stepAsked(hash, place) {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const step = asked.get("step") ?? "";
  if (Number(asked.get("stepper") ?? 1) !== place || !/^\d{1,9}$/.test(step)) return null;
  return Number(step);
}
