// An episode: why it has its score, its turns as messages or tokens, and what differs from another rollout of its task.
"use strict";

const ROLES = ["user", "assistant", "tool", "system"];
const FOLDED = { system: 240, tool: 4_000 }; // characters above which a message of the role is closed at first
const MAX_WORDS = 1_200; // of the replies whose words are compared
const OUTCOMES = { // stop reason → label, tone, and what it means
  solved: ["solved", "good", "The environment reported success."],
  lost: ["lost", "bad", "The task ended without success."],
  format: ["unreadable", "bad", "The environment could not read an action, and its rules end the episode then."],
  max_turns: ["turn limit", "warn", "The turn limit was reached before the task was solved."],
  max_tokens: ["token limit", "warn", "The conversation reached the token limit, or the context of the model."],
  refused: ["refused", "warn", "The model refused to reply, or a content filter removed its reply."],
  truncated: ["truncated", "warn", "A limit outside the task ended the episode."],
  unfinished: ["unfinished", "warn", "The record ends before the episode does."],
  failed: ["failed", "fail", "The episode failed for a reason outside the model, and has no score."],
};
const MARKS = { good: "✓", bad: "✕", warn: "◔", fail: "!", plain: "•" };

const outcomeOf = (row) => (Object.hasOwn(OUTCOMES, row.outcome) ? OUTCOMES[row.outcome] : [words(row.outcome), "plain", ""]);
const pill = (row) => {
  const [label, tone] = outcomeOf(row);
  return el("span", { class: `pill ${tone}` }, el("span", { "aria-hidden": "true" }, MARKS[tone]), el("span", {}, label));
};
const labelOf = (row) => row.label?.replace(/(\d{4})\d{4,}(\d{2})/, "$1…$2"); // seeds have 19 digits
const titleOf = (row) => row.title || labelOf(row) || row.env || `Episode ${row.n + 1}`;

function episode(n, body) {
  return el("article", { class: "episode", "aria-label": `Episode ${n + 1}` }, heading(n, body), whyPanel(rows[n], body),
    timeline(n, body.turns), noteFields(rows[n]), detailsOf(n, body),
    body.turns.map((turn, k) => turnSection(n, body, k)), ending(n, body));
}

// What an episode is, and its numbers; without the title beside another rollout of the task.
function heading(n, body, titled = true) {
  const row = rows[n];
  const about = [row.agent, row.env, row.model, several.file && runName(row.file), titled ? labelOf(row) : `episode ${n + 1}`];
  return el("header", { class: "heading" },
    el("p", { class: "eyebrow" }, [...new Set(about.filter(Boolean))].map((part) => el("span", {}, part))),
    titled && el("h2", { tabindex: "-1" }, titleOf(row)),
    el("dl", { class: "facts" }, Object.entries(factsOf(row, body)).filter(([, shown]) => shown != null)
      .map(([name, shown]) => el("div", {}, el("dt", {}, name), el("dd", {}, shown)))));
}

function factsOf(row, body) {
  const all = (part) => body.turns.reduce((sum, turn) => sum + (part(turn) || 0), 0);
  const [fed, cached, sampled, thought] = [all(tokensIn), all((turn) => count(turn.usage?.cached_tokens)), all(tokensOut),
    all((turn) => count(turn.usage?.reasoning_tokens))];
  return {
    outcome: pill(row),
    reward: el("span", { class: row.reward > 0 ? "good" : row.reward < 0 ? "bad" : "" }, number(row.reward)),
    turns: grouped(row.turns),
    time: row.seconds ? seconds(row.seconds) : null,
    "tokens in": fed ? [grouped(fed), cached > 0 && el("small", {}, ` ${grouped(cached)} cached`)] : null,
    "tokens out": sampled ? [grouped(sampled), thought > 0 && el("small", {}, ` ${grouped(thought)} reasoning`)] : null,
    cost: row.cost == null ? null : dollars(row.cost),
  };
}

