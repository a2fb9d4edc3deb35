// The what-if row: edits of the stream at the current event, and what the gate says then, beside
// what it said before. The kernel makes the edits: the row asks with `edits`, `whatif` answers.

const FRAGMENT_LINES = 3;
// A kernel that is busy with another cell, or gone, gives no answer: the row says so after these.
const ANSWER_SECONDS = 15;
const EDITS = [
  ["cut", "cut here", "end the stream after this event"],
  ["drop", "drop", "leave this event out"],
  ["double", "double", "send this event twice"],
  ["swap", "swap with next", "send this event after the one that follows it"],
];

// The fragment of an event: what stands at the first of these paths that leads to a string.
function fragmentAt(raw, places) {
  let native;
  try { native = JSON.parse(raw); } catch { return null; }
  for (const path of places) {
    const value = path.reduce((found, step) => found?.[step], native);
    if (typeof value === "string") return value;
  }
  return null;
}

function plainButton(label, hint, action, name = "") {
  const button = make("button", `button ${name}`.trim(), label);
  button.type = "button";
  button.title = hint;
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") action();
  });
  return button;
}

function whatIfPanel(model, seek) {
  const label = make("span", "label", "What if");
  const root = named(make("div", "whatif"), label, "whatif");
  if (!model.get("whatif")) {
    root.append(make("div", "whatif-row", label, make("span", "faint",
      "To edit this stream, open it in a notebook: there a kernel can answer.")));
    return { root, paint() {} };
  }
  let state = null, trace = null, asking = "", form = null, waiting = 0;

  const place = make("span", "faint");
  const buttons = Object.fromEntries(EDITS.map(([name, text, hint]) =>
    [name, plainButton(text, hint, () => ask(name, [state.k]))]));
  buttons.edit = plainButton("edit fragment…", "send another text in this event", editFragment);
  buttons.stop = plainButton("stop reason…", "let the response stop otherwise", editStop);
  const row = make("div", "whatif-row", label, ...Object.values(buttons), place);
  const slot = make("div", "whatif-form");
  const alarm = make("div", "whatif-error");
  const answer = answerPanel(seek, () => ask(null, [], -1), () => ask(null, [], 0));
  const spoken = make("div", "unseen");
  alarm.setAttribute("role", "alert");
  spoken.setAttribute("aria-live", "polite");
  root.append(row, slot, alarm, answer.root, spoken);

  // Ask for one edit more, or for the first `keep` edits only; -1 is all but the last.
  function ask(name, args, keep) {
    if (asking) return;
    const done = model.get("whatif").edits;
    const wanted = name ? [...done, [name, args]] : done.slice(0, keep);
    asking = name ? `${name} ${args[0]}` : keep ? "undo" : "reset";
    close();
    setText(alarm, "");
    waiting = setTimeout(giveUp, 1000 * ANSWER_SECONDS);
    model.set("edits", wanted);
    model.save_changes();
    update();
  }

  // An answer that comes later is shown all the same.
  function giveUp() {
    asking = "";
    setText(alarm, `No answer for ${ANSWER_SECONDS} seconds: the kernel is busy with another cell, `
      + "or gone. Wait for it, or run the cell again.");
    update();
  }

  function open(title, field, apply, focus = field) {
    form = make("form", "whatif-open", make("label", "whatif-title", title, field),
      plainButton("apply", "make this edit", () => form.requestSubmit(), "primary"),
      plainButton("cancel", "leave it as it is (Escape)", () => close(true)));
    form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.stopPropagation(); close(true); }
      if (event.key === "Enter" && !event.shiftKey && event.target === field) {
        event.preventDefault();
        apply();
      }
    });
    slot.replaceChildren(form);
    focus.focus();
  }

  function close(back) {
    if (!form) return;
    const held = form.contains(document.activeElement);
    const opener = form.opener;
    form = null;
    slot.replaceChildren();
    if (held || back) opener.focus();
  }

  function editFragment() {
    const { places, limit } = model.get("whatif");
    const text = fragmentAt(rawAt(trace, state.k), places);
    if (text === null || text.length > limit) {
      setText(alarm, text === null ? `Event ${number(state.k)} carries no text fragment.`
        : `A fragment of more than ${number(limit)} characters is edited by code.`);
      return;
    }
    const k = state.k;
    const field = make("textarea", "whatif-text");
    field.value = text;
    field.rows = FRAGMENT_LINES;
    field.maxLength = limit;
    field.spellcheck = false;
    open(`fragment of event ${number(k)}`, field, () => ask("edit", [k, field.value]));
    form.opener = buttons.edit;
  }

  function editStop() {
    const field = make("select", "speed reasons");
    for (const reason of model.get("whatif").reasons) field.append(new Option(reason, reason));
    open("the response stops with", field, () => ask("stop", [field.value]));
    form.opener = buttons.stop;
  }

  function can(name) {
    const { k } = state, { count } = trace, event = k >= 1 && k <= count;
    if (asking) return false;
    if (name === "cut") return k <= count;
    if (name === "swap") return event && k < count;
    if (name === "stop") return model.get("whatif").reasons.length > 0;
    return event;
  }

  function update() {
    if (!state) return;
    for (const [name, button] of Object.entries(buttons)) {
      setAttribute(button, "aria-disabled", !can(name));
    }
    const where = state.k > trace.count ? "at the end of the stream"
      : state.k ? `at event ${number(state.k)}` : "before the first event";
    setText(place, asking ? "waiting for the kernel …" : where);
    answer.busy(Boolean(asking));
  }

  model.on("change:whatif", () => {
    const told = model.get("whatif");
    const did = asking;
    asking = "";
    clearTimeout(waiting);
    setText(alarm, told.error ? clip(told.error, 300) : "");
    answer.paint(told);
    update();
    const undone = told.edits.length ? "" : "The stream is as it was recorded. ";
    setText(spoken, told.error || !did ? "" : `${did}: ${undone}${answer.sentence(told)}`);
    // A button that is gone cannot keep the focus.
    if (!told.edits.length && answer.held()) buttons.cut.focus();
  });
  answer.paint(model.get("whatif"));

  return {
    root,
    paint(next, of) {
      if (state && next.k !== state.k) { close(); setText(alarm, ""); }
      state = next;
      trace = of;
      update();
    },
  };
}

