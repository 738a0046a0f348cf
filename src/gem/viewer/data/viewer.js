// The page: its data, labels, list, address and keys. Episodes are numbered from 0 here, and from 1 where people see them.
"use strict";

const PAGE = 200; // rows shown at first, and added by "Show more"
const SWIPE = 70; // pixels of a swipe to the next or previous episode

const data = JSON.parse($("data").textContent);
const form = $("filters");
let rows = []; // of all episodes
let shown = []; // numbers of the episodes that pass the filters, in order
let listed = 0; // how many of them are in the list
let raw = false; // whether texts are shown without styles
const several = {}; // field → whether the episodes differ in it

// The name of a run, or of a file that is not in the folder of a run.
const runName = (n) => {
  const parts = data.files[n].split("/");
  return ["trajectories.jsonl", "failures.jsonl"].includes(parts.at(-1)) && parts.length > 1 ? parts.at(-2) : parts.at(-1);
};
const distinct = (field) => [...new Set(rows.map((row) => row[field]).filter((found) => found != null))].sort();

// ---------------------------------------------------------------- episodes, from this file or from the server

async function ask(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

const source = data.rows ? {
  rows: async () => data.rows,
  body: async (n) => JSON.parse($(`body-${n}`).textContent),
  haystacks: [],
  async search(text) {
    const found = new Set();
    for (let n = 0; n < rows.length; n++) {
      this.haystacks[n] ??= strings({ ...await this.body(n), formulas: [] }).join("\n").toLowerCase();
      if (this.haystacks[n].includes(text)) found.add(n);
    }
    return found;
  },
} : {
  async rows() {
    const all = [];
    for (let total = 1; all.length < total;) {
      const page = await ask(`rows?from=${all.length}`);
      all.push(...page.rows);
      total = page.total;
      $("count").textContent = `Loading: ${all.length} of ${plural(total, "episode")}`;
    }
    return all;
  },
  body: (n) => ask(`body?n=${n}`),
  search: async (text) => new Set(await ask(`search?q=${encodeURIComponent(text)}`)),
};

// Every text in a body, except for images. The server searches the same.
function strings(found) {
  if (typeof found === "string") return found.startsWith("data:image/") ? [] : [found];
  return found && typeof found === "object" ? Object.values(found).flatMap(strings) : [];
}

// ---------------------------------------------------------------- labels and notes, kept by the browser

const labels = {
  kept: new Map(), // where the browser does not store anything, labels last until the page is closed
  get(row) { return this.kept.get(row.key) ?? { label: "", note: "" }; },
  load() {
    for (const row of rows) {
      const text = stored(`gem-view:${row.key}`);
      if (text) this.kept.set(row.key, JSON.parse(text));
    }
    $("export").hidden = !this.kept.size;
  },
  set(row, change) {
    const changed = { ...this.get(row), ...change };
    const empty = !changed.label && !changed.note;
    empty ? this.kept.delete(row.key) : this.kept.set(row.key, changed);
    store(`gem-view:${row.key}`, empty ? null : JSON.stringify(changed));
    $("export").hidden = !this.kept.size;
  },
  export() {
    const lines = rows.filter((row) => this.kept.has(row.key)).map((row) => JSON.stringify({
      file: data.files[row.file], line: row.line, key: row.key, env_id: row.env, task: row.task, ...this.get(row),
    }) + "\n");
    const url = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    el("a", { href: url, download: "labels.jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  },
};

function stored(key) { try { return localStorage.getItem(key); } catch { return null; } }

function store(key, text) {
  try { text == null ? localStorage.removeItem(key) : localStorage.setItem(key, text); } catch { /* not allowed */ }
}

// ---------------------------------------------------------------- filters and order

const FLAGS = {
  forks: ["forks", (row) => row.forks > 0],
  invalid: ["invalid actions", (row) => row.invalid > 0],
  tool_errors: ["tool errors", (row) => row.tool_errors > 0],
  labeled: ["labeled", (row) => labels.kept.has(row.key)],
};
const SELECTS = { env: "Environment", model: "Model", outcome: "Outcome", failure: "Failure", file: "File" };
const ORDERS = { n: "number", title: "task title", outcome: "outcome", env: "environment", model: "model", reward: "reward",
  turns: "turns", seconds: "seconds", tokens: "tokens sampled", cost: "cost", invalid: "invalid actions", update: "update" };
const HEADS = { outcome: "Outcome", title: "Task", env: "Environment", model: "Model", reward: "Reward", turns: "Turns", seconds: "Time" };

function buildFilters() {
  const option = (chosen, text) => el("option", { value: chosen }, text);
  for (const [name, label] of Object.entries(SELECTS)) {
    const values = distinct(name);
    if (values.length > 1 || (name === "failure" && values.length)) {
      const options = values.map((chosen) => option(chosen, name === "file" ? data.files[chosen] : name === "outcome" ? words(chosen) : chosen));
      $("choices").append(el("label", {}, el("span", {}, label), el("select", { name }, option("", "all"), options)));
    }
  }
  const bound = (name, label) => el("input", { name, type: "number", step: "any", placeholder: label, "aria-label": `Reward ${label}` });
  $("choices").append(
    el("span", { class: "field" }, el("span", {}, "Reward"), el("span", { class: "pair" }, bound("least", "at least"), bound("most", "at most"))),
    el("label", {}, el("span", {}, "Order"), el("select", { name: "order" }, Object.entries(ORDERS).map(([name, text]) => option(name, text)))),
    el("div", { class: "checks" }, [...Object.entries(FLAGS).map(([name, [label]]) => [name, label]), ["descending", "largest first"]].map(([name, label]) =>
      el("label", {}, el("input", { type: "checkbox", name }), " ", label))));
  $("heads").append(...Object.entries(HEADS).map(([name, label]) =>
    el("button", { type: "button", class: name, title: `Order by ${ORDERS[name]}`, onclick: () => orderBy(name) }, label)));
}

function orderBy(name) {
  const { order, descending } = form.elements;
  descending.checked = order.value === name ? !descending.checked : ["reward", "turns", "seconds"].includes(name);
  order.value = name;
  refresh();
}

let latest = 0; // number of the newest refresh; the results of earlier searches are dropped

async function refresh() {
  const now = ++latest;
  const chosen = Object.fromEntries(new FormData(form));
  const text = chosen.text.trim().toLowerCase();
  const found = text && await source.search(text);
  if (now !== latest) return;
  const within = (row) => (!chosen.least || (row.reward != null && row.reward >= +chosen.least)) &&
    (!chosen.most || (row.reward != null && row.reward <= +chosen.most));
  shown = [...rows.keys()].filter((n) => (!text || found.has(n)) && within(rows[n]) && (scope == null || isOf(rows[n], scope)) &&
    Object.keys(SELECTS).every((name) => !chosen[name] || String(rows[n][name]) === chosen[name]) &&
    Object.entries(FLAGS).every(([name, [, test]]) => !chosen[name] || test(rows[n])));
  if (chosen.order !== "n") shown.sort(by(chosen.order));
  if (chosen.descending) shown.reverse();
  $("count").textContent = shown.length === rows.length ? plural(rows.length, "episode") : `${grouped(shown.length)} of ${plural(rows.length, "episode")}`;
  for (const head of $("heads").children) {
    head.setAttribute("aria-pressed", String(head.className === chosen.order));
    head.dataset.order = head.className !== chosen.order ? "" : chosen.descending ? "↓" : "↑";
  }
  const active = Object.entries(chosen).filter(([name, set]) => set && !["text", "order", "descending"].includes(name)).length;
  $("filters").querySelector("summary").textContent = active ? `Filters (${active})` : "Filters";
  $("rows").replaceChildren();
  listed = 0;
  listMore();
}

// Compares episodes by a field; episodes without a value come first.
const by = (field) => (a, b) => {
  const [x, y] = [rows[a][field], rows[b][field]];
  if (x == null || y == null) return (x != null) - (y != null);
  return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
};

// ---------------------------------------------------------------- list

function listMore() {
  const items = shown.slice(listed, listed + PAGE).map((n) => el("li", {}, rowLink(n)));
  listed += items.length;
  $("rows").append(...items);
  $("more").hidden = listed >= shown.length;
}

function rowLink(n) {
  const row = rows[n];
  const chips = [row.forks && "forked", row.invalid && "invalid", row.tool_errors && "tool error"].filter(Boolean);
  const fact = (name, text) => text != null && el("span", { class: name }, text);
  return el("a", { href: link({ n }), id: `row-${n}`, "aria-current": n === route.n && "true" },
    el("span", { class: "outcome" }, pill(row)),
    el("span", { class: "title" }, el("span", { class: "name" }, titleOf(row)),
      [row.agent, labelOf(row) !== titleOf(row) && labelOf(row), row.failure, several.update && `update ${row.update}`]
        .filter(Boolean).map((text) => [" ", el("span", { class: "soft" }, text)]),
      chips.map((chip) => [" ", el("span", { class: "chip warn" }, chip)]),
      labels.get(row).label && [" ", el("span", { class: "chip" }, `“${labels.get(row).label}”`)]),
    several.env && fact("env", row.env ?? "–"), several.model && fact("model", row.model ?? "–"),
    el("span", { class: `reward ${row.reward > 0 ? "good" : row.reward < 0 ? "bad" : ""}` }, number(row.reward)),
    fact("turns", [row.turns, el("span", { class: "unit" }, row.turns === 1 ? " turn" : " turns")]),
    fact("seconds", row.seconds ? seconds(row.seconds) : "–"));
}

// Returns the row of an episode, scrolled into view, or null if a filter hides it.
function reveal(n) {
  if (!shown.includes(n)) return null;
  while (!$(`row-${n}`)) listMore();
  $(`row-${n}`).scrollIntoView({ block: "nearest" });
  return $(`row-${n}`);
}

// ---------------------------------------------------------------- address: #episode=KEY&turn=3&view=tokens&beside=KEY, #task=ID
// A number of an episode stands for its key.

const NOWHERE = { n: null, turn: null, tokens: false, vs: null, all: false, task: null };
let route = NOWHERE;
let numbers = new Map(); // key of an episode in addresses → its number

function readRoute() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const numberOf = (name) => numbers.get(asked.get(name)) ?? (/^\d{1,7}$/.test(asked.get(name)) ? rows[asked.get(name) - 1]?.n : null) ?? null;
  const task = asked.get("task");
  if (task != null && rows.some((row) => isOf(row, task))) return { ...NOWHERE, task };
  const n = numberOf("episode");
  if (n == null) return NOWHERE;
  const turn = /^\d{1,6}$/.test(asked.get("turn") ?? "") ? +asked.get("turn") - 1 : null;
  return { n, turn, tokens: asked.get("view") === "tokens", vs: numberOf("beside"), all: asked.get("agents") === "all", task: null };
}

function link({ n, turn, tokens, vs, all, task }) {
  if (task != null) return `#task=${encodeURIComponent(task)}`;
  if (n == null) return "#";
  const parts = [`episode=${rows[n].address}`, turn != null && `turn=${turn + 1}`, tokens && "view=tokens",
    vs != null ? `beside=${rows[vs].address}` : all && "agents=all"];
  return `#${parts.filter(Boolean).join("&")}`;
}

const isOf = (row, task) => row.group === task || row.task === task;

// Changes the address without an entry in the history, so that "back" leaves the viewer after many steps.
const go = (change) => location.replace(link(change));

let scope = null; // the task whose rollouts are listed; null for those of all tasks
let drawn = ""; // what the detail shows, so that moving between its turns does not draw it again

async function open() {
  if (location.hash === "#list") return;
  const before = route;
  route = readRoute();
  if (route.n == null && route.task !== scope) {
    scope = route.task;
    await refresh();
  }
  document.body.classList.toggle("reading", route.n != null);
  document.body.classList.toggle("task", route.task != null);
  for (const old of document.querySelectorAll("#rows [aria-current]")) old.removeAttribute("aria-current");
  if (route.n == null) {
    drawn = "";
    $("detail").replaceChildren();
    $("task").replaceChildren(...(route.task == null ? [] : [taskPanel([...rows.keys()].filter((n) => isOf(rows[n], route.task)))]));
    if (before.n != null) $(`row-${before.n}`)?.scrollIntoView({ block: "center" });
    return;
  }
  reveal(route.n)?.setAttribute("aria-current", "true");
  const wanted = link({ ...route, turn: null }) + raw;
  if (drawn !== wanted) {
    const chosen = route.vs != null ? [route.n, route.vs] : route.all && seats(route.n).length ? seats(route.n) : [route.n];
    const bodies = await Promise.all(chosen.map(source.body));
    if (wanted !== link({ ...route, turn: null }) + raw) return; // another episode was chosen meanwhile
    const content = route.vs != null && !route.tokens ? comparison(chosen, bodies)
      : el("div", { class: "columns" }, chosen.map((n, i) => episode(n, bodies[i])));
    $("detail").replaceChildren(toolbar(route.n), route.tokens ? legend() : "", content);
    document.body.classList.toggle("wide", chosen.length > 1);
    scrollTo(0, 0);
    drawn = wanted;
    if (!$("list").contains(document.activeElement) || entered) $("detail").querySelector("h2").focus({ preventScroll: true });
  }
  entered = false;
  for (const old of document.querySelectorAll(".turn.current")) old.classList.remove("current");
  const turn = route.turn != null && $(turnId(route.n, route.turn));
  if (turn) {
    turn.classList.add("current");
    const folded = turn.closest("details");
    if (folded) folded.open = true;
    turn.scrollIntoView({ block: "start" });
    turn.focus({ preventScroll: true });
  }
}

// The episodes of all agents of the game that an episode belongs to, in the order of their agents' names.
function seats(n) {
  if (rows[n].agent == null) return [];
  const found = rows.filter((row) => row.agent != null && ["task", "env", "file"].every((name) => row[name] === rows[n][name]));
  const first = Map.groupBy(found, (row) => row.agent);
  first.set(rows[n].agent, [rows[n]]); // other games may have the same seed
  return [...first.values()].map(([row]) => row.n).sort((a, b) => rows[a].agent.localeCompare(rows[b].agent));
}

// Other rollouts of the task of an episode.
const rivals = (n) => (rows[n].task == null ? [] : [...rows.keys()]
  .filter((m) => m !== n && rows[m].task === rows[n].task && rows[m].env === rows[n].env));

function toolbar(n) {
  const [others, game, at] = [rivals(n), seats(n), shown.indexOf(n)];
  const choose = (event) => go({ n, vs: event.target.value ? +event.target.value : null, tokens: route.tokens });
  const option = (m) => el("option", { value: m, selected: m === route.vs },
    [`Episode ${m + 1}`, rows[m].agent, several.file && runName(rows[m].file), several.model && rows[m].model, outcomeOf(rows[m])[0], number(rows[m].reward)].filter(Boolean).join(", "));
  const toggle = (text, key, pressed, onclick) => el("button", { type: "button", title: `Key ${key}`, "aria-pressed": String(pressed), onclick }, text);
  return el("div", { class: "toolbar" }, el("a", { class: "button back", href: "#" }, "← Results"),
    el("span", { class: "steps" },
      el("button", { type: "button", class: "previous", "aria-label": "Previous episode", title: "Key k", disabled: at <= 0, onclick: () => step(-1) }, "‹ Previous"),
      at >= 0 && el("span", { class: "soft" }, `${grouped(at + 1)} / ${grouped(shown.length)}`),
      el("button", { type: "button", class: "next", "aria-label": "Next episode", title: "Key j", disabled: at === shown.length - 1, onclick: () => step(1) }, "Next ›")),
    el("span", { class: "views" },
      rows[n].tokens > 0 && toggle("Tokens", "t", route.tokens, () => go({ ...route, tokens: !route.tokens })),
      toggle("Raw text", "r", raw, toggleRaw),
      game.length > 1 && toggle(`All ${game.length} agents`, "", route.all, () => go({ n, tokens: route.tokens, all: !route.all })),
      others.length > 0 && el("select", { "aria-label": "Compare with another rollout of the task", onchange: choose },
        el("option", { value: "" }, "Compare with …"), others.map(option))));
}

function toggleRaw() {
  raw = !raw;
  open();
}

// ---------------------------------------------------------------- keyboard and swipes

let entered = false; // whether an episode was chosen with Enter or a click, which moves the focus to it

function step(by) {
  const at = shown.indexOf(route.n);
  const next = shown[at < 0 ? 0 : Math.min(Math.max(at + by, 0), shown.length - 1)];
  if (next == null) return;
  reveal(next);
  if ($("list").contains(document.activeElement)) $(`row-${next}`).focus({ preventScroll: true });
  go({ n: next, tokens: route.tokens });
}

function stepTurn(by) {
  if (route.n == null) return;
  const turn = route.turn == null ? (by > 0 ? 0 : null) : Math.min(Math.max(route.turn + by, 0), rows[route.n].turns - 1);
  go({ ...route, turn });
}

function compare() {
  const [other] = route.n == null ? [] : rivals(route.n);
  if (other != null) go({ n: route.n, vs: route.vs == null ? other : null });
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  ArrowRight: () => step(1),
  ArrowLeft: () => step(-1),
  n: () => stepTurn(1),
  p: () => stepTurn(-1),
  t: () => route.n != null && rows[route.n].tokens > 0 && go({ ...route, tokens: !route.tokens }),
  r: () => route.n != null && toggleRaw(),
  c: compare,
  "/": () => { if (route.n != null) go(NOWHERE); form.elements.text.focus(); },
  "?": () => $("help").showModal(),
  Enter: () => route.n == null ? step(1) : $("detail").querySelector("h2")?.focus(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const field = event.target.closest("input, select, textarea");
  if (event.key === "Escape") {
    const last = route.n;
    if (!field) go(NOWHERE);
    ($(`row-${last}`) ?? $("list")).focus();
  } else if (field === form.elements.text && event.key === "Enter") {
    event.preventDefault();
    step(0);
  } else if (!field && KEYS[event.key] && !(event.key === "Enter" && event.target.closest("a, button, summary"))) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

// Moves to the next or previous episode, except where a swipe scrolls something.
function onTouch(start) {
  if (route.n == null || start.touches.length > 1 || scrollsSideways(start.target)) return;
  const [{ clientX: x, clientY: y }] = start.touches;
  addEventListener("touchend", ({ changedTouches: [end] }) => {
    const [dx, dy] = [end.clientX - x, end.clientY - y];
    if (Math.abs(dx) > SWIPE && Math.abs(dx) > 2 * Math.abs(dy)) step(dx < 0 ? 1 : -1);
  }, { once: true, passive: true });
}

const scrollsSideways = (node) => node !== document.body && node instanceof Element &&
  ((node.scrollWidth > node.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(node).overflowX)) || scrollsSideways(node.parentElement));

// ---------------------------------------------------------------- start

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  store("gem-view-theme", theme);
}

const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

let closed = []; // what was opened for printing

async function start() {
  rows = await source.rows();
  rows.forEach((row, n) => {
    const copies = rows[numbers.get(row.key)]?.copies ?? 0; // equal episodes have the same key
    row.n = n;
    row.copies = 1;
    row.address = copies ? `${row.key}.${copies + 1}` : row.key;
    if (copies) rows[numbers.get(row.key)].copies++;
    numbers.set(row.address, n);
  });
  for (const field of ["env", "model", "update"]) several[field] = distinct(field).length > 1;
  const names = [...new Set(rows.map((row) => runName(row.file)))]; // files without episodes are not named
  several.file = names.length > 1;
  document.body.classList.toggle("one-env", !several.env);
  document.body.classList.toggle("one-model", !several.model);
  labels.load();
  if (stored("gem-view-theme")) setTheme(stored("gem-view-theme"));
  $("source").textContent = names.join(", ");
  $("source").title = [...new Set(rows.map((row) => data.files[row.file]))].join("\n");
  document.title = `${names.join(", ")} – gem view`;
  document.body.append(el("datalist", { id: "labels" }, ["good", "bad", "unsure"].map((label) => el("option", { value: label }))));
  buildFilters();
  buildOverview();

  let typing;
  form.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(refresh, 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  $("more").addEventListener("click", listMore);
  $("rows").addEventListener("click", (event) => { entered = !!event.target.closest("a"); });
  $("export").addEventListener("click", () => labels.export());
  $("keys").addEventListener("click", () => $("help").showModal());
  $("theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
  addEventListener("keydown", onKey);
  addEventListener("touchstart", onTouch, { passive: true });
  addEventListener("hashchange", open);
  addEventListener("beforeprint", () => {
    closed = [...$("detail").querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of closed) details.open = false; });
  await refresh();
  await open();
  performance.mark("ready");
}

addEventListener("unhandledrejection", (event) => { $("count").textContent = event.reason.message; });
start();
