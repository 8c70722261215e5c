"use strict";
// Keys of the page on which one answer is labelled, and what is not lost there: notes, names, and a label to a double click.
(() => {
  const press = (id) => { const part = document.getElementById(id); if (part) part.click(); };
  const note = document.getElementById("note"), form = document.getElementById("give");
  const only = document.querySelector("#only [name=by]");
  const {base} = document.documentElement.dataset;
  const keyOf = (by) => JSON.stringify(["note", by, form.getAttribute("action").slice(base.length)]);
  let draft = form && keyOf(form.elements.by.value);
  let stored = note && note.dataset.stored, place = "", sending = "";
  addEventListener("beforeunload", (event) => { if (note && note.value !== stored) event.preventDefault(); });
  let [x, y] = JSON.parse(sessionStorage.getItem("clicked") ?? "[]");
  sessionStorage.removeItem("clicked");
  const shown = performance.now();
  addEventListener("click", (event) => {
    const isSame = Math.hypot(event.screenX - x, event.screenY - y) < 5;
    if (isSame && (event.detail > 1 || (event.detail && performance.now() - shown < 300))) {
      event.preventDefault();  // a second click was meant for the page before
      event.stopImmediatePropagation();
      return;
    }
    [x, y] = [];
    place = event.detail ? JSON.stringify([event.screenX, event.screenY]) : "";
  }, true);
  addEventListener("submit", async (event) => {
    if (event.target.method !== "post") return;
    if (sending === "now") {
      if (event.target === form) stored = note.value;
      if (place && event.submitter) sessionStorage.setItem("clicked", place);
      localStorage.removeItem(draft);
      sending = "sent";
      return;
    }
    event.preventDefault();
    if (sending) return;
    sending = "asked";  // a page of a server that is gone would be left, and the note with it
    const isThere = await fetch(base, {redirect: "manual"}).then((response) => response.type === "opaqueredirect", () => false);
    document.getElementById("lost").hidden = isThere;
    sending = isThere ? "now" : "";
    if (isThere) event.target.requestSubmit(event.submitter);
  });
  if (note) {
    const [before, typed] = JSON.parse(localStorage.getItem(draft) ?? "[]");  // typed before the page was loaded again
    if (typed !== undefined && note.value === stored) note.value = before === stored ? typed : stored + "\n" + typed;
    document.getElementById("draft").hidden = typed === undefined;
    note.addEventListener("input", () => {
      if (note.value === stored) document.getElementById("draft").hidden = true;
      if (note.value === stored) localStorage.removeItem(draft);
      else localStorage.setItem(draft, JSON.stringify([note.dataset.stored, note.value]));
    });
  }
  (async () => {  // a draft may be of another workspace, or of an answer that is gone
    const drafts = Object.keys(localStorage).filter((key) => key !== draft && key.startsWith('["note",')).map(JSON.parse);
    for (const [, by, path] of drafts.filter((key) => key[1] === only.value).slice(0, 5)) {
      const href = base + path + "&" + new URLSearchParams({by}), other = document.getElementById("other");
      if (!await fetch(href, {method: "HEAD"}).then((response) => response.ok, () => false)) continue;
      other.firstChild.href = href;
      other.hidden = false;
      return;
    }
  })();
  const texts = JSON.parse(document.getElementById("texts")?.textContent ?? "[]");
  for (const part of document.querySelectorAll("[data-text]")) part.replaceWith(showText(texts[part.dataset.text], false));
  if (form) form.elements.by.addEventListener("change", (event) => {
    const by = event.target.value = event.target.value.trim();
    if (!by) return;
    only.value = by;
    localStorage.removeItem(draft);  // the note goes with the name
    draft = keyOf(by);
    document.cookie = "evalstore-by=" + encodeURIComponent(by) + "; path=/; max-age=31536000; samesite=strict";
    for (const link of document.querySelectorAll("main > p > a[href*='by=']")) link.search = link.search.replace(/by=[^&]*/, "by=" + encodeURIComponent(by));
    const load = () => setTimeout(() => {  // shows the label of this person and how many they have given, unless a click will load another page
      if (sending || /^(A|BUTTON|SUMMARY|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      if (note.value !== stored) localStorage.setItem(draft, JSON.stringify([note.dataset.stored, note.value]));
      stored = note.value;
      location.replace(form.getAttribute("action") + "&" + new URLSearchParams({by, only: form.elements.only.value}));
    });
    load();
    note.addEventListener("blur", load);  // not before: what is typed into the note would be keys of the next page
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const isTyped = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && isTyped) { event.target.blur(); return; }
    if (isTyped) return;
    const button = {p: "pass", f: "fail", s: "skip", c: "change"}[event.key];
    if (button) {
      event.preventDefault();  // a name that is missing takes the focus, and must not take the key
      press(button);
      if (button === "change") document.querySelector("#change + button")?.focus({preventScroll: true});
    } else if (event.key === "n" && note) {
      event.preventDefault();
      note.focus();
      note.setSelectionRange(note.value.length, note.value.length);
    } else if (event.key === "Enter" && !/^(A|BUTTON|SUMMARY)$/.test(event.target.tagName)) press("next");
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });  // a label may have been given since
  const yours = document.getElementById("yours")?.parentNode;  // after a label, below the answer
  if (form && yours?.getBoundingClientRect().bottom > form.getBoundingClientRect().top) yours.scrollIntoView({block: "nearest"});
  document.documentElement.dataset.ready = "yes";
})();
