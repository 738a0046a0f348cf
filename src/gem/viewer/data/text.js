// Elements and text. Text of models is hostile: every element is built by el(), svg() or mathml(), which set text and
// attributes only, and nothing is loaded.
"use strict";

const LONG = 20_000; // characters of a text that are shown at first, and styled

const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false).map(child =>
    child instanceof Node ? child : visible(String(child))));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A formula, from a tree of gem.viewer.formulas: [name without its "m", attributes or nothing, text and trees…].
function mathml([name, ...parts]) {
  const node = document.createElementNS("http://www.w3.org/1998/Math/MathML", "m" + name);
  const attributes = typeof parts[0] === "object" && !Array.isArray(parts[0]) ? parts.shift() : {};
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...parts.map((part) => (typeof part === "string" ? visible(part) : mathml(part))));
  return node;
}

// Characters that reorder text are written as escapes.
const visible = (text) =>
  text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (character) => "\\u" + character.charCodeAt(0).toString(16));

// ---------------------------------------------------------------- numbers

function number(value) {
  if (typeof value !== "number") return value == null ? "–" : String(value);
  return Math.abs(value) >= 100 ? grouped(Math.round(value)) : String(+value.toPrecision(3));
}

const grouped = (value) => (typeof value === "number" ? value.toLocaleString("en") : String(value));
const seconds = (value) => (typeof value !== "number" ? number(value) : value >= 600 ? `${Math.round(value / 60)} min`
  : value >= 1 ? `${number(value)} s` : `${value >= 0.01 ? Math.round(1000 * value) : number(1000 * value)} ms`);
const dollars = (value) => (typeof value === "number" ? `$${value >= 1 ? value.toFixed(2) : +value.toPrecision(2)}` : number(value));
const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const words = (name) => name.replaceAll("_", " ");

// ---------------------------------------------------------------- code

const STRINGS = String.raw`"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?`;
const grammar = (groups) => new RegExp(
  Object.entries(groups).map(([kind, pattern]) => `(?<${kind}>${pattern})`).join("|"), "gm");
const LANGUAGES = {
  python: grammar({
    comment: String.raw`#[^\n]*`,
    string: String.raw`\b[rbfuRBFU]{0,2}(?:"""(?:[^"\\]|\\[^]|"(?!""))*(?:"""|$)|'''(?:[^'\\]|\\[^]|'(?!''))*(?:'''|$))|"""(?:[^"\\]|\\[^]|"(?!""))*(?:"""|$)|${STRINGS}`,
    keyword: String.raw`\b(?:False|None|True|and|as|assert|async|await|break|case|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|match|nonlocal|not|or|pass|raise|return|try|while|with|yield)\b`,
    number: String.raw`\b\d[\w.]*`,
    call: String.raw`\b[A-Za-z_]\w*(?=\()|@[\w.]+`,
  }),
  shell: grammar({
    comment: String.raw`(?<=^|\s)#[^\n]*`,
    string: String.raw`"(?:[^"\\]|\\.)*"?|'[^']*'?`,
    keyword: String.raw`\b(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|in|function|return|export|local|sudo)\b`,
    number: String.raw`\$\{[^}\n]*\}|\$[\w@#?*!-]+`,
    call: String.raw`(?<=^|[|;&]\s*)[ \t]*[\w./-]+(?=\s|$)|(?<=\s)--?[A-Za-z][\w-]*`,
  }),
  json: grammar({
    call: String.raw`"(?:[^"\\\n]|\\.)*"(?=\s*:)`,
    string: String.raw`"(?:[^"\\\n]|\\.)*"`,
    keyword: String.raw`\b(?:true|false|null)\b`,
    number: String.raw`-?\b\d[\d.eE+-]*`,
  }),
  diff: grammar({ comment: String.raw`^(?:@@|diff |index |--- |\+\+\+ )[^\n]*`, string: String.raw`^\+[^\n]*`, keyword: String.raw`^-[^\n]*` }),
  other: grammar({ // C, Java, JavaScript, Rust, Go …
    comment: String.raw`//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|$)`,
    string: STRINGS,
    keyword: String.raw`\b(?:auto|break|case|catch|class|const|continue|default|do|else|enum|export|extern|fn|for|func|function|if|impl|import|interface|let|match|mut|new|package|private|public|return|static|struct|switch|this|throw|try|type|use|using|var|void|while)\b`,
    number: String.raw`\b\d[\w.]*`,
    call: String.raw`\b[A-Za-z_]\w*(?=\()`,
  }),
};
const ALIASES = { py: "python", python3: "python", ipython: "python", sh: "shell", bash: "shell", zsh: "shell", console: "shell",
  execute_bash: "shell", terminal: "shell", jsonl: "json", tool_call: "json", patch: "diff" };

