// The panels that show what a state holds: its sentence, texts, buffers, gate, raw event and notes.

const TAIL = 2000;              // characters of a long buffer that are shown unasked
const RAW_PART = 20000;         // bytes of a long event that are shown unasked
const MOST_BUFFERS = 24;        // buffers of one sort that are shown at once
const STATUS = {
  pass: ["✓", "passed"], fail: ["✕", "failed"], waiting: ["·", "waiting"],
  not_checked: ["○", "not checked"], not_applicable: ["–", "does not apply"],
};

// The sentence of the current event: seen at once, and spoken at a bearable pace.
function spokenPanel(trace, playing) {
  const seen = make("div", "caption");
  const spoken = make("div", "unseen");
  spoken.setAttribute("aria-live", "polite");
  let timer = 0, state = null;
  return {
    root: seen,
    spoken,
    stop: () => clearTimeout(timer),
    paint(next) {
      const moved = state && state.k !== next.k;
      state = next;
      setText(seen, describe(trace, next));
      if (!moved || timer) return;
      timer = setTimeout(() => {
        timer = 0;
        setText(spoken, announcement(trace, state));
      }, playing() ? 2000 : 150);
    },
  };
}

// A growing text: its end, the newest fragment marked, and a button for what is left out.
function growingText(label) {
  const before = make("span");
  const newest = make("mark", "mark");
  const more = make("button", "more-text");
  const inner = make("div", "text-in", more, before, newest);
  const root = make("div", "text", inner);
  let all = false, last = null;
  more.type = "button";
  more.addEventListener("click", () => { all = !all; api.paint(last); });
  const api = {
    root,
    paint(state) {
      const { buffer, end, fresh } = (last = state);
      const from = all || end <= TAIL ? 0 : wholeBefore(buffer.text, end - TAIL);
      setText(before, buffer.text.slice(from, Math.max(from, fresh)));
      setText(newest, buffer.text.slice(Math.max(from, fresh), end));
      newest.classList.toggle("ags-just", state.grew);
      root.classList.toggle("ags-open", !state.done);
      more.hidden = end <= TAIL;
      setText(more, all ? "show the end only" : `… ${number(from)} before this: show all`);
      const lines = end - from > 240 || before.shown.split("\n", 6).length > 5;
      if (lines === root.hasAttribute("tabindex")) return;
      if (!lines) { root.removeAttribute("tabindex"); root.removeAttribute("role"); return; }
      root.tabIndex = 0;
      root.setAttribute("role", "group");
      root.setAttribute("aria-label", label);
    },
  };
  return api;
}

// Cards of buffers of one sort, kept by buffer. `fill` makes a card, which paints itself.
function cards(root, empty, fill) {
  const known = new Map();
  const more = make("div", "faint");
  return (states, context) => {
    const visible = states.slice(-MOST_BUFFERS);
    const nodes = visible.map((state) => {
      if (!known.has(state.buffer)) known.set(state.buffer, fill(state.buffer));
      const card = known.get(state.buffer);
      card.paint(state, context);
      return card.root;
    });
    const left = states.length - visible.length;
    if (left) nodes.unshift(setText(more, `${plural(left, "earlier one")} not shown`));
    if (!nodes.length) nodes.push(empty);
    const shown = root.childNodes;
    if (nodes.length === shown.length && nodes.every((node, i) => node === shown[i])) return;
    root.replaceChildren(...nodes);
  };
}

function textPanel() {
  const label = make("div", "label");
  const list = make("div", "texts");
  const paint = cards(list, make("div", "text empty", "no text so far"), (buffer) => {
    const text = growingText(`${buffer.kind} so far`);
    text.root.classList.add("ags-prose");
    if (buffer.kind === "text") return text;
    const root = make("div", "tagged", make("span", "tag", buffer.kind), text.root);
    return { root, paint: text.paint };
  });
  return {
    root: named(make("div", "section", label, list), label, "text"),
    paint(state) {
      const fate = { closed: "draft, not committed", discarded: "draft, not committed: discarded",
        released: "final text of a released response" }[state.gate.state];
      setText(label, `Text preview · ${fate}`);
      paint(state.buffers.filter(({ buffer }) => buffer.kind !== "arguments"));
    },
  };
}

