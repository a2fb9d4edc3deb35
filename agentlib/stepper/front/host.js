// What a widget owes to the page around it: that page keeps its keys, and gives its theme.
// The forms of the book's predictions use it too.

const QUIET = "data-lm-suppress-shortcuts";

// Keep single keys from a notebook's commands while the focus is inside `root`. JupyterLab asks the
// focused element itself, before those around it, and listens early: so the mark is put on it
// before the document hears of the key. Keys with Ctrl or Alt stay the page's own, but not in a
// text field.
function keepKeys(root) {
  const own = ({ ctrlKey, altKey, metaKey }, target) =>
    !(ctrlKey || altKey || metaKey) || target.matches("textarea");
  const mark = (event) => {
    const target = event.composedPath()[0];
    if (!(target instanceof Element) || !root.contains(target)) return;
    for (const node of [target, root]) node.toggleAttribute(QUIET, own(event, target));
  };
  root.setAttribute(QUIET, "");
  window.addEventListener("keydown", mark, true);
  root.addEventListener("keydown", (event) => {
    if (own(event, event.target)) event.stopPropagation();
  });
  return () => window.removeEventListener("keydown", mark, true);
}

// Whether a CSS colour, of any notation, is nearer to white than to black.
function isLight(colour) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const brush = canvas.getContext("2d");
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 1, 1);
  const [red, green, blue] = brush.getImageData(0, 0, 1, 1).data;
  return 0.299 * red + 0.587 * green + 0.114 * blue > 127;
}

// Follow the theme of the page, whatever program it is of: on a dark page, text is light.
function followTheme(root) {
  let known = "";
  const look = () => {
    if (!root.parentElement?.isConnected) return;
    const { color } = getComputedStyle(root.parentElement);
    if (color === known) return;
    known = color;
    root.dataset.theme = isLight(color) ? "dark" : "light";
  };
  const size = new ResizeObserver(look);
  const marks = new MutationObserver(look);
  const system = matchMedia("(prefers-color-scheme: dark)");
  size.observe(root);
  for (const node of [document.documentElement, document.body]) {
    marks.observe(node, { attributes: true });
  }
  system.addEventListener("change", look);
  look();
  return () => {
    size.disconnect();
    marks.disconnect();
    system.removeEventListener("change", look);
  };
}
