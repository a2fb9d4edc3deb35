// A stepper in a page without a kernel: its model is a plain object, filled from the page itself.
// It stands after the other scripts, in a saved file and in no widget.

// What a stepper asks of a model, and no more; `told` is called when the reader has moved.
function plainModel(values, told = () => {}) {
  const listeners = new Map();
  return {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      for (const listener of listeners.get(`change:${name}`) ?? []) listener();
    },
    on(event, listener) { listeners.set(event, [...(listeners.get(event) ?? []), listener]); },
    save_changes: () => told(values.index),
  };
}

// Read what a page holds of a stepper: JSON in which {"bytes": "..."} stands for base64.
function readSaved(text) {
  const bytes = (packed) => Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return JSON.parse(text, (_, value) =>
    typeof value?.bytes === "string" && Object.keys(value).length === 1 ? bytes(value.bytes)
      : value);
}

// Open each stepper of the page, at the step that the address asks for, if it asks for one.
function openSaved() {
  [...document.querySelectorAll("[data-stepper]")].forEach((el, i) => {
    const place = i + 1;
    const values = readSaved(document.getElementById(el.dataset.stepper).textContent);
    const asked = stepAsked(location.hash, place);
    const model = plainModel({ ...values, place, index: asked ?? values.index });
    render({ model, el });
    if (asked !== null && place > 1) el.scrollIntoView();
    window.addEventListener("hashchange", () => {
      const to = stepAsked(location.hash, place);
      if (to !== null) model.set("index", to);
    });
  });
}