function chip(word, value) {
  if (value == null) return "";
  const id = stream("chip-id", value || "(empty)", 64);
  return make("span", "chip", make("span", "chip-word", word), id);
}

// Name a group by the words of its label, which change with the state.
function named(root, label, name) {
  label.id = `ags-${name}-${Math.random().toString(36).slice(2)}`;
  root.setAttribute("role", "group");
  root.setAttribute("aria-labelledby", label.id);
  return root;
}

function bufferCard(buffer) {
  const name = plain(clip(buffer.name || "(no name)", 60));
  const text = growingText(`arguments of ${name} so far`);
  const size = make("span", "size");
  const fill = make("div", "fill");
  const meter = make("div", "meter", fill);
  const fate = make("div", "fate");
  meter.setAttribute("role", "meter");
  meter.setAttribute("aria-label", `size of ${name} against its limit`);
  meter.setAttribute("aria-valuemin", 0);
  meter.setAttribute("aria-valuemax", buffer.limit);
  const root = make("div", "card",
    make("div", "card-head", stream("call-name", buffer.name || "(no name)", 64),
      chip("item", buffer.item_id), chip("call", buffer.call_id), size),
    text.root, meter, fate);
  return {
    root,
    paint(state, { gate, touched }) {
      text.paint(state);
      const part = Math.min(1, state.length / buffer.limit);
      setText(size, `${number(state.length)} / ${number(buffer.limit)} characters`);
      setAttribute(meter, "aria-valuenow", Math.min(state.length, buffer.limit));
      fill.style.transform = `scaleX(${part})`;
      meter.classList.toggle("ags-high", part > 0.8);
      root.classList.toggle("ags-touched", touched === buffer);
      fate.classList.toggle("ags-is-done", state.done);
      const progress = state.done
        ? "✓ arguments done — progress only: one string is complete, the response is not"
        : "fragments are still arriving — not parsed";
      setText(fate, { closed: progress, released: "✓ released with the whole response",
        discarded: "✕ discarded with the whole response" }[gate.state]);
    },
  };
}

function bufferPanel(trace) {
  const label = make("div", "label", "Pending argument buffers");
  const list = make("div", "cards");
  const paint = cards(list, make("div", "card empty", "no call so far"), bufferCard);
  return {
    root: named(make("div", "section", label, list), label, "buffers"),
    paint(state) {
      const calls = state.buffers.filter(({ buffer }) => buffer.kind === "arguments");
      list.classList.toggle("ags-many", calls.length > 2);
      setText(label, { closed: "Pending argument buffers", released: "Argument buffers · released",
        discarded: "Argument buffers · discarded" }[state.gate.state]);
      paint(calls, { gate: state.gate, touched: trace.buffers[state.touched] });
    },
  };
}

