// The front page: scores by environment and model, learning curves, and the rollouts of one task.
"use strict";

const WINDOW = 10; // updates in the moving average of a learning curve
const RANKED = ["solved", "score"]; // columns whose largest value is the best

const value = (cell, key) => (typeof cell.values[key] === "object" ? cell.values[key]?.value : cell.values[key]);

function buildOverview() {
  const { columns, cells } = data.results;
  const measured = columns.filter(({ key }) => cells.some((cell) => value(cell, key) != null));
  const runs = [...Map.groupBy(cells, (cell) => cell.run).keys()];
  const parts = [];
  if (runs.length > 1) parts.push(matrix(measured, runs));
  if (cells.length) {
    const table = scoreTable(measured, runs);
    parts.push(runs.length > 1 ? el("details", { class: "all" }, el("summary", {}, "All columns"), table) : table);
  }
  parts.push(el("div", { class: "curves" }, curves()));
  $("overview").append(...parts);
}

// A number with its interval: the value, the bounds and a line on the scale from ``low`` to ``high``.
function estimate(found, [low, high], note) {
  if (found?.value == null) return [el("span", { class: "value soft" }, "–"), note];
  const at = (x) => 100 * (x - low) / (high - low || 1);
  const hasBounds = found.low != null && found.high != null;
  return [el("span", { class: "value" }, found.value.toFixed(3)),
    hasBounds && el("span", { class: "bounds" }, `${found.low.toFixed(3)} – ${found.high.toFixed(3)}`), note,
    svg("svg", { class: "interval", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "track", x: 0, y: 3, width: 100, height: 2 }),
      ...(hasBounds ? [svg("rect", { class: "range", x: at(found.low), y: 2, width: Math.max(1, at(found.high) - at(found.low)), height: 4 })] : []),
      svg("rect", { class: "point", x: Math.min(98.5, at(found.value)), y: 0, width: 1.5, height: 8 }))];
}

const isEstimate = (cell, key) => cell.values[key] !== null && typeof cell.values[key] === "object";

function cellText(cell, { key }, range, note) {
  const found = cell.values[key];
  if (isEstimate(cell, key)) return estimate(found, range, note);
  return [el("span", { class: "value" }, found == null ? "–" : number(found)), note];
}

// The range of all intervals of a column, from 0 to 1 at least.
function rangeOf(key) {
  const bounds = data.results.cells.filter((cell) => isEstimate(cell, key)).map((cell) => cell.values[key])
    .flatMap(({ value: middle, low, high }) => [middle, low, high]).filter((bound) => typeof bound === "number");
  return [Math.min(0, ...bounds), Math.max(1, ...bounds)];
}

// The episodes behind a result.
const show = (cell) => () => {
  const set = (name, chosen) => { if (form.elements[name]) form.elements[name].value = chosen ?? ""; };
  set("env", cell.env);
  set("model", cell.model);
  set("file", cell.files.length === 1 ? cell.files[0] : "");
  refresh();
  $("list").scrollIntoView({ block: "start" });
};

function matrix(columns, runs) {
  const choose = el("select", { "aria-label": "Number in the table" },
    columns.map(({ key, name }) => el("option", { value: key, selected: key === RANKED.find((k) => columns.some((c) => c.key === k)) }, name)));
  const table = el("table", { class: "matrix" });
  const definition = el("p", { class: "soft" });
  const draw = () => {
    const column = columns.find(({ key }) => key === choose.value);
    const range = rangeOf(column.key);
    const rows = [...Map.groupBy(data.results.cells, (cell) => cell.name)].map(([name, cells]) => {
      const best = RANKED.includes(column.key) && Math.max(...cells.map((cell) => value(cell, column.key) ?? -Infinity));
      return el("tr", {}, el("th", { scope: "row" }, name), runs.map((run) => {
        const cell = cells.find((one) => one.run === run);
        if (!cell) return el("td", { class: "empty", "data-name": run }, "–");
        const text = cellText(cell, column, range, el("span", { class: "count" }, `n = ${number(value(cell, "done"))}`));
        return el("td", { class: cells.length > 1 && value(cell, column.key) === best ? "best" : "", "data-name": run },
          el("button", { type: "button", class: "cell", onclick: show(cell), title: "Show these episodes" }, text));
      }));
    });
    table.replaceChildren(el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Environment"),
      runs.map((run) => el("th", { scope: "col" }, run)))), el("tbody", {}, rows));
    definition.textContent = `${column.name}: ${column.definition}.${isEstimate(data.results.cells[0], column.key) ? " With 95\u00a0% intervals over tasks." : ""}`;
  };
  choose.addEventListener("input", draw);
  draw();
  return el("section", { class: "panel", "aria-labelledby": "results" },
    el("div", { class: "bar" }, el("h2", { id: "results" }, "Results"), choose),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results by environment and model" }, table), definition);
}

