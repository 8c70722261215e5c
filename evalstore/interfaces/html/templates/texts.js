"use strict";
// Builds elements of texts, which only ever become text: elements are made one by one from the names
// below, and no markup is parsed.
const {make, showText} = (() => {
  const SPAN = 131072;
  const ELEMENTS = new Set(["p", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s",
    "hr", "br", "small", "table", "thead", "tbody", "tr", "th", "td"]);
  const JSON_TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/g;
  const LONGEST_JSON = 100000;

  function make(name, options, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(options || {})) {
      if (key === "click") element.addEventListener("click", value);
      else if (key === "text") element.dir = "auto";
      else if (value !== null && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  }

  // A number stands for a part of the text: how far it is behind the part before, and its length.
  function unpacked(nodes, text) {
    let at = 0;
    const unpack = (node) => {
      if (typeof node !== "number") return Array.isArray(node) ? node.map(unpack) : node;
      at += Math.floor(node / SPAN);
      return text.slice(at, at += node % SPAN);
    };
    return nodes.map(unpack);
  }

  function tree(node) {
    if (typeof node === "string") return document.createTextNode(node);
    const [name, ...rest] = node;
    if (name === "a") {
      const [address, ...inner] = rest;
      const options = /^(https?:\/\/|mailto:)/i.test(address)
        ? {href: address, title: address, rel: "noopener noreferrer nofollow", target: "_blank"} : {};
      return make("a", options, ...inner.map(tree));
    }
    if (/^h[1-6]$/.test(name)) return make("p", {class: "heading"}, ...rest.map(tree));
    return make(ELEMENTS.has(name) ? name : "span", null, ...rest.map(tree));
  }

  function highlighted(text) {
    if (text.length > LONGEST_JSON || !/^\s*[{[]/.test(text)) return null;
    try { JSON.parse(text); } catch { return null; }
    const element = make("pre", {class: "json"});
    let last = 0;
    for (const match of text.matchAll(JSON_TOKEN)) {
      element.append(text.slice(last, match.index));
      const kind = match[2] !== undefined ? "key" : match[1] !== undefined ? "string" : "value";
      element.append(make("span", {class: "json-" + kind}, match[1] || match[0]));
      if (match[2]) element.append(match[2]);
      last = match.index + match[0].length;
    }
    element.append(text.slice(last));
    return element;
  }

  // Calls of tools: the name of each, and its arguments as JSON.
  function calls(text) {
    const [before, ...parts] = text.split(/^(call \S+) (?=[{[])/m);
    const shown = parts.map((part, at) => at % 2 ? highlighted(part.trim()) : make("p", {class: "role"}, part));
    return shown.length && !before && shown.every(Boolean) ? make("div", null, ...shown) : null;
  }

  function showText(entry, plain) {
    const [text, nodes] = typeof entry === "string" ? [entry, null] : entry;
    const json = plain ? null : highlighted(text) ?? calls(text);
    if (json) return json;
    if (nodes && !plain) return make("div", {class: "text markdown", text: true}, ...unpacked(nodes, text).map(tree));
    return make("div", {class: "text plain-text", text: true}, text);
  }

  return {make, showText};
})();
