// The panels of the run stepper that say what is so at a moment. Texts of a run are hostile: they
// reach the page as text nodes, their hidden characters as codes.

const RUN_ROW = 22;              // height of a row of the list, in pixels; see run.css
const RUN_SPARE = 6;             // rows kept ready above and below the visible ones
const RUN_FILTERS = {
  "all moments": () => true,
  "without deltas": (run, k) => isRunChange(run, k),
  "without the stream": (run, k) => !RUN_STREAM.has(runKind(run, k)),
};

function runStrip(run) {
  const word = make("b", "run-word"), headline = make("span", "run-headline");
  const counts = make("span", "run-counts");
  return {
    root: make("div", "run-strip", make("span", "run-verdict", word, headline), counts),
    paint(state) {
      const { gate, turn } = state;
      const { executed, pending, unknown } = runCounts(state);
      setText(word, `${turn ? `turn ${turn} · ` : ""}${RUN_GATE_WORD[gate.state]}`);
      setText(headline, ` · ${clip(gate.headline, 200)}`);
      counts.replaceChildren("executed ", make("b", "", number(executed)), " · pending ",
        make("b", "", number(pending)), " · unknown ", make("b", "", number(unknown)));
    },
  };
}

// A listbox of which only the visible rows, and the current one, are in the page.
function runList(run, go, id) {
  const filter = make("select", "run-filter");
  for (const name of Object.keys(RUN_FILTERS)) filter.append(new Option(name));
  filter.setAttribute("aria-label", "which moments are listed");
  const space = make("div", "run-rows"), box = make("div", "run-list", space);
  box.setAttribute("role", "listbox");
  box.setAttribute("aria-label", "moments");
  box.tabIndex = 0;
  space.setAttribute("role", "presentation");
  const rows = new Map();
  let listed = [], current = 0, known = 0, scheduled = 0;

  function choose() {
    const wanted = RUN_FILTERS[filter.value];
    listed = Array.from({ length: run.last }, (_, i) => i + 1).filter((k) => wanted(run, k));
    space.style.height = `${listed.length * RUN_ROW}px`;
    for (const node of rows.values()) node.remove();
    rows.clear();
  }

  function row(place) {
    const k = listed[place], kind = runKind(run, k);
    const node = make("div", `run-row run-kind-${kind}`, make("span", "run-number", number(k)),
      stream("run-row-label", runLabel(run, k), 60),
      stream("run-row-beside", runBeside(run, k), 24));
    node.id = `${id}-${k}`;
    node.dataset.k = k;
    node.style.top = `${place * RUN_ROW}px`;
    node.setAttribute("role", "option");
    return node;
  }

  function fill() {
    scheduled = 0;
    const from = Math.floor(box.scrollTop / RUN_ROW) - RUN_SPARE;
    const to = Math.ceil((box.scrollTop + box.clientHeight) / RUN_ROW) + RUN_SPARE;
    for (const [place, node] of rows) {
      if ((place < from || place > to) && place !== current) { node.remove(); rows.delete(place); }
    }
    const end = Math.min(listed.length, to + 1);
    for (let place = Math.max(0, from); place < end; place++) add(place);
    if (listed.length && current >= 0) add(current);
  }

  function add(place) {
    if (rows.has(place)) return;
    const node = row(place);
    rows.set(place, node);
    const after = [...rows.keys()].filter((other) => other > place);
    space.insertBefore(node, after.length ? rows.get(Math.min(...after)) : null);
  }

  function paint({ k }) {
    known = k;
    current = countUpTo(listed, k) - 1;
    const top = current * RUN_ROW, height = box.clientHeight;
    if (height && (top < box.scrollTop || top + RUN_ROW > box.scrollTop + height)) {
      box.scrollTop = Math.max(0, top - height / 2);
    }
    fill();
    for (const [place, node] of rows) {
      const now = place === current;
      node.classList.toggle("ags-run-now", now);
      node.classList.toggle("ags-run-later", place > current);
      setAttribute(node, "aria-selected", now);
    }
    if (current >= 0) box.setAttribute("aria-activedescendant", `${id}-${listed[current]}`);
    else box.removeAttribute("aria-activedescendant");
  }

  filter.addEventListener("change", () => { choose(); paint({ k: known }); });
  box.addEventListener("scroll", () => { scheduled ||= requestAnimationFrame(fill); });
  box.addEventListener("click", (event) => {
    const found = event.target.closest("[data-k]");
    if (found) go(Number(found.dataset.k));
  });
  choose();
  const head = make("div", "run-caption run-list-head", "moments", filter);
  return { root: make("div", "run-column run-moments", head, box), box, paint };
}

