"use strict";
// Keys of the page on which one answer is labelled.
(() => {
  const press = (id) => { const part = document.getElementById(id); if (part) part.click(); };
  const note = document.getElementById("note"), form = document.getElementById("give");
  if (form) form.addEventListener("submit", () => { note.defaultValue = note.value; });
  addEventListener("beforeunload", (event) => { if (note && note.value !== note.defaultValue) event.preventDefault(); });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const isTyped = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && isTyped) { event.target.blur(); return; }
    if (isTyped) return;
    const button = {p: "pass", f: "fail", s: "skip"}[event.key];
    if (button) {
      event.preventDefault();  // a name that is missing takes the focus, and must not take the key
      press(button);
    } else if (event.key === "n" && note) {
      event.preventDefault();
      note.focus();
      note.setSelectionRange(note.value.length, note.value.length);
    } else if (event.key === "Enter" && !/^(A|BUTTON|SUMMARY)$/.test(event.target.tagName)) press("next");
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });  // a label may have been given since
  const yours = document.getElementById("yours");
  if (yours && matchMedia("(hover: none)").matches) yours.scrollIntoView();  // after a label, below the answer
  document.documentElement.dataset.ready = "yes";
})();
