// A run stepper in a page without a kernel; it stands behind saved.js, in a saved file alone.

function openSavedRuns() {
  for (const place of document.querySelectorAll("[data-run]")) {
    const data = document.getElementById(place.dataset.run);
    render({ model: plainModel(readSaved(data.textContent)), el: place });
  }
}
