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

function openSaved() {
  for (const place of document.querySelectorAll("[data-stepper]")) {
    const data = document.getElementById(place.dataset.stepper);
    render({ model: plainModel(readSaved(data.textContent)), el: place });
  }
}
