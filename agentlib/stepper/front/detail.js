// The panels that show what a state holds: its sentence, texts, buffers and raw event.
// What the last event changed is marked in each.

const TAIL = 2000;              // characters of a long buffer that are shown unasked
const RAW_PART = 4000;          // bytes of a long event that are shown unasked
const MOST_BUFFERS = 24;        // buffers of one sort that are shown at once
// The sentence of the current event.
function captionPanel(trace) {
  const root = make("div", "caption");
  return { root, paint(state) { setText(root, describe(trace, state)); } };
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
      const lines = inner.textContent.length > 80 || before.shown.split("\n", 4).length > 3;
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
      setText(size, `${number(state.length)} / ${number(buffer.limit)}`);
      setAttribute(meter, "aria-valuenow", Math.min(state.length, buffer.limit));
      fill.style.transform = `scaleX(${part})`;
      meter.classList.toggle("ags-high", part > 0.8);
      root.classList.toggle("ags-touched", touched === buffer);
      fate.classList.toggle("ags-is-done", state.done);
      const progress = state.done
        ? "✓ arguments done: progress only: one string is complete, the response is not"
        : "fragments are still arriving; not parsed";
      setText(fate, { closed: progress, released: "✓ released with the whole response",
        discarded: "✕ discarded with the whole response" }[gate.state]);
    },
  };
}

function bufferPanel(trace) {
  const label = make("div", "unseen", "Pending argument buffers");
  const list = make("div", "cards");
  const paint = cards(list, make("div", "card empty", "no call so far"), bufferCard);
  let touched = null;
  return {
    root: named(make("div", "section", label, list), label, "buffers"),
    // What the event changed is brought into sight, where the column holds more than fits.
    reveal(column) {
      if (!touched || list.childNodes.length < 2) return;
      const card = list.querySelector(".ags-touched");
      const off = card.offsetTop - column.scrollTop;
      if (off < 0 || off + card.offsetHeight > column.clientHeight) {
        column.scrollTop = card.offsetTop - 8;
      }
    },
    paint(state) {
      const calls = state.buffers.filter(({ buffer }) => buffer.kind === "arguments");
      list.classList.toggle("ags-many", calls.length > 2);
      setText(label, { closed: "Pending argument buffers", released: "Argument buffers · released",
        discarded: "Argument buffers · discarded" }[state.gate.state]);
      const before = touched;
      touched = calls.find(({ buffer }) => buffer === trace.buffers[state.touched])?.buffer ?? null;
      paint(calls, { gate: state.gate, touched });
      return touched !== before;
    },
  };
}

function rawPanel(trace) {
  const title = make("span", "");
  const before = make("span"), mark = make("mark", "mark just"), after = make("span");
  const text = make("div", "raw-text", before, mark, after);
  const more = make("button", "more-text");
  const form = make("button", "form", "indent");
  form.type = more.type = "button";
  form.title = "show the event indented, or as it was received";
  form.addEventListener("click", () => { indented = !indented; show(); });
  more.addEventListener("click", () => { whole = true; show(); });
  text.tabIndex = 0;
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", "raw event");
  const label = make("div", "label", title, form);
  let now = null, indented = false, whole = false;

  function show() {
    const { k } = now;
    const received = rawAt(trace, k, whole ? Infinity : RAW_PART);
    const raw = indented ? indentJson(received) : received;
    const none = trace.raw ? "there is no event here" : "…";
    const grown = now.buffers.find(({ grew, buffer }) =>
      grew && buffer === trace.buffers[now.touched]);
    const [from, to] = fragmentRange(raw, grown?.buffer.text.slice(grown.fresh, grown.end))
      ?? [raw.length, raw.length];
    setText(before, raw.slice(0, from) || none);
    setText(mark, raw.slice(from, to));
    setText(after, raw.slice(to));
    const far = from > 200 && to > from;
    if (far || text.moved) text.scrollTop = far ? Math.max(0, mark.offsetTop - 30) : 0;
    text.moved = far;
    const left = k >= 1 && k <= trace.count && !whole ? rawSize(trace, k) - RAW_PART : 0;
    more.hidden = left <= 0;
    setText(more, `${number(left)} more bytes: show all`);
    setAttribute(form, "aria-pressed", indented);
  }

  return {
    root: make("div", "raw", label, text, more),
    paint(state) {
      const { k } = (now = state);
      whole = false;
      setText(title, k >= 1 && k <= trace.count
        ? `raw event ${number(k)} · ${plural(rawSize(trace, k), "byte")}` : "raw event");
      show();
    },
  };
}