function gatePanel(trace) {
  const icon = make("span", "gate-icon");
  const word = make("span", "gate-word");
  const headline = make("span", "headline");
  const head = make("div", "gate-head", icon, make("div", "", word, headline));
  const checks = trace.checks.map(([, title]) => {
    const glyph = make("span", "glyph");
    const status = make("span", "unseen");
    const detail = make("div", "finding");
    glyph.setAttribute("aria-hidden", "true");
    return { glyph, status, detail,
      root: make("li", "check", glyph, make("div", "", make("span", "", title), status, detail)) };
  });
  const list = make("ul", "checks", ...checks.map(({ root }) => root));
  list.setAttribute("aria-label", "checks of the gate");
  const calls = make("div", "released");
  const released = make("span", "counter");
  const executed = make("span", "counter", "executed ", make("b", "", "0"), " tools");
  const hasty = make("span", "counter hasty");
  const root = named(make("div", "gate", head, list, calls,
    make("div", "counters", released, executed, hasty)), head, "gate");
  let painted = -1;

  function paintGate({ gate, gateIndex, released: batch }) {
    if (painted === gateIndex) return;
    painted = gateIndex;
    root.dataset.state = gate.state;
    icon.replaceChildren(draw(ICONS[gate.state], "icon", 15));
    setText(word, GATE_WORD[gate.state]);
    setText(headline, clip(gate.headline, 600));
    checks.forEach(({ root: item, glyph, status, detail }, i) => {
      const [name, why] = gate.findings[i] ?? ["waiting", ""];
      item.className = `ags-check ags-${name}`;
      setText(glyph, STATUS[name][0]);
      const over = name === "waiting" && gate.state === "discarded";
      setText(status, `: ${over ? "not reached" : STATUS[name][1]}`);
      setText(detail, name === "fail" || name === "not_checked" ? clip(why, 600) : "");
      item.title = name === "fail" ? "" : plain(clip(why, 200));
    });
    calls.replaceChildren(...batch.map((call) => make("div", "call",
      make("div", "card-head", stream("call-name", call.name, 64), chip("call", call.call_id)),
      setText(make("div", "call-arguments"), clip(call.arguments, TAIL)))));
    released.replaceChildren("released ", make("b", "", number(batch.length)),
      batch.length === 1 ? " call" : " calls");
  }

  return {
    root,
    paint(state) {
      paintGate(state);
      const n = state.hasty.length;
      if (hasty.count === n) return;
      hasty.count = n;
      const where = n ? `: ${state.hasty.slice(-3).map((call) =>
        `${clip(call.name || "(no name)", 40)} at event ${number(call.at)}`).join(", ")}` : "";
      hasty.classList.toggle("ags-some", n > 0);
      hasty.replaceChildren("a hasty adapter would have executed ", make("b", "", number(n)),
        " by now", ...textNodes(where));
    },
  };
}

function rawPanel(trace) {
  const title = make("span", "raw-title");
  const peek = make("span", "raw-peek");
  const text = make("div", "raw-text");
  const more = make("button", "more-text");
  const forms = ["indented", "as received"].map((label) => {
    const button = make("button", "form", label);
    button.type = "button";
    button.addEventListener("click", () => { indented = label === "indented"; show(); });
    return button;
  });
  const choice = make("div", "forms", ...forms);
  choice.setAttribute("role", "group");
  choice.setAttribute("aria-label", "form of the raw event");
  text.tabIndex = 0;
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", "raw event");
  more.type = "button";
  more.addEventListener("click", () => { whole = true; show(); });
  const root = make("details", "raw", make("summary", "summary", title, peek), choice, text, more);
  let k = 0, indented = true, whole = false;
  root.addEventListener("toggle", () => show());

  function show() {
    if (!root.open) return;
    const raw = rawAt(trace, k, whole ? Infinity : RAW_PART);
    const none = trace.raw ? "there is no event here" : "…";
    setText(text, (indented ? indentJson(raw) : raw) || none);
    const left = k >= 1 && k <= trace.count && !whole ? rawSize(trace, k) - RAW_PART : 0;
    more.hidden = left <= 0;
    setText(more, `${number(left)} more bytes: show all`);
    forms.forEach((button, i) => setAttribute(button, "aria-pressed", (i === 0) === indented));
  }

  return {
    root,
    paint(state) {
      k = state.k;
      whole = false;
      const event = k >= 1 && k <= trace.count;
      const none = k ? `no event · ${clip(trace.end?.detail ?? "", 300)}`
        : "raw event · nothing read yet";
      setText(title, event ? `raw event ${number(k)} · ${clip(state.kind, 80)} · ` +
        plural(rawSize(trace, k), "byte") : none);
      setText(peek, event ? clip(rawAt(trace, k, 900), 220) : "");
      show();
    },
  };
}

function notesPanel(trace) {
  const notes = trace.notes.map((note) => setText(make("li", ""), clip(note, 600)));
  const root = make("ul", "notes", ...notes);
  root.setAttribute("aria-label", "notes");
  root.hidden = !trace.notes.length;
  return { root, paint() {} };
}
