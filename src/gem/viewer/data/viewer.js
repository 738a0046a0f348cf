// The viewer of recorded episodes. Text of models is hostile: every element is built by el(), which sets text and
// attributes only, and nothing is loaded. Episodes are numbered from 0 here, and from 1 where people see them.
"use strict";
(async () => {

const PAGE = 200; // rows shown at first, and added by "Show more"
const LONG = 20_000; // characters of a message, or tokens of a turn, shown at first
const WINDOW = 10; // updates in the moving average of a learning curve
const ROLES = ["user", "assistant", "tool", "system"];

// The name of a run, or of a file that is not in the folder of a run.
const fileName = (n) => {
  const parts = data.files[n].split("/");
  return parts.at(-1) === "trajectories.jsonl" && parts.length > 1 ? parts.at(-2) : parts.at(-1);
};
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const form = $("filters");
let rows = []; // of all episodes
let shown = []; // numbers of the episodes that pass the filters, in order
let listed = 0; // how many of them are in the list

// ---------------------------------------------------------------- elements and text

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

// Characters that reorder text are written as escapes.
const visible = (text) =>
  text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (character) => "\\u" + character.charCodeAt(0).toString(16));

function number(value) {
  if (typeof value !== "number") return value == null ? "–" : String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(+value.toPrecision(3));
}

const seconds = (value) => (typeof value === "number" ? `${+value.toFixed(3)} s` : number(value));
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const percent = (share) => (Number.isNaN(share) ? "–" : `${(100 * share).toFixed(1)} %`);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const distinct = (field) => [...new Set(rows.map((row) => row[field]).filter((value) => value != null))].sort();
const pairs = (object) =>
  Object.entries(object).map(([key, value]) => `${key} ${typeof value === "object" ? JSON.stringify(value) : number(value)}`);

// Text of which only the beginning is shown, with a button for the rest.
function longText(text) {
  if (text.length <= LONG) return el("pre", {}, text);
  const pre = el("pre", {}, text.slice(0, LONG));
  const rest = el("button", { type: "button", onclick: () => { pre.textContent = visible(text); rest.remove(); } },
    `Show the other ${plural(text.length - LONG, "character")}`);
  return [pre, rest];
}

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
      this.haystacks[n] ??= strings(await this.body(n)).join("\n").toLowerCase();
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
function strings(value) {
  if (typeof value === "string") return value.startsWith("data:image/") ? [] : [value];
  return value && typeof value === "object" ? Object.values(value).flatMap(strings) : [];
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
  },
  set(row, change) {
    const value = { ...this.get(row), ...change };
    const empty = !value.label && !value.note;
    empty ? this.kept.delete(row.key) : this.kept.set(row.key, value);
    store(`gem-view:${row.key}`, empty ? null : JSON.stringify(value));
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

function store(key, value) {
  try { value == null ? localStorage.removeItem(key) : localStorage.setItem(key, value); } catch { /* not allowed */ }
}

// ---------------------------------------------------------------- filters and order

const FLAGS = {
  forks: ["forks", (row) => row.forks > 0],
  invalid: ["invalid actions", (row) => row.invalid > 0],
  tool_errors: ["tool errors", (row) => row.tool_errors > 0],
  labeled: ["labeled", (row) => labels.kept.has(row.key)],
};
const SELECTS = { env: "Environment", outcome: "Outcome", failure: "Failure", model: "Model", file: "File" };
const ORDERS = { n: "number", reward: "reward", turns: "turns", update: "update", tokens: "tokens sampled",
  seconds: "seconds", invalid: "invalid actions", task: "task" };

function buildFilters() {
  const option = (value, text) => el("option", { value }, text);
  const named = (label, field) => [el("label", { for: field.id }, label), field];
  for (const [name, label] of Object.entries(SELECTS)) {
    const values = distinct(name);
    if (values.length > 1 || (name === "failure" && values.length)) {
      const options = values.map((value) => option(value, name === "file" ? fileName(value) : value));
      $("choices").append(...named(label, el("select", { id: `by-${name}`, name }, option("", "all"), options)));
    }
  }
  const bound = (name, label) => el("input", { name, type: "number", step: "any", placeholder: label, "aria-label": `Reward ${label}` });
  const orders = Object.entries(ORDERS).map(([value, text]) => option(value, text));
  $("choices").append(
    el("span", {}, "Reward"), el("span", { class: "pair" }, bound("least", "at least"), bound("most", "at most")),
    el("div", { class: "wide" }, Object.entries(FLAGS).map(([name, [label]]) =>
      el("label", {}, el("input", { type: "checkbox", name }), " ", label))),
    ...named("Order", el("select", { id: "by-order", name: "order" }, orders)),
    el("div", { class: "wide" }, el("label", {}, el("input", { type: "checkbox", name: "descending" }), " largest first")));
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
  shown = [...rows.keys()].filter((n) => (!text || found.has(n)) && within(rows[n]) &&
    Object.keys(SELECTS).every((name) => !chosen[name] || String(rows[n][name]) === chosen[name]) &&
    Object.entries(FLAGS).every(([name, [, test]]) => !chosen[name] || test(rows[n])));
  if (chosen.order !== "n") shown.sort(by(chosen.order));
  if (chosen.descending) shown.reverse();
  $("count").textContent = shown.length === rows.length
    ? plural(rows.length, "episode") : `${shown.length.toLocaleString("en")} of ${plural(rows.length, "episode")}`;
  $("rows").replaceChildren();
  listed = 0;
  listMore();
  $("scores")?.replaceChildren(scoreTable());
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
  const flags = [row.forks && "forked", row.invalid && "invalid", row.tool_errors && "tool error"].filter(Boolean);
  const facts = [labels.get(row).label && `“${labels.get(row).label}”`, row.failure, plural(row.turns, "turn"),
    several.update && `update ${row.update}`, row.task, several.model && row.model, several.env && row.env,
    row.agent];
  return el("a", { href: `#ep${n + 1}`, id: `row-${n}`, "aria-current": n === route.n && "true" },
    el("div", { class: "first" }, el("span", { class: "soft" }, `#${n + 1}`),
      el("span", { class: tone(row) }, row.outcome), el("span", { class: "warn" }, flags.join(", ")),
      el("span", {}, number(row.reward))),
    el("div", { class: "second" }, facts.filter(Boolean).join(" · ")));
}

// Returns the row of an episode, scrolled into view, or null if a filter hides it.
function reveal(n) {
  if (!shown.includes(n)) return null;
  while (!$(`row-${n}`)) listMore();
  $(`row-${n}`).scrollIntoView({ block: "nearest" });
  return $(`row-${n}`);
}

const tone = (row) => (row.outcome === "solved" ? "good" : row.outcome === "failed" ? "bad" : "warn");
const several = {}; // field → whether the episodes differ in it

// ---------------------------------------------------------------- episode

function episode(n, body) {
  const row = rows[n];
  const details = { environment: row.env, file: `${data.files[row.file]}, line ${row.line}`, ...body.details,
    time: seconds(row.seconds), "tokens sampled": row.tokens || null };
  const list = Object.entries(details).filter(([, value]) => value != null)
    .flatMap(([name, value]) => [el("dt", {}, name.replace("_id", "")), el("dd", {}, number(value))]);
  return el("article", { class: "episode", "aria-label": `Episode ${n + 1}` },
    el("h2", { tabindex: "-1" }, `Episode ${n + 1}${row.agent == null ? "" : `, ${row.agent}`}: `, el("span", { class: tone(row) }, row.outcome),
      `, reward ${number(row.reward)}, ${plural(row.turns, "turn")}`),
    el("details", {}, el("summary", {}, "Details"), el("dl", { class: "details" }, list),
      body.tools.length > 0 && el("pre", {}, JSON.stringify(body.tools, null, 1))),
    noteFields(row),
    body.turns.map((turn, k) => turnSection(n, turn, k, body.turns[k - 1])),
    el("section", { class: "turn", "aria-label": "End" }, el("h3", {}, `End: ${row.outcome}`),
      body.details.failure && el("div", { class: "message bad" }, longText(body.details.failure)),
      body.final.map((message) => messageCard(message, row.agent))));
}

// The episodes of all agents of the game that an episode belongs to, in the order of their agents' names.
function seats(n) {
  if (rows[n].agent == null) return [];
  const found = rows.filter((row) => row.agent != null && ["task", "env", "file"].every((name) => row[name] === rows[n][name]));
  const first = Map.groupBy(found, (row) => row.agent);
  first.set(rows[n].agent, [rows[n]]); // other games may have the same seed
  return [...first.values()].map(([row]) => row.n).sort((a, b) => rows[a].agent.localeCompare(rows[b].agent));
}

// What applies to the episode and to the one beside it.
function toolbar(n, bodies) {
  const rivals = rows[n].task == null ? [] : [...rows.keys()]
    .filter((m) => m !== n && rows[m].task === rows[n].task && rows[m].env === rows[n].env);
  const choose = (event) => go({ n, vs: event.target.value ? +event.target.value : null, tokens: route.tokens });
  const game = seats(n);
  const option = (m) => el("option", { value: m, selected: m === route.vs },
    `Episode ${m + 1}${rows[m].agent == null ? "" : `, ${rows[m].agent}`}: ${rows[m].outcome}, reward ${number(rows[m].reward)}`);
  return el("div", { class: "tools" }, el("a", { href: "#" }, "← All episodes"),
    rows[n].tokens > 0 && el("button", { type: "button", "aria-pressed": String(route.tokens),
      onclick: () => go({ ...route, tokens: !route.tokens }) }, "Tokens"),
    game.length > 1 && el("button", { type: "button", "aria-pressed": String(route.all),
      onclick: () => go({ n, tokens: route.tokens, all: !route.all }) }, `All ${game.length} agents`),
    rivals.length > 0 && el("label", {}, `Beside (${rows[n].task}): `,
      el("select", { onchange: choose }, el("option", { value: "" }, "no other"), rivals.map(option))),
    bodies[1] && !route.all && el("span", { role: "status" }, difference(...bodies)), route.tokens && legend());
}

function noteFields(row) {
  const { label, note } = labels.get(row);
  const change = (name) => (event) => {
    labels.set(row, { [name]: event.target.value });
    $(`row-${row.n}`)?.replaceWith(rowLink(row.n));
  };
  return el("div", { class: "note" },
    el("input", { "aria-label": "Label", placeholder: "Label", value: label, list: "labels", oninput: change("label") }),
    el("textarea", { "aria-label": "Note", placeholder: "Note", rows: 1, oninput: change("note") }, note));
}

function turnSection(n, turn, k, before) {
  return el("section", { class: "turn", id: `ep${n + 1}-t${k + 1}`, "aria-label": `Turn ${k + 1}`, tabindex: "-1" },
    el("h3", {}, el("a", { href: link({ ...route, turn: k }) }, `Turn ${k + 1}`),
      turn.fork && el("span", { class: "warn" }, " · fork: the context does not extend the previous one")),
    route.tokens ? [tokens("Context added", turn.fed.map((id) => ({ id })), "fed"),
      tokens("Reply", turn.ids.map((id, t) => ({ id, logprob: turn.logprobs[t], mask: turn.mask[t] })), "sampled")]
      : [turn.observation.filter((message, m) => !repeated(before, message, m)).map((message) => messageCard(message, rows[n].agent)),
        messageCard(turn.reply, rows[n].agent)],
    result(turn));
}

// Whether an observation that holds the whole history repeats a message of the previous one.
const repeated = (before, message, m) =>
  before?.observation.length > 1 && JSON.stringify(before.observation[m]) === JSON.stringify(message);

// What the agent of a game of several observes is labelled as seen by it only: the others get observations of their own.
function messageCard(message, agent) {
  const title = agent == null ? message.role : message.role === "assistant" ? agent : `seen by ${agent} (${message.role})`;
  const role = ROLES.includes(message.role) ? message.role : "user";
  const call = ({ name, arguments: values }) => el("pre", {}, `${name}(${values})`);
  return el("div", { class: `message ${role}` }, el("h4", {}, title),
    message.reasoning && el("details", {}, el("summary", {}, "Reasoning"), longText(String(message.reasoning))),
    (message.images ?? []).map((src) => el("img", { src, alt: `image in a message of the ${role}` })),
    message.text && longText(message.text),
    message.calls && el("div", {}, el("h4", {}, "tool calls"), message.calls.map(call)));
}

function result(turn) {
  const failed = turn.reward == null;
  return el("div", { class: "result" },
    el("span", { class: failed ? "bad" : turn.reward > 0 ? "good" : "" }, failed ? "failed" : `reward ${number(turn.reward)}`),
    turn.reward_parts && el("span", {}, pairs(turn.reward_parts).join(" + ")),
    turn.invalid && el("span", { class: "warn" }, `invalid: ${turn.invalid}`),
    turn.calls.map((call) => el("span", { class: call.fault ? "warn" : "" }, `${call.name}: ${call.fault ?? "ok"}`)),
    turn.finish && el("span", {}, `finish: ${turn.finish}`),
    turn.seconds && el("span", {}, Object.entries(turn.seconds).map(([who, s]) => `${who} ${seconds(s)}`).join(", ")),
    turn.ids.length > 0 && el("span", {}, `${plural(turn.ids.length, "token")} after ${turn.context.toLocaleString("en")}`),
    turn.policy_version && el("span", {}, `policy version ${turn.policy_version}`),
    turn.dropped && el("span", {}, `${plural(turn.dropped, "oldest turn")} left out`),
    turn.usage && el("span", {}, `usage: ${pairs(turn.usage).join(", ")}`));
}

// ---------------------------------------------------------------- tokens

const WHITE = { "\n": "⏎\n", "\t": "⇥\t", "\r": "␍" };
const tokenText = (id) => (data.vocabulary[id] ?? ` ${id} `).replace(/[\n\t\r]/g, (character) => WHITE[character]);

function tokens(title, list, kind) {
  if (!list.length) return null;
  const span = ({ id, logprob, mask }) => {
    const known = typeof logprob === "number";
    const facts = [`token ${id}`, known && `log-probability ${number(logprob)}, probability ${number(Math.exp(logprob))}`,
      mask === 0 && "not trained"].filter(Boolean).join("; ");
    const node = el("span", { class: `${kind}${mask === 0 ? " unmasked" : ""}`, title: facts }, tokenText(id));
    if (known) node.style.setProperty("--p", `${(100 * (1 - Math.exp(logprob))).toFixed(0)}%`);
    return node;
  };
  const known = list.map((token) => token.logprob).filter((value) => typeof value === "number");
  const untrained = list.filter((token) => token.mask === 0).length;
  const summary = [plural(list.length, "token"), known.length && `mean log-probability ${number(mean(known))}`,
    untrained && `${untrained} not trained`].filter(Boolean).join(", ");
  const pre = el("pre", { class: "tokens" }, list.slice(0, LONG).map(span));
  return el("div", { class: `message ${kind === "fed" ? "user" : "assistant"}` }, el("h4", {}, `${title}: ${summary}`), pre,
    list.length > LONG && el("p", { class: "soft" }, `and ${plural(list.length - LONG, "token")} more`));
}

function legend() {
  const shade = (p) => {
    const node = el("span", { class: "sampled" }, `p = ${p}`);
    node.style.setProperty("--p", `${100 * (1 - p)}%`);
    return node;
  };
  return el("span", { class: "tokens legend soft" }, "Sampled, by probability: ", [1, 0.5, 0.1].map((p) => [shade(p), " "]),
    el("span", { class: "sampled unmasked" }, "not trained"), " ", el("span", { class: "fed" }, "fed"));
}

// ---------------------------------------------------------------- learning curves and scores

function buildOverview() {
  const scores = el("div", { id: "scores", class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores" });
  const content = el("div", { class: "content" }, curves(), scores);
  $("overview").append(el("details", { open: matchMedia("(min-width: 48rem)").matches }, el("summary", {}, "Results"), content));
}

function curves() {
  const names = { success: "success rate", reward: "mean reward", turns_when_won: "turns of won episodes" };
  return [...Map.groupBy(data.curve, (point) => point.run)].flatMap(([run, points]) =>
    Object.entries(names).map(([field, label]) => curve(run, points, field, label)));
}

function curve(run, points, field, label) {
  const trained = points.filter((point) => point.train[field] != null);
  const smooth = trained.map((point, i) =>
    [point.episodes, mean(trained.slice(Math.max(0, i + 1 - WINDOW), i + 1).map((p) => p.train[field]))]);
  const tests = points.filter((point) => point.eval?.[field] != null).map((point) => [point.episodes, point.eval[field]]);
  const values = [...smooth, ...tests].map(([, value]) => value);
  if (!values.length) return null;
  const [low, high, last] = [Math.min(0, ...values), Math.max(...values, 1e-9), points.at(-1).episodes];
  const at = ([x, y]) => [28 + 184 * x / last, 100 - 90 * (y - low) / (high - low)];
  const caption = `${run}: ${label}, ${number(values[0])} → ${number(smooth.at(-1)?.[1])} in training` +
    (tests.length ? `, ${number(tests.at(-1)[1])} in evaluation (dots)` : "");
  return el("figure", {},
    svg("svg", { viewBox: "0 0 220 118", role: "img", "aria-label": caption },
      svg("line", { x1: 28, y1: 100, x2: 212, y2: 100 }), svg("line", { x1: 28, y1: 10, x2: 212, y2: 10 }),
      svg("text", { x: 0, y: 14 }, number(high)), svg("text", { x: 0, y: 104 }, number(low)),
      svg("text", { x: 212, y: 114, "text-anchor": "end" }, plural(last, "episode")),
      svg("path", { d: smooth.map((point, i) => `${i ? "L" : "M"}${at(point)}`).join("") }),
      ...tests.map((point) => svg("circle", { cx: at(point)[0], cy: at(point)[1], r: 3 }))),
    el("figcaption", {}, caption));
}

function scoreTable() {
  const name = (row) => [several.env && row.env, several.model && row.model, several.file && fileName(row.file)]
    .filter(Boolean).join(" · ") || (row.env ?? "–");
  const groups = Map.groupBy(shown.map((n) => rows[n]), name);
  const cells = [...groups].map(([label, group]) => {
    const scored = group.filter((row) => typeof row.reward === "number");
    const turns = group.reduce((sum, row) => sum + row.turns, 0);
    return [label, group.length, percent(scored.filter((row) => row.outcome === "solved").length / scored.length),
      scored.length ? number(mean(scored.map((row) => row.reward))) : "–", number(turns / group.length),
      percent(group.reduce((sum, row) => sum + row.invalid, 0) / turns),
      group.filter((row) => row.outcome === "failed").length];
  });
  const heads = ["group", "episodes", "solved", "mean reward", "mean turns", "invalid turns", "failed"];
  return el("table", {}, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, cells.map(([label, ...row]) =>
      el("tr", {}, el("th", { scope: "row" }, label), row.map((cell) => el("td", {}, cell))))));
}

// ---------------------------------------------------------------- address: #ep19, #ep19-t3, #ep19-tokens, #ep19-vs23, #ep19-all

let route = { n: null, turn: null, tokens: false, vs: null, all: false };

function readRoute() {
  const match = /^#ep(\d+)(?:-t(\d+))?(-tokens)?(?:-vs(\d+)|(-all))?$/.exec(location.hash);
  const place = (text) => (text == null ? null : +text - 1);
  return match && rows[match[1] - 1] ? { n: place(match[1]), turn: place(match[2]), tokens: !!match[3],
    vs: rows[match[4] - 1] ? place(match[4]) : null, all: !!match[5] }
    : { n: null, turn: null, tokens: false, vs: null, all: false };
}

const link = ({ n, turn, tokens, vs, all }) => n == null ? "#" :
  `#ep${n + 1}${turn != null ? `-t${turn + 1}` : ""}${tokens ? "-tokens" : ""}${vs != null ? `-vs${vs + 1}` : all ? "-all" : ""}`;

// Changes the address without an entry in the history, so that "back" leaves the viewer after many steps.
const go = (change) => location.replace(link(change));

let drawn = ""; // what the detail shows, so that moving between its turns does not draw it again

async function open() {
  if (location.hash === "#list") return;
  route = readRoute();
  document.body.classList.toggle("reading", route.n != null);
  for (const old of document.querySelectorAll("#rows [aria-current]")) old.removeAttribute("aria-current");
  if (route.n == null) {
    drawn = "";
    return $("detail").replaceChildren();
  }
  reveal(route.n)?.setAttribute("aria-current", "true");
  const wanted = link({ ...route, turn: null });
  if (drawn !== wanted) {
    const numbers = route.vs != null ? [route.n, route.vs] : route.all && seats(route.n).length ? seats(route.n) : [route.n];
    const bodies = await Promise.all(numbers.map(source.body));
    if (wanted !== link({ ...route, turn: null })) return; // another episode was chosen meanwhile
    const columns = el("div", { class: "columns" }, numbers.map((n, i) => episode(n, bodies[i])));
    $("detail").replaceChildren(toolbar(route.n, bodies), columns);
    $("detail").parentElement.scrollTop = 0;
    drawn = wanted;
    if (!$("list").contains(document.activeElement) || entered) $("detail").querySelector("h2").focus({ preventScroll: true });
  }
  entered = false;
  for (const old of document.querySelectorAll(".turn.current")) old.classList.remove("current");
  const turn = route.turn != null && $(`ep${route.n + 1}-t${route.turn + 1}`);
  if (turn) {
    turn.classList.add("current");
    turn.scrollIntoView({ block: "start" });
    turn.focus({ preventScroll: true });
  }
}

function difference(a, b) {
  const k = a.turns.findIndex((turn, i) => turn.reply.text !== b.turns[i]?.reply.text);
  return k < 0 ? "The replies are the same." : `The replies differ from turn ${k + 1} on.`;
}

// ---------------------------------------------------------------- keyboard

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

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  n: () => stepTurn(1),
  p: () => stepTurn(-1),
  t: () => route.n != null && rows[route.n].tokens > 0 && go({ ...route, tokens: !route.tokens }),
  "/": () => form.elements.text.focus(),
  Enter: () => route.n == null ? step(1) : $("detail").querySelector("h2")?.focus(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.closest("input, select, textarea");
  if (event.key === "Escape") {
    const last = route.n;
    if (!field) go({ n: null });
    ($(`row-${last}`) ?? $("list")).focus();
  } else if (field === form.elements.text && event.key === "Enter") {
    event.preventDefault();
    step(0);
  } else if (!field && KEYS[event.key] && !(event.key === "Enter" && event.target.closest("a, button, summary"))) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

// ---------------------------------------------------------------- start

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  store("gem-view-theme", theme);
}

const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

addEventListener("unhandledrejection", (event) => { $("count").textContent = event.reason.message; });
rows = await source.rows();
rows.forEach((row, n) => { row.n = n; });
for (const field of ["env", "model", "file", "update"]) several[field] = distinct(field).length > 1;
labels.load();
if (stored("gem-view-theme")) setTheme(stored("gem-view-theme"));
$("source").textContent = data.files.join(", ");
document.title = `${data.files.map((_, n) => fileName(n)).join(", ")} – gem view`;
document.body.append(el("datalist", { id: "labels" }, ["good", "bad", "unsure"].map((value) => el("option", { value }))));
buildFilters();
buildOverview();

let typing;
form.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(refresh, 120); });
form.addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", listMore);
$("rows").addEventListener("click", (event) => { entered = !!event.target.closest("a"); });
$("export").addEventListener("click", () => labels.export());
$("theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
addEventListener("keydown", onKey);
addEventListener("hashchange", open);
await refresh();
await open();
performance.mark("ready");
})();
