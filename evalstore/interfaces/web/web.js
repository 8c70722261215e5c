// The terminal listens from the start, not only once somebody has clicked on it.
"use strict";
addEventListener("load", () => {
  const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
  focus();
  new MutationObserver(focus).observe(document.body, { attributes: true });
});