// Both verdicts, where they differ first, and the edits as code.
function answerPanel(seek, undo, reset) {
  const verdicts = ["before", "now"].map((name) => {
    const icon = make("span", "gate-icon"), text = make("span");
    return { name, icon, text, root: make("div", "verdict", make("span", "chip-word", name), icon,
      text) };
  });
  const differ = make("span");
  const show = plainButton("show it", "go to that event", () => seek(Number(show.dataset.k)));
  const code = make("code", "whatif-code");
  const copied = make("span", "faint");
  const copy = plainButton("copy", "copy the line", copyCode);
  const changes = [plainButton("undo", "take the last edit back", undo),
    plainButton("reset", "take all edits back", reset)];
  const root = make("div", "whatif-answer", ...verdicts.map((verdict) => verdict.root),
    make("div", "whatif-row", make("span", "chip-word", "differ"), differ, show),
    make("div", "whatif-row", make("span", "chip-word", "as code"), code, copy),
    make("div", "whatif-row", ...changes, copied));
  code.tabIndex = 0;
  code.setAttribute("role", "group");
  code.setAttribute("aria-label", "the edits as code");
  copied.setAttribute("aria-live", "polite");
  // Keys that move a caret or a selection within the line are no steps.
  code.addEventListener("keydown", (event) => {
    if (event.shiftKey && event.key.startsWith("Arrow")) event.stopPropagation();
  });

  function copyCode() {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    const written = navigator.clipboard?.writeText(code.whole) ?? Promise.reject(new Error());
    written.then(() => setText(copied, "copied"),
      () => setText(copied, "selected: copy it with the keys of your browser"));
  }

  return {
    root,
    held: () => root.contains(document.activeElement),
    sentence: (told) => (told.edits.length
      ? `now ${told.now.text}. Before ${told.before.text}. They differ ${told.difference}.` : ""),
    busy(on) {
      setAttribute(root, "aria-busy", on);
      for (const button of changes) setAttribute(button, "aria-disabled", on);
    },
    paint(told) {
      root.hidden = !told.edits.length;
      setText(copied, "");
      if (root.hidden) return;
      for (const { name, icon, text, root: line } of verdicts) {
        const { state, text: words } = told[name];
        line.dataset.state = state;
        icon.replaceChildren(draw(ICONS[state], "icon", 13));
        setText(text, clip(words, 400));
      }
      setText(differ, told.difference);
      show.hidden = told.differs === null;
      show.dataset.k = told.differs ?? 0;
      code.whole = told.code;
      setText(code, clip(told.code, 4000));
    },
  };
}