const count = (found) => (typeof found === "number" ? found : 0);
const tokensIn = (turn) => count(turn.usage?.prompt_tokens) || turn.context;
const tokensOut = (turn) => count(turn.usage?.completion_tokens) || turn.ids.length;

// ---------------------------------------------------------------- why

function whyPanel(row, body) {
  const { explanation, checks = [] } = body.why;
  const passed = checks.filter((check) => check.passed).length;
  const reasons = explanation || checks.length ? [] : derivedReasons(row, body);
  return el("section", { class: `why ${outcomeOf(row)[1]}`, "aria-label": "Why this score" },
    explanation && el("div", { class: "explanation" }, longText(explanation)),
    reasons.map((reason) => el("p", {}, reason)),
    body.details.failure && el("div", { class: "explanation" }, longText(body.details.failure)),
    checks.length > 0 && el("details", { open: checks.length <= 12 || passed < checks.length },
      el("summary", {}, `${passed} of ${plural(checks.length, "check")} passed`),
      el("ul", { class: "checks" }, [...checks].sort((a, b) => a.passed - b.passed).map((check) =>
        el("li", { class: check.passed ? "good" : "bad" }, el("span", { class: "mark" }, check.passed ? "✓" : "✕"),
          el("span", { class: "hidden" }, check.passed ? "passed: " : "failed: "), el("span", { class: "name" }, check.name),
          check.detail && el("span", { class: "detail" }, check.detail))))),
    parts(body.turns));
}

// What the record says where the environment gives no reason.
function derivedReasons(row, body) {
  const last = body.turns.at(-1);
  return [outcomeOf(row)[2] || `The episode ended with “${words(row.outcome)}”.`,
    last?.invalid && row.outcome !== "solved" && `Its last action was invalid: ${words(last.invalid)}.`,
    last?.finish === "length" && "Its last reply was cut at the token limit.",
    row.tool_errors > 0 && row.outcome !== "solved" && `${plural(row.tool_errors, "tool call")} failed.`].filter(Boolean);
}

function parts(turns) {
  const sums = new Map();
  for (const [name, part] of turns.flatMap((turn) => Object.entries(turn.reward_parts ?? {}))) sums.set(name, (sums.get(name) ?? 0) + count(part));
  return sums.size > 0 && el("p", { class: "soft" }, "Reward = ", [...sums].map(([name, part]) => `${words(name)} ${number(part)}`).join(" + "));
}