// The language that a name stands for, or what the code looks like; "" for text.
function languageOf(name, code) {
  const known = ALIASES[name.toLowerCase()] ?? name.toLowerCase();
  if (Object.hasOwn(LANGUAGES, known)) return known;
  if (/^(text|txt|output|plain|markdown|md)$/.test(known)) return "";
  if (known) return "other";
  if (/^\s*[{[]/.test(code) && /[}\]]\s*$/.test(code)) return "json";
  if (/^\s*(?:def|class|from|import) \w|^print\(/m.test(code)) return "python";
  return /^diff --git|^@@ -/m.test(code) ? "diff" : /^\s*(?:#!\/bin|\$ )/.test(code) ? "shell" : "";
}

// Code as spans by kind. Their text is that of the code.
function highlight(code, language) {
  if (!language || code.length > LONG) return [code];
  const nodes = [];
  let at = 0;
  for (const match of code.matchAll(LANGUAGES[language])) {
    if (!match[0]) continue;
    const kind = Object.keys(match.groups).find((name) => match.groups[name] != null);
    nodes.push(code.slice(at, match.index), el("span", { class: `code-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  return [...nodes, code.slice(at)];
}

// ---------------------------------------------------------------- messages

const BLOCK = /^[ \t]*(?<fence>`{3,}|~{3,})(?<language>[\w+#.-]*)[^\n]*\n(?<code>[^]*?)(?:^[ \t]*\k<fence>[ \t]*(?:\n|$(?![^]))|$(?![^]))|<(?<tag>python|code|bash|execute_bash|tool_call)>(?<inner>[^]*?)<\/\k<tag>>/gm;
const PROSE = /(?<heading>^#{1,6} [^\n]*)|(?<code>`[^`\n]+`)|(?<strong>\*\*[^*\n]+\*\*)|(?<answer>\\boxed\{[^{}\n]*\}|<answer>[^<]{1,2000}<\/answer>)|(?<tag><\/?[A-Za-z_][\w.-]{0,40}>)/gm;
const GRID = /\S {3,}\S|[│┌├─═║╔█■□]|^(?:\S ){4,}\S?$|^\s*[|+].*[|+]\s*$/m; // boards and tables need columns of equal width

// A text with its code, formulas and Markdown styled. Apart from formulas, no character is added or removed.
function styled(text, formulas = [], trees = []) {
  const nodes = [];
  const prose = (from, to) => {
    for (const [start, end, n] of formulas) {
      if (start < from || end > to || !trees[n]) continue;
      nodes.push(...inline(text.slice(from, start)));
      nodes.push(el("span", { class: "formula", title: text.slice(start, end) }, mathml(trees[n])));
      from = end;
    }
    nodes.push(...inline(text.slice(from, to)));
  };
  let at = 0;
  for (const match of text.matchAll(BLOCK)) {
    const { language, code, tag, inner } = match.groups;
    const body = code ?? inner;
    const start = tag ? tag.length + 2 : match[0].indexOf("\n") + 1;
    const end = match[0].length - (!tag && match[0].endsWith("\n") ? 1 : 0);
    prose(at, match.index);
    nodes.push(el("span", { class: tag ? "block inset" : "block" }, el("span", { class: "fence" }, match[0].slice(0, start)),
      highlight(body, languageOf(language ?? tag, body)), el("span", { class: "fence" }, match[0].slice(start + body.length, end))),
      el("span", { class: "newline" }, match[0].slice(end)));
    at = match.index + match[0].length;
  }
  prose(at, text.length);
  return nodes;
}

function inline(text) {
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(PROSE)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] != null);
    nodes.push(text.slice(at, match.index), el("span", { class: `text-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  return [...nodes, text.slice(at)];
}

// A text of any length; only the beginning of a long one is shown, with a button for the rest.
// ``styles`` returns its nodes, which have the same text; they are not made for a long text.
function longText(text, styles = () => text) {
  const looks = `text${GRID.test(text.slice(0, LONG)) ? " grid" : ""}`;
  if (text.length <= LONG) return el("pre", { class: looks }, styles());
  const pre = el("pre", { class: looks }, text.slice(0, LONG));
  const rest = el("button", { type: "button", onclick: () => { pre.textContent = visible(text); rest.remove(); } },
    `Show the other ${plural(text.length - LONG, "character")}`);
  return [pre, rest];
}

// Data such as arguments of a tool: names, and texts as they are.
function fields(value, hint = "", depth = 0) {
  if (typeof value === "string") {
    const language = /\n/.test(value) || hint ? languageOf(hint, value) : "";
    return longText(value, language ? () => el("span", { class: "block bare" }, highlight(value, language)) : undefined);
  }
  if (value === null || typeof value !== "object" || depth > 5) return el("pre", { class: "text grid" }, highlight(JSON.stringify(value), "json"));
  const entries = Object.entries(value);
  if (!entries.length) return el("pre", { class: "text grid" }, Array.isArray(value) ? "[]" : "{}");
  if (entries.every(([, item]) => item === null || typeof item === "number" || typeof item === "boolean") && Array.isArray(value)) {
    return longText(JSON.stringify(value));
  }
  return el("dl", { class: "fields" }, entries.slice(0, 300).map(([name, item]) =>
    [el("dt", {}, name), el("dd", {}, fields(item, hintOf(name) || hint, depth + 1))]),
    entries.length > 300 && [el("dt", {}, "…"), el("dd", { class: "soft" }, `and ${plural(entries.length - 300, "more item")}`)]);
}

const hintOf = (name) => (/^(code|source|python|program)$/i.test(name) ? "python" : /^(cmd|command|commands|script|bash)$/i.test(name) ? "shell" : "");
