"use strict";
// The list of runs: keys go through its links, and it says when there is something newer.
(() => {
  const {base, state} = document.documentElement.dataset;
  const links = [...document.querySelectorAll("#runs tbody a")];
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const by = {j: 1, ArrowDown: 1, k: -1, ArrowUp: -1}[event.key];
    if (!by || !links.length) return;
    event.preventDefault();
    const next = links[links.indexOf(document.activeElement) + by] || links[by < 0 ? 0 : links.length - 1];
    next.focus();
  });
  new EventSource(base + "/changes").addEventListener("message", (event) => {
    if (JSON.parse(event.data).state === state) return;
    if (document.activeElement === document.body && scrollY < 200) location.reload();
    else document.getElementById("newer").hidden = false;
  });
  document.documentElement.dataset.ready = "yes";
})();