// A bar per turn, as high as its reward; a dot marks an invalid action or a tool error.
function timeline(n, turns) {
  const rewards = turns.map((turn) => (typeof turn.reward === "number" ? turn.reward : 0));
  const faults = turns.map((turn) => turn.invalid || turn.calls.some((call) => call.fault));
  if (turns.length < 2 || !(rewards.some(Boolean) || faults.some(Boolean))) return null;
  const [high, low] = [Math.max(0, ...rewards), Math.min(0, ...rewards)];
  const wide = Math.max(2, Math.min(18, 640 / turns.length)), tall = rewards.some(Boolean) ? 40 : 2;
  const at = (y) => 4 + tall * (high - y) / (high - low || 1);
  const bars = turns.map((turn, k) => {
    const reward = rewards[k];
    const title = `Turn ${k + 1}: reward ${number(turn.reward)}${turn.invalid ? `, invalid: ${words(turn.invalid)}` : ""}`;
    const [top, bottom] = [at(Math.max(0, reward)), at(Math.min(0, reward))];
    return svg("a", { href: link({ ...route, n, turn: k }), "aria-label": title, tabindex: turns.length > 40 ? -1 : 0 },
      svg("title", {}, title), svg("rect", { class: "hit", x: wide * k, y: 0, width: wide, height: tall + 16 }),
      svg("rect", { class: reward > 0 ? "good" : reward < 0 ? "bad" : "none", x: wide * k + wide * 0.15, width: wide * 0.7,
        y: reward ? top : at(0) - 1, height: reward ? Math.max(2, bottom - top) : 2, rx: 1 }),
      ...(faults[k] ? [svg("circle", { class: "warn", cx: wide * (k + 0.5), cy: tall + 12, r: Math.min(2.5, wide / 3) })] : []));
  });
  const chart = svg("svg", { viewBox: `0 0 ${wide * turns.length} ${tall + 16}`, width: wide * turns.length, height: tall + 16,
    role: "group", "aria-label": "Reward by turn" }, ...bars);
  return el("figure", { class: "timeline" }, el("div", {}, chart),
    el("figcaption", {}, "Reward by turn", faults.some(Boolean) && [" · ", el("span", { class: "warn" }, "●"), " invalid action or tool error"]));
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

function detailsOf(n, body) {
  const row = rows[n];
  const { failure, sampling, ...rest } = body.details;
  const shown = { episode: `${n + 1} of ${rows.length}`, file: `${data.files[row.file]}, line ${row.line}`, ...rest };
  return el("details", { class: "more" }, el("summary", {}, "Details of the episode"),
    el("dl", { class: "fields" }, Object.entries(shown).map(([name, text]) => [el("dt", {}, words(name)), el("dd", {}, text)]),
      sampling && [el("dt", {}, "sampling"), el("dd", {}, fields(sampling))],
      body.tools.length > 0 && [el("dt", {}, "tools"), el("dd", {}, fields(body.tools))]));
}

// ---------------------------------------------------------------- turns

function turnSection(n, body, k) {
  const [turn, before, agent] = [body.turns[k], body.turns[k - 1], rows[n].agent];
  return el("section", { class: "turn", id: turnId(n, k), "aria-label": `Turn ${k + 1}`, tabindex: "-1" }, turnHead(n, turn, k),
    turn.fork && el("p", { class: "warn fork" }, "Fork: the context does not extend the previous one."),
    route.tokens ? [tokens("Context added", turn.fed.map((id) => ({ id })), "fed"),
      tokens("Reply", turn.ids.map((id, t) => ({ id, logprob: turn.logprobs[t], mask: turn.mask[t] })), "sampled")]
      : [observed(turn, before).map((message) => messageCard(message, body, agent)), messageCard(turn.reply, body, agent)],
    measures(turn));
}

const turnId = (n, k) => `ep${n + 1}-t${k + 1}`;

// An observation without what it repeats of the previous one, where it holds the whole history.
const observed = (turn, before) => turn.observation.filter((message, m) =>
  !(before?.observation.length > 1 && JSON.stringify(before.observation[m]) === JSON.stringify(message)));

function turnHead(n, turn, k) {
  const failed = turn.reward == null;
  return el("h3", {}, el("a", { href: link({ ...route, n, turn: k, vs: null }) }, `Turn ${k + 1}`),
    turn.invalid && el("span", { class: "chip warn" }, `invalid: ${words(turn.invalid)}`),
    turn.calls.filter((call) => call.fault).map((call) => el("span", { class: "chip warn" }, `${call.name}: ${words(call.fault)}`)),
    turn.finish && turn.finish !== "stop" && turn.finish !== "tool_calls" && el("span", { class: "chip warn" }, `ended by ${words(turn.finish)}`),
    turn.dropped && el("span", { class: "chip" }, `${plural(turn.dropped, "oldest turn")} left out`),
    el("span", { class: `reward ${failed ? "bad" : turn.reward > 0 ? "good" : turn.reward < 0 ? "bad" : "soft"}` },
      failed ? "failed" : `${turn.reward > 0 ? "+" : ""}${number(turn.reward)}`));
}

// Time, tokens and cost of a turn, and what else an endpoint reported.
function measures(turn) {
  const { prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cost, total_tokens, ...rest } = turn.usage ?? {};
  const shown = [
    ...Object.entries(turn.seconds ?? {}).map(([who, time]) => `${words(who)} ${seconds(time)}`),
    tokensIn(turn) > 0 && `${plural(tokensIn(turn), "token")} in${count(cached_tokens) ? `, ${grouped(cached_tokens)} cached` : ""}`,
    tokensOut(turn) > 0 && `${plural(tokensOut(turn), "token")} out${count(reasoning_tokens) ? `, ${grouped(reasoning_tokens)} reasoning` : ""}`,
    cost != null && dollars(cost),
    turn.reward_parts && Object.entries(turn.reward_parts).map(([name, part]) => `${words(name)} ${number(part)}`).join(" + "),
    turn.calls.length > 0 && turn.calls.every((call) => !call.fault) && turn.calls.map((call) => `${call.name} ok`).join(", "),
    turn.policy_version && `policy version ${turn.policy_version}`,
  ].filter(Boolean);
  const reported = Object.entries(rest).filter(([, found]) => found != null && JSON.stringify(found) !== "{}");
  if (!shown.length && !reported.length) return null;
  return el("div", { class: "measures" }, shown.map((text) => el("span", {}, text)),
    reported.length > 0 && el("details", {}, el("summary", {}, "usage"), fields(Object.fromEntries(reported))));
}

// What the agent of a game of several observes is labelled as seen by it only: the others get observations of their own.
function messageCard(message, body, agent) {
  const role = ROLES.includes(message.role) ? message.role : "user";
  const title = agent == null ? message.role : message.role === "assistant" ? agent : `seen by ${agent} (${message.role})`;
  const head = el("h4", {}, title);
  const content = [
    message.reasoning && reasoning(String(message.reasoning), message.math?.reasoning, body.formulas),
    (message.images ?? []).map((src) => el("img", { src, alt: `image in a message of the ${role}`,
      onclick: (event) => event.target.classList.toggle("full") })),
    message.data !== undefined && (raw ? longText(JSON.stringify(message.data, null, 1)) : fields(message.data)),
    message.text && textOf(message.text, message.math?.text, body.formulas),
    (message.calls ?? []).map(callCard),
  ];
  const size = message.text.length;
  if (!(role in FOLDED)) return el("div", { class: `message ${role}` }, head, content);
  return el("details", { class: `message ${role}`, open: size <= FOLDED[role] },
    el("summary", {}, head, el("span", { class: "preview" }, message.text.slice(0, 160).replace(/\s+/g, " "))), content);
}

// The text of a message: what a model thought before its reply is folded.
function textOf(text, formulas, trees) {
  if (raw) return longText(text);
  if (isJson(text)) return longText(text, () => el("span", { class: "block bare" }, highlight(text, "json")));
  const thought = /^\s*(?:<think>)?[^]*?<\/think>\s*/.exec(text.slice(0, 10 * LONG))?.[0] ?? "";
  const shifted = (formulas ?? []).map(([start, end, n]) => [start - thought.length, end - thought.length, n]);
  return [thought && reasoning(thought, formulas, trees),
    thought.length < text.length && longText(text.slice(thought.length), () => styled(text.slice(thought.length), shifted.filter(([start]) => start >= 0), trees))];
}

function isJson(text) {
  if (!/^\s*[{[]/.test(text) || text.length > LONG) return false;
  try { return !!JSON.parse(text); } catch { return false; }
}

function reasoning(text, formulas, trees) {
  return el("details", { class: "reasoning" }, el("summary", {}, `Reasoning, ${plural(text.length, "character")}`),
    longText(text, raw ? undefined : () => styled(text, formulas, trees)));
}

function callCard({ name, arguments: values }) {
  const hint = /python|code/i.test(name) ? "python" : /bash|shell|terminal|exec/i.test(name) ? "shell" : "";
  return el("div", { class: "call" }, el("p", {}, el("span", { class: "soft" }, "calls "), el("b", {}, name)),
    raw ? longText(typeof values === "string" ? values : JSON.stringify(values, null, 1)) : fields(values, hint));
}

function ending(n, body) {
  if (!body.final.length) return null;
  return el("section", { class: "turn", "aria-label": "End" }, el("h3", {}, "End", el("span", { class: "chip" }, outcomeOf(rows[n])[0])),
    body.final.map((message) => messageCard(message, body, rows[n].agent)));
}

// ---------------------------------------------------------------- two rollouts

// Two rollouts of a task, turn by turn. Equal turns are folded, and in the first that differs, the words that do.
function comparison(numbers, bodies) {
  const [a, b] = bodies;
  const same = (k) => JSON.stringify(said(a.turns[k])) === JSON.stringify(said(b.turns[k]));
  const length = Math.max(a.turns.length, b.turns.length);
  const first = [...Array(length).keys()].find((k) => !same(k)) ?? length;
  const side = (content) => el("div", { class: "side" }, content);
  const pairOf = (k) => {
    const [left, right] = [a.turns[k], b.turns[k]];
    const shared = left && right && JSON.stringify(left.observation) === JSON.stringify(right.observation);
    const column = (i, marked) => {
      const [turn, body] = [bodies[i].turns[k], bodies[i]];
      if (!turn) return side(el("p", { class: "soft" }, "The episode has ended."));
      return side([turnHead(numbers[i], turn, k), !shared && observed(turn, body.turns[k - 1]).map((message) => messageCard(message, body)),
        marked ? el("div", { class: "message assistant" }, el("h4", {}, "assistant"), el("pre", { class: "text" }, marked)) : messageCard(turn.reply, body),
        measures(turn)]);
    };
    const marks = k === first && left && right && shared ? differentWords(left.reply.text, right.reply.text) : [];
    return [shared && observed(left, a.turns[k - 1]).map((message) => messageCard(message, a)),
      el("div", { class: "pair" }, column(0, marks[0]), column(1, marks[1]))];
  };
  const pairs = (from, to) => [...Array(Math.max(0, to - from)).keys()].map((k) =>
    el("section", { class: "turn", id: turnId(numbers[0], from + k), "aria-label": `Turn ${from + k + 1}`, tabindex: "-1" }, pairOf(from + k)));
  return el("article", { class: "comparison", "aria-label": "Two rollouts" },
    el("h2", { tabindex: "-1" }, titleOf(rows[numbers[0]])),
    el("div", { class: "pair" }, numbers.map((n, i) => side([heading(n, bodies[i], false), whyPanel(rows[n], bodies[i])]))),
    first > 0 && el("details", { class: "more" }, el("summary", {}, first === length ? `All ${length} turns are the same`
      : first === 1 ? "Turn 1 is the same" : `Turns 1 to ${first} are the same`), pairs(0, first)),
    first < length && el("p", { class: "divider", id: "difference" }, `First difference: turn ${first + 1}`),
    pairs(first, length));
}

const said = (turn) => turn && [turn.observation, turn.reply];

// Both texts with the words that only one of them has marked: those off a longest common subsequence.
function differentWords(a, b) {
  const [left, right] = [a, b].map((text) => text.match(/\s+|[\p{L}\p{N}_]+|[^]/gu) ?? []);
  if (left.length > MAX_WORDS || right.length > MAX_WORDS) return [];
  const rest = Array.from({ length: left.length + 1 }, () => new Uint16Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      rest[i][j] = left[i] === right[j] ? rest[i + 1][j + 1] + 1 : Math.max(rest[i + 1][j], rest[i][j + 1]);
    }
  }
  const marked = [[], []];
  const put = (i, text, differs) => {
    const last = marked[i].at(-1);
    last?.differs === differs ? (last.text += text) : marked[i].push({ text, differs });
  };
  for (let i = 0, j = 0; i < left.length || j < right.length;) {
    if (i < left.length && j < right.length && left[i] === right[j]) put(0, left[i++], false), put(1, right[j++], false);
    else if (j === right.length || (i < left.length && rest[i + 1][j] >= rest[i][j + 1])) put(0, left[i++], true);
    else put(1, right[j++], true);
  }
  return marked.map((list) => list.map(({ text, differs }) => (differs ? el("mark", {}, text) : text)));
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
  const known = list.map((token) => token.logprob).filter((logprob) => typeof logprob === "number");
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
  return el("p", { class: "tokens legend soft" }, "Sampled, by probability: ", [1, 0.5, 0.1].map((p) => [shade(p), " "]),
    el("span", { class: "sampled unmasked" }, "not trained"), " ", el("span", { class: "fed" }, "fed"));
}
