"use strict";
// Builds the table of cases and the page of a case.
(() => {
  const ROWS = 100;

  const $ = (id) => document.getElementById(id);
  const read = (id) => JSON.parse($(id).textContent);

  const data = read("data-cases");
  const runs = read("data-runs");
  const rows = data.rows.map(([file, row, prompt, tags, cells, question], number) => ({
    number, file, tags, question, label: row,
    head: data.files[file] + (row ? " [" + row + "]" : ""), prompt: prompt ? " (" + prompt + ")" : "",
    cells: cells.map(([model, word, change, answer, reason]) => ({
      model, word: data.words[word], rank: change === 0 ? -1 : word,
      change: change < 0 ? "" : data.changes[change], answer: answer || "", reason: reason || ""})),
  }));
  const cases = new Map();
  for (const row of rows) {
    row.name = row.head + row.prompt;
    const rank = Math.min(...row.cells.map((cell) => cell.rank));
    const name = row.file + " " + row.label;
    if (!cases.has(name)) cases.set(name, {number: row.number, rank});
    row.case = cases.get(name);
    row.case.rank = Math.min(row.case.rank, rank);
  }
  let listed = rows;
  let page = 0;
  let plain = false;
  const base = document.documentElement.dataset.base;

  // --- details of cases, read when they are needed

  const blocks = new Map();

  function blockOf(number) {
    let low = 0, high = data.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.blocks[middle] <= number) low = middle; else high = middle - 1;
    }
    return low;
  }

  function block(number) {
    if (!blocks.has(number)) {
      if (blocks.size > 20) blocks.clear();
      blocks.set(number, read("block-" + number));
    }
    return blocks.get(number);
  }

  const shown = (entry) => showText(entry, plain);

  function verdict(word) {
    return make("span", {class: "verdict verdict-" + word.replace(" ", "-")},
      make("span", {"aria-hidden": "true"}, data.signs[word] || ""), " " + word);
  }

  // --- the table

  // A further system prompt of the case of the row before stands below that one's name.
  function tableRow(row, place, shown) {
    const aside = row.cells.find((cell) => cell.model === data.aside);
    const cells = (aside ? [data.aside] : data.columns).map((model) => {
      const cell = row.cells.find((other) => other.model === model);
      if (!cell) return make("td");
      const options = aside ? {class: "aside", colspan: data.columns.length} : {};
      return make("td", {...options, "data-name": aside || data.columns.length > 1 ? data.models[model] : null}, verdict(cell.word),
        cell.change ? make("em", {class: "change"}, " " + cell.change) : null,
        cell.answer ? make("p", {class: "answer", text: true}, cell.answer) : null,
        cell.reason ? make("p", {class: "feedback", text: true}, cell.reason) : null);
    });
    const open = make("a", {href: "#case-" + (row.number + 1), text: true}, make("span", {class: "head"}, ...row.head.split(/(?<=\/)/).flatMap((part) => [part, make("wbr")])), row.prompt);
    const tags = row.tags.map((tag) => data.tags[tag]).join(", ");
    return make("tr", {class: shown[place - 1]?.case === row.case ? "again" : null},
      make("th", {scope: "row"}, open, tags ? make("span", {class: "tags", text: true}, tags) : null),
      make("td", {class: "question", text: true}, row.question), ...cells);
  }

  function showPage() {
    const last = Math.max(0, Math.ceil(listed.length / ROWS) - 1);
    page = Math.min(Math.max(0, page), last);
    const first = page * ROWS;
    $("matrix").tBodies[0].replaceChildren(...listed.slice(first, first + ROWS).map(tableRow));
    $("pages").hidden = last === 0;
    $("page").textContent = "page " + (page + 1) + " of " + (last + 1);
    $("back").disabled = page === 0;
    $("next").disabled = page === last;
  }

  const number = (count) => count.toLocaleString("en");

  const countCases = (group) => new Set(group.map((row) => row.case)).size;
  const total = countCases(rows);

  function say() {
    const [shown, isAll] = [countCases(listed), listed.length === rows.length];
    $("count").textContent = (isAll ? "" : number(shown) + " of ") + number(total) +
      (total === 1 ? " case" : " cases") + (isAll ? "" : " match") +
      (shown === listed.length ? "" : " in " + number(listed.length) + " rows" + (isAll ? ", one for each system prompt" : ""));
  }

  // --- filters

  function haystack(row) {
    row.text ??= [row.name, row.question, ...row.tags.map((tag) => data.tags[tag]),
      ...row.cells.flatMap((cell) => [cell.answer, cell.reason])].join("\n").toLowerCase();
    return row.text;
  }

  function deepTexts(number) {
    const content = read("block-" + number);
    return content.cases.map((detail) => {
      const texts = new Set();
      const add = (index) => { if (index >= 0) texts.add(index); };
      detail.turns.flat().forEach((turn) => add(turn[2]));
      add(detail.told ?? -1);
      for (const cell of detail.cells) {
        (cell.sessions || []).forEach((session) => session[1].forEach(add));
        (cell.votes || []).forEach(([, , feedback, reasoning, checks]) =>
          [feedback, reasoning, ...(checks || []).map((check) => check[1])].forEach((index) => add(index ?? -1)));
      }
      return [...texts].map((index) => content.texts[index]).map((text) => typeof text === "string" ? text : text[0])
        .join("\n").toLowerCase();
    });
  }

  const has = (test) => (row) => row.cells.some(test);
  const chips = [
    ["All", () => true],
    ["Broke", has((cell) => cell.change === "broke"), "broke"],
    ["Still broken", has((cell) => cell.change === "still broken"), "before"],
    ["New, not passing", has((cell) => cell.change === "new" && !["pass", "pending"].includes(cell.word)), "new"],
    ["Fails", has((cell) => ["fail", "error", "no reply"].includes(cell.word))],
    ["Undecided", has((cell) => cell.word === "undecided"), "undecided"],
    ["Pending", has((cell) => cell.word === "pending")],
    ["Differ", (row) => new Set(row.cells.map((cell) => cell.word)).size > 1],
    ["Fixed", has((cell) => cell.change === "fixed"), "fixed"],
  ];
  let chosen = chips[0];

  let turn = 0;
  const deep = [];

  async function readDeep(mine) {
    for (let number = deep.length; number < data.blocks.length; number++) {
      if (number % 10 === 9) {
        $("count").textContent = "searching …";
        await new Promise((resolve) => setTimeout(resolve));
        if (mine !== turn) return false;
      }
      if (deep.length === number) deep.push(deepTexts(number));
    }
    return true;
  }

  async function applyFilter() {
    const mine = ++turn;
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const isDeep = $("deep").checked && words.length > 0;
    if (isDeep && !await readDeep(mine)) return;
    const holds = (row) => {
      if (!chosen[1](row)) return false;
      if (!words.length) return true;
      let text = haystack(row);
      if (isDeep) {
        const place = blockOf(row.number);
        text += "\n" + deep[place][row.number - data.blocks[place]];
      }
      return words.every((part) => text.includes(part));
    };
    listed = rows.filter(holds);
    if (!$("order").checked) listed.sort((a, b) => a.case.rank - b.case.rank || a.case.number - b.case.number || a.number - b.number);
    page = 0;
    say();
    showPage();
  }

  // --- a case

  function named(row) {
    const [files, names] = data.addresses;
    const file = files[row.file] ?? data.files[row.file].split("/").map(encodeURIComponent).join("/");
    return file + "::" + (names[row.number] ?? encodeURIComponent(row.label));
  }

  function section(title, ...children) {
    const kept = children.filter(Boolean);
    return kept.length ? make("section", null, make("h3", null, title), ...kept) : null;
  }

  function picture([id, path]) {
    const stored = $("image-" + id) ? read("image-" + id) : {note: "not in this report"};
    if (!stored.source) return make("p", {class: "note", text: true}, path + ": " + stored.note);
    const image = make("img", {src: stored.source, alt: path, loading: "lazy"});
    image.addEventListener("error", () => image.replaceWith(
      make("p", {class: "note", text: true}, path + ": the picture is damaged")));
    return image;
  }

  function conversation(turns, texts, title) {
    let answers = 0;
    return section(title, ...turns.map(([role, name, index, files]) => make("div", {class: "turn turn-" + role},
      make("p", {class: "role"}, name ? role + " " + name : role),
      index < 0 ? make("p", {class: "note"}, "answer " + (++answers) + " of the candidate") : shown(texts[index]),
      ...(files || []).map(picture))));
  }

  function vote([word, by, feedback, reasoning, checks], texts) {
    return make("li", null, verdict(word), make("span", {text: true}, " " + by),
      feedback === undefined || feedback === null ? null : shown(texts[feedback]),
      reasoning === undefined || reasoning === null ? null : make("details", null, make("summary", null, "Reasoning"), shown(texts[reasoning])),
      checks ? make("ul", {class: "checks"}, ...checks.map(([word, index]) =>
        make("li", null, verdict(word), make("span", {class: "feedback", text: true}, " " + texts[index])))) : null);
  }

  function difference(hunks) {
    return make("div", {class: "diff"}, ...hunks.map((hunk) => make("pre", null, ...hunk.map(([sign, ...pieces]) => {
      const name = sign === "+" ? "ins" : sign === "-" ? "del" : "span";
      return make(name, {class: "line"}, sign + " ", ...pieces.map(([text, isNew]) =>
        isNew ? make("mark", null, text) : text), "\n");
    }))));
  }

  function previous(was, cell, texts) {
    if (!was) return null;
    const old = texts[was.feedback];
    return section("Since " + (was.since || data.since),
      make("p", null, verdict(was.word), was.run ? " (run " + was.run + ")" : "", " → ", verdict(cell.word), was.reason ? " (" + was.reason + ")" : ""),
      old ? make("p", {class: "feedback", text: true}, "previous feedback: " + (typeof old === "string" ? old : old[0])) : null,
      was.diff && was.diff.length ? difference(was.diff) : null);
  }

  function reasons(sections) {
    return (sections || []).map(([title, lines]) => section(title[0].toUpperCase() + title.slice(1),
      make("div", {class: title === "where it differs" ? "lines differs" : "lines"}, ...lines.map(([indent, ...spans]) =>
        make("p", {class: "indent-" + Math.min(indent, 8), text: true}, ...spans.map(([text, colour]) => {
          if (/^[+-] $/.test(text)) return make("span", {class: "colour-faint"}, text);
          if (colour === "new" || colour === "old") return make(colour === "new" ? "ins" : "del", null, unmarked(text));
          return colour ? make("span", {class: "colour-" + colour.replace(" ", "-")}, text) : text;
        }))))));
  }

  // Where a colour and a line say what is new, the signs of a terminal are left out.
  function unmarked(text) {
    const marked = /^(?:\{\+([\s\S]*)\+\}|\[-([\s\S]*)-\])$/.exec(text);
    return marked ? marked[1] ?? marked[2] : text;
  }

  function candidate(detail, row, texts) {
    const cell = row.cells.find((other) => other.model === detail.model);
    const sessions = detail.sessions || [];
    const answers = sessions.map(([place, turns, facts, attempt], index) => make("div", {class: "answer"},
      sessions.length > 1 ? make("p", {class: "role"}, "answer " + (index + 1) + " of " + sessions.length +
        (place ? ", conversation " + (place + 1) : ""), ...(attempt ? [" ", verdict(attempt)] : [])) : null,
      ...turns.map((text, turn) => make("div", {class: "turn turn-assistant"},
        turns.length > 1 ? make("p", {class: "role"}, "turn " + (turn + 1)) : null, shown(texts[text]))),
      make("p", {class: "note"}, facts, base ? " " : null,
        base ? make("a", {href: base + "/label/" + facts.slice(0, 8) + "?case=" + named(row)}, "Label") : null)));
    const history = (detail.history || []).map(([run, word, people]) => make("li", {text: true}, verdict(word),
      " run " + runs[run].id + ", " + new Date(runs[run].at).toISOString().slice(0, 16).replace("T", " ") + " UTC" + (people ? ", label of " + people : "")));
    return make("article", {"aria-label": data.models[detail.model]},
      make("h3", {text: true}, data.models[detail.model]),
      make("p", null, verdict(cell.word), cell.change ? make("em", {class: "change"}, " " + cell.change) : null,
        detail.score ? " score " + detail.score : "", detail.attempts ? " " + detail.attempts : ""),
      detail.labelled ? make("p", {class: "note", text: true}, detail.labelled) : null,
      ...(detail.failures || []).map((text) => make("p", {class: "warning", text: true}, text)),
      ...(answers.length ? answers : [make("p", {class: "note"}, "There is no answer.")]),
      detail.votes ? section("Verdicts", detail.rule ? make("p", {class: "note"}, detail.rule) : null, make("ul", {class: "votes"}, ...detail.votes.map((given) => vote(given, texts)))) : null,
      ...reasons(detail.why),
      previous(detail.was, cell, texts), previous(detail.passed, cell, texts),
      history.length ? section("Earlier verdicts", make("ul", {class: "history"}, ...history),
        make("p", {class: "note"}, "Of runs with the same results of this file, only the newest is listed.")) : null);
  }

  const dialog = $("case");
  let opened = "";

  function showCase(row) {
    const place = blockOf(row.number);
    const {texts, cases} = block(place);
    const detail = cases[row.number - data.blocks[place]];
    const index = listed.indexOf(row);
    const go = (other) => () => { location.hash = "case-" + (other.number + 1); };
    const step = (title, other) => make("button", {type: "button", "aria-label": title + " case", disabled: other ? null : "", click: other ? go(other) : null}, title);
    const toggle = make("button", {type: "button", "aria-pressed": String(plain),
      click: () => { plain = !plain; showCase(row); dialog.querySelector("[aria-pressed]").focus(); }}, "Plain text");
    const conversations = detail.turns.map((turns, number) => conversation(turns, texts,
      detail.turns.length > 1 ? "Conversation " + (number + 1) : "Conversation"));
    const criteria = section("How it is judged",
      detail.told === undefined ? null : shown(texts[detail.told]),
      detail.checks ? make("ul", {class: "checks"}, ...detail.checks.map((text) =>
        make("li", {text: true}, texts[text[0]], make("code", {class: "source"}, texts[text[1]])))) : null,
      detail.request ? make("p", {class: "note"}, "request: " + detail.request.join(", ")) : null);
    const inOrder = [...data.columns, data.aside].flatMap((model) => detail.cells.filter((cell) => cell.model === model));
    dialog.replaceChildren(
      make("div", {class: "bar"},
        make("h2", {id: "case-title", tabindex: "-1", text: true}, row.name),
        base && location.pathname !== base + "/run/" + document.documentElement.dataset.run
          ? make("a", {href: base + "/case/" + named(row)}, "Newest result") : null,
        make("div", {class: "buttons"}, step("Previous", index > 0 ? listed[index - 1] : null),
          step("Next", index >= 0 ? listed[index + 1] : null), toggle,
          make("button", {type: "button", click: () => dialog.close()}, "Close"))),
      row.tags.length ? make("p", {class: "note", text: true}, "tags: " + row.tags.map((tag) => data.tags[tag]).join(", ")) : "",
      make("div", {class: "asked"}, ...conversations, criteria),
      make("div", {class: "candidates"}, ...inOrder.map((cell) => candidate(cell, row, texts))));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    $("case-title").focus();
  }

  function follow() {
    const match = /^#case-(\d+)$/.exec(location.hash);
    const row = match && rows[Number(match[1]) - 1];
    if (row && !dialog.open) opened = location.hash;
    if (row) showCase(row); else if (dialog.open) dialog.close();
  }

  dialog.addEventListener("close", () => {
    const link = location.hash === opened ? null : $("matrix").querySelector('a[href="' + location.hash + '"]');
    if (/^#case-/.test(location.hash)) history.replaceState(null, "", "#cases-title");
    if (link && document.activeElement !== $("search")) link.focus();
  });
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#case-"]');
    if (link && link.getAttribute("href") === location.hash) follow();
    const more = event.target.closest?.("[data-list]");  // the rest of a list of the summary
    if (more) $("chips").querySelector('[data-chip="' + more.dataset.list + '"]')?.click();
  });

  // --- keys

  function step(by) {
    if (dialog.open) {
      const buttons = dialog.querySelectorAll(".buttons button");
      buttons[by < 0 ? 0 : 1].click();
      return;
    }
    const links = [...$("matrix").querySelectorAll("tbody a")];
    const place = links.indexOf(document.activeElement);
    let next = place < 0 ? 0 : place + by;
    if (place >= 0 && (next < 0 || next >= links.length)) {
      const button = $(by < 0 ? "back" : "next");
      if ($("pages").hidden || button.disabled) return;
      button.click();
      step(0);
      return;
    }
    links[next].focus();
    links[next].closest("tr").scrollIntoView({block: "nearest"});
  }

  addEventListener("keydown", (event) => {
    const isTyped = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && event.target === $("search")) { $("search").value = ""; applyFilter(); $("search").blur(); return; }
    if (event.key === "Enter" && event.target === $("search")) { event.preventDefault(); $("search").blur(); step(0); return; }
    if (isTyped && event.target.type !== "checkbox") return;
    const isRow = !!event.target.closest("#matrix");
    if (event.key === "/") { event.preventDefault(); if (dialog.open) dialog.close(); $("search").focus(); }
    else if (event.key === "j" || (dialog.open ? event.key === "ArrowRight" : isRow && event.key === "ArrowDown")) { event.preventDefault(); step(1); }
    else if (event.key === "k" || (dialog.open ? event.key === "ArrowLeft" : isRow && event.key === "ArrowUp")) { event.preventDefault(); step(-1); }
  });

  // --- a page of a server follows what is stored

  function followStore() {
    const {run, state} = document.documentElement.dataset;
    const isWorkspace = location.pathname === base + "/work";
    const note = $("newer");
    const isRead = () => dialog.open || listed.length < rows.length || scrollY > 200;
    new EventSource(base + "/changes").addEventListener("message", (event) => {
      const now = JSON.parse(event.data);
      const isNewer = isWorkspace ? now.state !== state : now.run !== run;
      if (!isNewer) return;
      if (isWorkspace && !isRead()) { location.reload(); return; }
      const address = isWorkspace ? base + "/work" : base + "/run/" + now.run;
      note.replaceChildren(make("a", {href: address}, isWorkspace ? "There are newer results." : "There is a newer run."));
      note.hidden = false;
    });
  }

  // --- start

  for (const chip of chips) {
    const count = countCases(rows.filter(chip[1]));
    if (!count && chip !== chips[0]) continue;
    const button = make("button", {type: "button", "data-chip": chip[2], "aria-pressed": String(chip === chosen), click: () => {
      chosen = chip;
      for (const other of $("chips").children) other.setAttribute("aria-pressed", String(other === button));
      applyFilter();
    }}, chip[0] + " " + number(count));
    $("chips").append(button);
  }
  $("filter").hidden = rows.length === 0;
  $("filter").addEventListener("input", applyFilter);
  $("filter").addEventListener("submit", (event) => event.preventDefault());
  document.querySelector(".keys").hidden = rows.length === 0;
  const turnTo = (step) => () => { page += step; showPage(); $("matrix").scrollIntoView(); };
  $("back").addEventListener("click", turnTo(-1));
  $("next").addEventListener("click", turnTo(1));
  applyFilter();
  follow();
  if (base) followStore();
  document.documentElement.dataset.ready = "yes";
})();
