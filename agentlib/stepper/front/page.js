// How the stepper makes its page: elements, pictures, and text from a trace. Such text is hostile:
// it reaches the page as text nodes and titles, its hidden characters visible, never as markup.

const SHAPES = {
  [LIFECYCLE]: "M6 1.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 0 1 0-9z",
  [TEXT]: "M2.4 2h7.2l.4.4v7.2l-.4.4H2.4L2 9.6V2.4z",
  [ARGUMENTS]: "M6 .8L11.2 6L6 11.2L.8 6z",
  [DONE]: "M6 1.2L11.2 10.4H.8z",
  [COMPLETED]: "M6 .2l1.7 3.7 4.1.5-3 2.8.8 4.1L6 9.3l-3.6 2 .8-4.1-3-2.8 4.1-.5z",
  [STOPPED]: "M2.6.9L6 4.2 9.4.9l1.7 1.7L7.8 6l3.3 3.4-1.7 1.7L6 7.8l-3.4 3.3L.9 9.4 4.2 6 .9 2.6z",
  [OTHER]: "M6 3.6a2.4 2.4 0 1 1 0 4.8a2.4 2.4 0 0 1 0-4.8z",
  [UNREAD]: "M1.5 4.8h9v2.4h-9z",
  [END]: "M4.7 1h2.6v7.2H11v2.6H1V8.2h3.7z",
};
const ROLE_NAMES = {
  [LIFECYCLE]: "lifecycle", [TEXT]: "text", [ARGUMENTS]: "arguments", [DONE]: "done",
  [COMPLETED]: "completed", [STOPPED]: "stopped", [OTHER]: "ignored", [UNREAD]: "not read",
  [END]: "stream ended",
};
const ICONS = {
  first: "M2 2h1.8v8H2zM11 2v8L4.6 6z", last: "M8.2 2H10v8H8.2zM1 2v8l6.4-4z",
  back: "M11 4.9H5.8V2L1 6l4.8 4V7.1H11z", step: "M1 4.9h5.2V2L11 6l-4.8 4V7.1H1z",
  change: "M1 2v8l5-4zM5.4 2v8l5-4zM10.2 2h1.5v8h-1.5z",
  gate: "M1 2v8l5.6-4zM7.6 1.5h1.6v9H7.6z",
  hasty: "M.6 4.3L4 .9l3.9 1.2-1.3 1.3 4.8 5-1.7 1.7-5-4.8-1.3 1.3z",
  file: "M5 1h2v4.6h2.6L6 9 2.4 5.6H5zM1 9.6h10v1.6H1z",
  share: "M6.8 1h4.4v4.4L9.6 3.8 5.7 7.7 4.5 6.5l3.9-3.9zM1 2.6h4v1.6H2.6v5.2h5.2V7h1.6v4H1z",
  play: "M2.5 1.5v9l8-4.5z", pause: "M2.5 2h2.6v8H2.5zM6.9 2h2.6v8H6.9z",
  closed: "M2.2 5.2h7.6V11H2.2zM3.6 5V3.8a2.4 2.4 0 0 1 4.8 0V5H7.1V3.8a1.1 1.1 0 0 0-2.2 0V5z",
  released: "M4.6 10.4L.6 6.4l1.5-1.5 2.5 2.5L9.9 2l1.5 1.5z", discarded: SHAPES[STOPPED],
};

// Make an element of class ags-NAME; strings among the children become text.
function make(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name.split(" ").map((part) => `ags-${part}`).join(" ");
  node.append(...children);
  return node;
}

// An SVG element of class ags-NAME.
function shape(tag, name, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (name) node.setAttribute("class", name.split(" ").map((part) => `ags-${part}`).join(" "));
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// Draw a picture of 12 by 12 units from the commands of one path.
function draw(path, name, size = 12) {
  const picture = shape("svg", name,
    { viewBox: "-1 -1 14 14", width: size, height: size, "aria-hidden": "true" });
  picture.append(shape("path", "", { d: path }));
  return picture;
}

const unseen = (text) => make("span", "unseen", text);

// Put `text` into `node` where it is not there yet, its hidden characters as their codes.
function setText(node, text) {
  if (node.shown !== text) node.replaceChildren(...textNodes((node.shown = text)));
  return node;
}

function textNodes(text) {
  return pieces(text).map(([piece, hidden]) =>
    hidden ? make("span", "code", piece) : document.createTextNode(piece));
}

function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

const stream = (name, text, limit = 80) => setText(make("bdi", name), clip(text ?? "", limit));

// A button that does `action`. It stays focusable when it has nothing to do.
function plainButton(label, hint, action, name = "", icon = "") {
  const word = make("span", "word", label);
  const button = make("button", `button ${name}`.trim(),
    ...(icon ? [draw(ICONS[icon], "icon")] : []), word);
  button.type = "button";
  button.title = hint;
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") action();
  });
  return button;
}

// Name a group by the words of its label, which change with the state.
function named(root, label, name) {
  label.id = `ags-${name}-${Math.random().toString(36).slice(2)}`;
  root.setAttribute("role", "group");
  root.setAttribute("aria-labelledby", label.id);
  return root;
}

// Select the text that `node` shows, and copy it where a page may. Calls `said` with the outcome.
function copyShown(node, text, said) {
  const range = document.createRange();
  range.selectNodeContents(node);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error());
  written.then(() => said("copied"),
    () => said("selected: copy it with the keys of your browser"));
}
