// The form of a prediction: one question, its choices as radio buttons, and a button to commit.
// Texts reach the page as text nodes. Of the model it uses get, on, set and save_changes.

const LETTERS = "abcdef";

function element(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...children);
  return node;
}

function render({ model, el }) {
  const { text, choices } = model.get("asked");
  const group = `ags-quiz-${Math.random().toString(36).slice(2)}`;
  const said = element("div", "ags-quiz-said");
  said.setAttribute("role", "status");

  const boxes = choices.map((choice, i) => {
    const box = element("input");
    box.type = "radio";
    box.name = group;
    box.value = LETTERS[i];
    box.addEventListener("change", () => choose(i));
    return box;
  });
  const labels = choices.map((choice, i) =>
    element("label", "ags-quiz-choice", boxes[i], element("span", "", choice.text)));
  const button = element("button", "ags-button", "commit to this guess");
  button.type = "submit";
  const form = element("form", "ags-quiz",
    element("fieldset", "", element("legend", "", text), ...labels), button, said);
  const root = element("div", "ags", form);

  function setDisabled(disabled) {
    button.setAttribute("aria-disabled", String(disabled));
  }

  // What was said of another choice is not said of this one.
  function choose(i) {
    const made = LETTERS[i] === model.get("choice");
    setDisabled(made);
    if (made) return show(LETTERS[i]);
    said.replaceChildren();
    delete said.dataset.right;
    for (const label of labels) label.classList.remove("ags-quiz-made");
  }

  function show(letter) {
    const at = LETTERS.indexOf(letter);
    if (!letter || at < 0 || at >= choices.length) return;
    boxes[at].checked = true;
    setDisabled(true);
    labels.forEach((label, i) => label.classList.toggle("ags-quiz-made", i === at));
    const { right, why } = choices[at];
    said.dataset.right = String(right);
    said.replaceChildren(element("b", "", right ? "✓ Right. " : "✗ Not so. "), why);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = boxes.find((box) => box.checked);
    if (!chosen) {
      said.replaceChildren("Choose one first.");
      return boxes[0].focus();
    }
    show(chosen.value);
    model.set("choice", chosen.value);
    model.save_changes();
  });
  model.on("change:choice", () => show(model.get("choice")));
  setDisabled(true);
  show(model.get("choice"));
  el.append(root);
  const leave = [keepKeys(root), followTheme(root)];
  return () => leave.forEach((each) => each());
}

export default { render };