function scoreTable(columns, runs) {
  const several = runs.length > 1;
  const ranges = Object.fromEntries(columns.map(({ key }) => [key, rangeOf(key)]));
  const rows = data.results.cells.map((cell) => el("tr", {},
    el("th", { scope: "row" }, el("button", { type: "button", class: "cell", onclick: show(cell), title: "Show these episodes" }, cell.name,
      several && el("span", { class: "soft" }, ` ${cell.run}`))),
    columns.map((column) => el("td", { "data-name": column.name, class: isEstimate(cell, column.key) ? "wide" : "" },
      cellText(cell, column, ranges[column.key])))));
  return el("section", { class: "panel", "aria-label": "Scores" },
    !several && el("div", { class: "bar" }, el("h2", {}, "Results"), runs[0] && el("span", { class: "soft" }, runs[0])),
    el("div", { class: "scroll", id: "scores", tabindex: "0", role: "region", "aria-label": "All columns" },
      el("table", { class: "scores" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Environment"),
        columns.map(({ name, definition }) => el("th", { scope: "col", title: definition }, name)))), el("tbody", {}, rows))));
}

// ---------------------------------------------------------------- learning curves

function curves() {
  const names = { success: "success rate", reward: "mean reward", turns_when_won: "turns of won episodes" };
  return [...Map.groupBy(data.curve, (point) => point.run)].flatMap(([run, points]) =>
    Object.entries(names).map(([field, label]) => curve(run.split("/").at(-1), points, field, label)));
}

function curve(run, points, field, label) {
  const trained = points.filter((point) => point.train[field] != null);
  const smooth = trained.map((point, i) =>
    [point.episodes, mean(trained.slice(Math.max(0, i + 1 - WINDOW), i + 1).map((p) => p.train[field]))]);
  const tests = points.filter((point) => point.eval?.[field] != null).map((point) => [point.episodes, point.eval[field]]);
  const values = [...smooth, ...tests].map(([, y]) => y);
  if (!values.length) return null;
  const [low, high, last] = [Math.min(0, ...values), Math.max(...values, 1e-9), points.at(-1).episodes];
  const at = ([x, y]) => [28 + 184 * x / last, 100 - 90 * (y - low) / (high - low)];
  const caption = `${run}: ${label}, ${number(values[0])} → ${number(smooth.at(-1)?.[1])} in training` +
    (tests.length ? `, ${number(tests.at(-1)[1])} in evaluation (dots)` : "");
  return el("figure", { class: "panel" },
    svg("svg", { class: "curve", viewBox: "0 0 220 118", role: "img", "aria-label": caption },
      svg("line", { x1: 28, y1: 100, x2: 212, y2: 100 }), svg("line", { x1: 28, y1: 10, x2: 212, y2: 10 }),
      svg("text", { x: 0, y: 14 }, number(high)), svg("text", { x: 0, y: 104 }, number(low)),
      svg("text", { x: 212, y: 114, "text-anchor": "end" }, plural(last, "episode")),
      svg("path", { d: smooth.map((point, i) => `${i ? "L" : "M"}${at(point)}`).join("") }),
      ...tests.map((point) => svg("circle", { cx: at(point)[0], cy: at(point)[1], r: 3 }))),
    el("figcaption", {}, caption));
}

// ---------------------------------------------------------------- one task

// What is above the list of the rollouts of a task: its title, and a comparison of two of them.
function taskPanel(numbers) {
  const [first] = numbers.map((n) => rows[n]);
  const rival = numbers.map((n) => rows[n]).find((row) => row.outcome !== first.outcome) ?? rows[numbers[1]];
  const solved = numbers.filter((n) => rows[n].outcome === "solved").length;
  return el("section", { class: "panel", "aria-label": "Task" },
    el("p", { class: "eyebrow" }, [first.env, labelOf(first)].filter(Boolean).join(" · ")),
    el("h2", { tabindex: "-1" }, titleOf(first)),
    el("p", { class: "soft" }, `${plural(numbers.length, "rollout")}, ${solved} solved`),
    el("p", { class: "actions" }, el("a", { class: "button", href: "#" }, "← All episodes"),
      rival && el("a", { class: "button", href: link({ n: first.n, vs: rival.n }) }, "Compare two rollouts")));
}