function runStream() {
  const list = make("div", "run-cards");
  const entries = make("div", "run-entries");
  const size = make("span", "run-faint");
  const history = make("div", "run-caption", "history, as the next request will send it ", size);
  const root = make("div", "run-column run-stream",
    make("div", "run-caption", "the stream at this moment"), list, history, entries);
  return {
    root,
    paint(state) {
      const { buffers, verdict, k, turn } = state;
      list.replaceChildren(...(buffers.length ? buffers.map((each) => runCard(each, verdict))
        : [make("div", "run-empty", turn ? "nothing of this turn's stream yet" : "no turn yet")]));
      setText(size, `· ${plural(state.history.length, "entry").replace("entrys", "entries")}`);
      entries.replaceChildren(...state.history.map(({ start, kind, text }) => {
        const node = make("div", "run-entry", make("span", "run-who", kind),
          stream("run-text", text, 160));
        node.classList.toggle("ags-run-new", start === k);
        return node;
      }));
      // What the moment appended is in sight; otherwise the stream is.
      root.scrollTop = state.history.some(({ start }) => start === k) ? root.scrollHeight : 0;
    },
  };
}

const RUN_STANDING = { closed: "draft", discarded: "discarded" };

function runCard({ buffer, end, fresh, grew, done, call }, verdict) {
  const old = make("span", "run-old"), added = make("mark", "run-mark");
  const from = grew ? fresh : end, start = wholeBefore(buffer.text, Math.max(0, from - 1200));
  setText(old, (start ? "…" : "") + buffer.text.slice(start, from));
  setText(added, buffer.text.slice(from, end));
  const text = make("div", "run-code", old, added);
  if (buffer.kind !== "arguments") {
    const standing = RUN_STANDING[verdict] ?? "released";
    return make("div", "run-card", make("div", "run-faint", `${buffer.kind}, ${standing}`), text);
  }
  const state = call ? call.state.replaceAll("_", " ")
    : verdict === "discarded" ? "discarded"
      : done ? "done: progress only" : "arriving, not parsed";
  const head = make("div", "run-card-head", stream("run-call", buffer.name, 60),
    stream("run-chip", `call ${buffer.id}`, 60), make("span", "run-chip run-state", state));
  const card = make("div", "run-card run-call-card", head, text);
  card.classList.toggle("ags-run-touched", grew);
  return card;
}

function runLeft() {
  const budgets = make("div", "run-budgets"), journal = make("div", "run-journal");
  return {
    root: make("div", "run-column run-left", make("div", "run-caption", "what is left"), budgets,
      make("div", "run-caption", "journal"), journal),
    paint({ left, calls, k }) {
      budgets.replaceChildren(...left.map(({ name, words, part }) => {
        const fill = make("div", "run-budget-fill");
        fill.style.width = `${part * 100}%`;
        const meter = make("div", "run-meter", fill);
        meter.classList.toggle("ags-run-low", part <= 0.1);
        return make("div", "run-budget", make("span", "", name), meter,
          make("span", "run-budget-words", words));
      }));
      journal.replaceChildren(...(calls.length ? calls.map(({ id, name, state, at }) => {
        const node = make("div", `run-call-line run-was-${state.replaceAll(/[ _]/g, "-")}`,
          stream("run-mono", id, 32), " ", stream("run-mono", name, 32), " · ",
          state.replaceAll("_", " "));
        node.classList.toggle("ags-run-new", at === k);
        return node;
      }) : [make("div", "run-empty", "no call was released yet")]));
    },
  };
}

const RUN_KEPT = "kept back";

function runScreens() {
  const said = make("div", "run-screen"), seen = make("div", "run-screen");
  const half = (title, node) => make("div", "run-half", make("div", "run-caption", title), node);
  const piece = (text, word, name) => make("span", `run-piece ${name}`, stream("", text, 400), " ",
    make("span", "run-faint", word));
  return {
    root: make("div", "run-screens", half("the model said", said), half("the user sees", seen)),
    paint(state) {
      const texts = state.said.filter(({ end }) => end);
      said.replaceChildren(...(texts.length ? texts.map(({ buffer, end }) =>
        piece(buffer.text.slice(0, end), `(turn ${buffer.turn})`, "run-said"))
        : [make("span", "run-empty", "nothing yet")]));
      const shown = state.published.filter(({ kind }) => kind !== RUN_KEPT);
      const kept = state.published.length - shown.length;
      seen.replaceChildren(...(shown.length ? shown.map(({ kind, text }) =>
        piece(text, kind === "answer" ? "committed" : `committed, ${kind}`, "run-seen"))
        : [make("span", "run-empty", "nothing yet")]),
        ...(kept ? [make("span", "run-faint", ` · ${plural(kept, "text")} kept back`)] : []));
      said.scrollTop = said.scrollHeight;
      seen.scrollTop = seen.scrollHeight;
    },
  };
}

// What a screen reader hears: the sentence of the moment, after the keys have rested.
function runSpoken(run, quiet) {
  const sentence = make("div", "run-sentence");
  const region = make("div", "unseen");
  region.setAttribute("aria-live", "polite");
  let timer = 0;
  return {
    root: sentence,
    region,
    stop: () => clearTimeout(timer),
    paint(state) {
      setText(sentence, clip(runSentence(run, state.k), 240));
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (!quiet()) region.textContent = runAnnouncement(run, state);
      }, 250);
    },
  };
}
