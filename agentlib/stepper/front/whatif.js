// The row of what a reader can do with the stream: edit it at the current event, put a file of
// their own in its place, and pass the step on. The kernel makes the edits and opens the file: the
// row asks with `edits` or `file`, `whatif` answers.

const FRAGMENT_LINES = 3;
// A kernel that is busy with another cell, or gone, gives no answer: the row says so after these.
const ANSWER_SECONDS = 3;
const MOST_FILE_BYTES = 32_000_000;
const EDITS = [
  ["cut", "cut here", "end the stream after this event"],
  ["drop", "drop", "leave this event out"],
  ["double", "double", "send this event twice"],
  ["swap", "swap", "send this event after the one that follows it"],
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

function whatIfPanel(model, seek, say) {
  const label = make("span", "label", "What if");
  const root = named(make("div", "whatif"), label, "whatif");
  const row = make("div", "whatif-row", label);
  const shared = sharePanel(model, say);
  if (!model.get("whatif")) {
    row.append(make("span", "faint",
      "To edit this stream, or to step a file of your own, open it in a notebook."),
    make("span", "whatif-end", shared.button));
    root.append(shared.root, row);
    return { root, paint: shared.paint, drop() {} };
  }
  let state = null, trace = null, asking = "", form = null, waiting = 0;

  const place = make("span", "faint asking");
  const buttons = Object.fromEntries(EDITS.map(([name, text, hint]) =>
    [name, plainButton(text, hint, () => ask(name, [state.k]))]));
  buttons.edit = plainButton("edit…", "send another text in this event", editFragment);
  buttons.stop = plainButton("stop reason…", "let the response stop otherwise", editStop);
  const picker = make("input", "unseen picker");
  Object.assign(picker, { type: "file", hidden: true });
  picker.addEventListener("change", () => { drop(picker.files[0]); picker.value = ""; });
  const own = plainButton("your file", "step a recording of your own: choose it, or drop it here",
    () => picker.click(), "", "file");
  row.append(...Object.values(buttons), place,
    make("span", "whatif-end", own, shared.button), picker);
  const slot = make("div", "whatif-form");
  const alarm = make("div", "whatif-error");
  const answer = answerPanel(seek, () => ask(null, [], -1), () => ask(null, [], 0), say);
  root.append(answer.root, slot, alarm, shared.root, row);

  function complain(words) {
    setText(alarm, words);
    if (words) say(words);
  }

  function wait(what) {
    asking = what;
    close();
    complain("");
    clearTimeout(waiting);
    waiting = setTimeout(giveUp, 1000 * ANSWER_SECONDS);
    update();
  }

  // Ask for one edit more, or for the first `keep` edits only; -1 is all but the last.
  function ask(name, args, keep) {
    if (asking) return;
    const done = model.get("whatif").edits;
    wait(name ? `${name} ${args[0]}` : keep ? "undo" : "reset");
    model.set("edits", name ? [...done, [name, args]] : done.slice(0, keep));
    model.save_changes();
  }

  async function drop(file) {
    if (!file || asking) return;
    if (file.size > MOST_FILE_BYTES) {
      complain(`A file of more than ${number(MOST_FILE_BYTES)} bytes is opened by code: ` +
        "Stepper(path).");
      return;
    }
    wait(plain(clip(file.name, 80)));
    model.set("file", { name: file.name, data: new DataView(await file.arrayBuffer()) });
    model.save_changes();
  }

  // An answer that comes later is shown all the same.
  function giveUp() {
    asking = "";
    complain(`No answer for ${ANSWER_SECONDS} seconds: the kernel is busy with another cell, or ` +
      "was restarted. Wait for it, or run the cell again.");
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
      complain(text === null ? `Event ${number(state.k)} carries no text fragment.`
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
    setAttribute(own, "aria-disabled", Boolean(asking));
    setText(place, asking ? "waiting for the kernel …" : "");
    answer.busy(Boolean(asking));
  }

  model.on("change:whatif", () => {
    const told = model.get("whatif");
    const did = asking;
    asking = "";
    clearTimeout(waiting);
    answer.paint(told);
    update();
    const undone = told.edits.length ? "" : "The stream is as it was recorded. ";
    if (told.error) complain(clip(told.error, 300));
    else {
      complain("");
      if (did) say(`${did}: ${undone}${answer.sentence(told)}`);
    }
    // A button that is gone cannot keep the focus.
    if (!told.edits.length && answer.held()) buttons.cut.focus();
  });
  answer.paint(model.get("whatif"));

  return {
    root,
    drop,
    resize: answer.resize,
    stop: () => clearTimeout(waiting),
    paint(next, of) {
      if (state && next.k !== state.k) { close(); complain(""); }
      state = next;
      trace = of;
      shared.paint(next, of);
      update();
    },
  };
}
