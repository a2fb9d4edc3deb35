// The gate: the strip with its verdict, always in sight, and the list of its checks.

const STATUS = {
  pass: ["✓", "passed"], fail: ["✕", "failed"], waiting: ["·", "waiting"],
  not_checked: ["○", "not checked"], not_applicable: ["–", "does not apply"],
};

// The verdict, and the two counts that it is about. It is the group of the page named "gate".
function stripPanel() {
  const icon = make("span", "gate-icon");
  const word = make("span", "gate-word");
  const headline = make("span", "headline");
  const head = make("div", "gate-head", icon, make("div", "gate-says", word, headline));
  const released = make("b", "", "0"), calls = make("span", "", " calls");
  const hasty = make("b", "", "0");
  const ran = make("span", "counter hasty", "hasty adapter ran ", hasty);
  const counters = make("div", "counters",
    make("span", "counter", "released ", released, calls), ran);
  let painted = -1;
  return {
    root: named(make("div", "strip", head, counters), head, "gate"),
    paint({ gate, gateIndex, released: batch, hasty: acts }) {
      setText(hasty, number(acts.length));
      ran.classList.toggle("ags-some", acts.length > 0);
      if (painted === gateIndex) return;
      painted = gateIndex;
      icon.replaceChildren(draw(ICONS[gate.state], "icon", 15));
      setText(word, gate.state);
      setText(headline, clip(gate.headline, 600));
      head.title = plain(clip(gate.headline, 600));
      setText(released, number(batch.length));
      setText(calls, batch.length === 1 ? " call" : " calls");
    },
  };
}

// The checks in the order of the gate's table. Those that wait are one line, which unfolds them in
// their places. Each that is decided somewhere is a button that goes there.
function checksPanel(trace, go) {
  const decided = decidedAt(trace);
  const checks = trace.checks.map(([, title], i) => {
    const glyph = make("span", "glyph");
    const status = make("span", "unseen");
    const detail = make("span", "finding");
    glyph.setAttribute("aria-hidden", "true");
    const at = decided[i];
    const words = make("span", "", make("span", "check-title", title), status, detail);
    const body = make(at === null ? "div" : "button", "check-go", glyph, words);
    if (at !== null) {
      body.type = "button";
      body.addEventListener("click", () => go(at));
    }
    return { glyph, status, detail, body, at, root: make("li", "check", body) };
  });
  const list = make("ul", "checks", ...checks.map(({ root }) => root));
  const fold = make("button", "fold");
  const calls = make("div", "released");
  const label = make("div", "label", "the gate's checks");
  const hint = make("div", "hint", "click one to go where it is decided");
  let open = false, painted = null;
  fold.type = "button";
  fold.addEventListener("click", () => { open = !open; paintFold(painted.gate); });
  list.setAttribute("aria-label", "checks of the gate");

  function paintFold(gate) {
    const waiting = checks.filter((_, i) => statusOf(gate, i)[0] === "waiting");
    for (const { root } of waiting) root.hidden = !open;
    const what = gate.state === "discarded" ? "not reached" : "waiting for the end";
    fold.hidden = !waiting.length;
    setText(fold, `· ${number(waiting.length)} ${what} ${open ? "▾" : "▸"}`);
    setAttribute(fold, "aria-expanded", open);
  }

  const statusOf = (gate, i) => gate.findings[i] ?? ["waiting", ""];
  return {
    root: named(make("div", "section", label, hint, list, fold, calls), label, "checks"),
    paint(state) {
      const { gate, gateIndex, released: batch } = state;
      if (painted?.gateIndex === gateIndex) return;
      painted = state;
      checks.forEach(({ root, glyph, status, detail, body, at }, i) => {
        const [name, why] = statusOf(gate, i);
        root.className = `ags-check ags-${name}`;
        root.hidden = false;
        setText(glyph, STATUS[name][0]);
        const over = name === "waiting" && gate.state === "discarded";
        setText(status, `: ${over ? "not reached" : STATUS[name][1]}`);
        setText(detail, name === "fail" || name === "not_checked" ? clip(why, 600) : "");
        body.title = [plain(clip(why, 200)), at === null ? "" : `decided at ${
          at > trace.count ? "the end of the stream" : `event ${number(at)}`}`]
          .filter(Boolean).join(" · ");
      });
      paintFold(gate);
      calls.replaceChildren(...batch.map((call) => make("div", "call",
        make("div", "card-head", stream("call-name", call.name, 64), chip("call", call.call_id)),
        setText(make("div", "call-arguments"), clip(call.arguments, TAIL)))));
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
