"""Score a model on environments, with intervals.

Asks any model behind an OpenAI-compatible endpoint, or a policy that needs no model: oracle, random, constant:TEXT.
--env names environments, or --suite a list of them: offline (the default; needs no download), games, math and qa (those
of the GEM paper), or a TOML file. Each task is played --rollouts times, each exactly once. Files go to --out:
trajectories.jsonl, report.md, report.json.

A reply cut at its limit, a full context and a refusal are scored outcomes. An outage is not: failed samples are played
again, and those that remain are in no mean. If more than 2 % of the samples fail, the exit code is 1.

A run that was interrupted or killed continues with --resume, which asks only what is missing.

  gem eval --model my-model --base-url http://127.0.0.1:8000/v1 --env game:Wordle-v0 qa:Facts --limit 200 --rollouts 4
  gem eval --model my-model --base-url https://api.example.com/v1 --api-key-env MY_KEY --suite math --max-tokens 8192
  gem eval --policy random --suite games
  gem eval --resume evals/my-model
  gem eval compare evals/my-model evals/other-model
"""

from __future__ import annotations

import math
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gem._internal.text import counted
from gem.cli.data import DataFlags
from gem.cli.flags import flag
from gem.cli.output import print_json
from gem.errors import BadValue, EndpointError
from gem.evaluate import EvalEnv, EvalReport, compare, evaluate, load_suite
from gem.evaluate.metrics import expected_half_width, tasks_needed
from gem.evaluate.records import check_free, read_settings
from gem.evaluate.report import MAX_FAILED_SHARE
from gem.evaluate.suites import DEFAULT
from gem.policies import Policy

PLAIN_WIDTH = 160  # characters of a table that is not shown on a terminal
INTERRUPTED = 130  # exit code that shells report for SIGINT
LIMIT, ROLLOUTS, CONCURRENCY, RETRIES, TIMEOUT_S = 100, 1, 128, 2, 600.0
SAMPLING = ("temperature", "max_tokens", "top_p", "reasoning_effort")
ENDPOINT = ("base_url", "api_key_env", *SAMPLING, "extra_body", "system", "seed", "timeout")  # flags for --model only
RANGES: dict[str, tuple[Callable[[float], bool], str]] = {  # flag → what it accepts; NaN is in no range
    "temperature": (lambda value: 0 <= value < math.inf, "a number >= 0"),
    "max_tokens": (lambda value: value >= 1, "at least 1"),
    "top_p": (lambda value: 0 < value <= 1, "a number in (0, 1]"),
    "timeout": (lambda value: value > 0, "seconds above 0"),
    "env_timeout": (lambda value: value > 0, "seconds above 0"),
}
NOT_KEPT = ("words", "out", "resume", "json", "allow_failures", "detect", "data", "skip_bad_rows")


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    words: list[str] = flag([], help="compare, and the folders of evaluations", positional=True, metavar="compare RUN")
    model: str | None = flag(None, help="name of the model at the endpoint")
    base_url: str | None = flag(None, help="URL of the endpoint, without /chat/completions")
    api_key_env: str | None = flag(None, help="environment variable with the API key")
    policy: str | None = flag(None, help="instead of a model: oracle, random or constant:TEXT")
    env: list[str] = flag([], help="ids of environments")
    suite: str | None = flag(None, help=f"name or TOML file of a suite [default without --env: {DEFAULT}]")
    env_kwargs: dict[str, Any] = flag({}, help="arguments of the environments of --env")
    wrappers: str | None = flag(None, help="comma-separated wrappers, such as python_tool_no_int_reward")
    limit: int | None = flag(None, help=f"tasks per environment [default: {LIMIT}]")
    rollouts: int | None = flag(None, help=f"rollouts per task [default: {ROLLOUTS}]")
    concurrency: int | None = flag(None, help=f"episodes at once [default: {CONCURRENCY}]")
    temperature: float | None = flag(None, help="sampling temperature [default: the endpoint's]")
    max_tokens: int | None = flag(None, help="tokens per reply [default: the endpoint's]")
    top_p: float | None = flag(None, help="nucleus sampling [default: the endpoint's]")
    reasoning_effort: str | None = flag(None, help="sent to the endpoint as it is")
    extra_body: dict[str, Any] = flag({}, help="further fields of each request")
    system: str | None = flag(None, help="system message")
    seed: int | None = flag(None, help="send a seed with each request, derived from this one")
    timeout: float | None = flag(None, help=f"seconds per request [default: {TIMEOUT_S:g}]")
    env_timeout: float | None = flag(None, help="seconds per step of an environment [default: no limit]")
    retries: int | None = flag(None, help=f"how often failed samples are played again [default: {RETRIES}]")
    allow_failures: bool = flag(False, help=f"exit with 0 even if over {MAX_FAILED_SHARE:.0%} of the samples failed")
    detect: float | None = flag(None, help="print how many tasks it takes to detect this difference between two models")
    out: str | None = flag(None, help="folder for the records and the report [default: evals/MODEL]")
    resume: str | None = flag(None, help="folder of an evaluation to continue; other flags may not change its settings")
    json: bool = flag(False, help="print the report as JSON, and the progress on stderr")


def run(config: Config) -> int:
    if config.words:
        return _compare(config)
    console = _console(stderr=config.json)
    settings = _settings(config)
    name = settings.get("policy") or settings.get("model")
    if name is None:
        raise BadValue("gem eval needs --model and --base-url, or --policy  (see `gem eval --help`)")
    envs = _envs(settings)
    out = config.resume or config.out or _free_folder(str(name))
    if config.resume is None:
        check_free(Path(out))
    if config.detect is not None:
        tasks_needed(config.detect, 1)  # checks it before the run
    with ExitStack() as stack:
        policy = _policy(settings, stack)
        display = stack.enter_context(_Display(console, config.detect))
        try:
            report = _evaluate(policy, envs, settings, out, config.resume is not None, display)
        except KeyboardInterrupt:
            display.close()
            how = f"Continue with: gem eval --resume {shlex.quote(out)}" if Path(out).is_dir() else "Nothing was kept."
            console.print(f"Stopped. {how}", soft_wrap=True, markup=False)
            return INTERRUPTED
    if config.json:
        print_json(report.to_json())
    else:
        console.print(_table(report))
        for line in [*report.notes(), f"Records and report: {shlex.quote(out)}"]:
            console.print(line, soft_wrap=True, markup=False)
    if report.failed_share > MAX_FAILED_SHARE and not config.allow_failures:
        print(
            f"gem: {report.failed_share:.1%} of the samples failed, more than {MAX_FAILED_SHARE:.0%}; play them again "
            f"with `gem eval --resume {shlex.quote(out)}`, or pass --allow-failures",
            file=sys.stderr,
        )
        return 1
    return 0


def _evaluate(
    policy: Policy | str,
    envs: list[str | EvalEnv],
    settings: Mapping[str, Any],
    out: str,
    resume: bool,
    display: _Display,
) -> EvalReport:
    from gem.policies import AccessRefused, InvalidReply

    try:
        return evaluate(
            policy,
            envs,
            limit=settings.get("limit", LIMIT),
            rollouts=settings.get("rollouts", ROLLOUTS),
            concurrency=settings.get("concurrency", CONCURRENCY),
            wrappers=settings.get("wrappers", ""),
            out=out,
            resume=resume,
            retries=settings.get("retries", RETRIES),
            timeout=settings.get("env_timeout"),
            notes={"command": settings},
            progress=display.update,
        )
    except EndpointError as e:
        is_usual = Path(out).is_dir() or str(settings.get("base_url", "/v1")).rstrip("/").endswith("/v1")
        kind = BadValue if isinstance(e, (AccessRefused, InvalidReply)) else EndpointError
        raise kind(f"{e}{'' if is_usual else '; a base URL usually ends with /v1'}") from e


def _settings(config: Config) -> dict[str, Any]:
    """Return the flags that were given. Those of a resumed run are the defaults."""
    given = {f.name: getattr(config, f.name) for f in fields(Config) if f.name not in NOT_KEPT}
    given = {name: value for name, value in given.items() if value not in (None, [], {})}
    if config.resume is None:
        _check(given, given)
        return given
    if config.out is not None:
        raise BadValue("--out has no effect with --resume, which continues in the same folder")
    command = read_settings(config.resume).get("notes", {}).get("command")
    if command is None:
        raise BadValue(f"{config.resume} was not written by gem eval; continue it with gem.evaluate(…, resume=True)")
    settings = {**command, **given}
    _check(given, settings)
    return settings


def _check(given: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse flags out of range, and those that have no effect with these settings."""
    for name, (accepts, range_) in RANGES.items():
        if name in given and not accepts(given[name]):
            raise BadValue(f"{_label(name)} must be {range_}, got {given[name]:g}")
    for name in settings.get("extra_body", {}):
        if name in SAMPLING and name in settings:
            raise BadValue(f"{_label(name)} and --extra-body {name}=… set the same field of the request; give one")
    if "policy" in settings and "model" not in settings:
        _refuse([name for name in ENDPOINT if name in given], "with --policy")
    if "env" not in settings:
        _refuse([name for name in ("env_kwargs",) if name in given], "without --env")


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise BadValue(f"{_label(names[0])} has no effect {why}")


def _label(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _envs(settings: Mapping[str, Any]) -> list[str | EvalEnv]:
    if "env" not in settings:
        return list(load_suite(settings.get("suite", DEFAULT)))
    if "suite" in settings:
        raise BadValue("give --env or --suite, not both")
    return [EvalEnv(id=env_id, kwargs=settings.get("env_kwargs", {})) for env_id in settings["env"]]


def _policy(settings: Mapping[str, Any], stack: ExitStack) -> Policy | str:
    if "policy" in settings:
        if "model" in settings:
            raise BadValue("give --model or --policy, not both")
        return str(settings["policy"])
    if "base_url" not in settings:
        raise BadValue("--model needs --base-url, such as http://127.0.0.1:8000/v1")
    from gem.policies import Endpoint, EndpointPolicy

    endpoint = stack.enter_context(
        Endpoint(
            settings["base_url"],
            settings["model"],
            api_key_env=settings.get("api_key_env"),
            timeout=settings.get("timeout", TIMEOUT_S),
            concurrency=settings.get("concurrency", CONCURRENCY),
        )
    )
    sampling = {name: settings[name] for name in SAMPLING if name in settings} | settings.get("extra_body", {})
    return EndpointPolicy(endpoint, system=settings.get("system"), seed=settings.get("seed"), **sampling)


def _free_folder(name: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "model"
    names = (f"evals/{plain}{suffix}" for suffix in ["", *(f"-{n}" for n in range(2, 10_000))])
    return next(folder for folder in names if not Path(folder).exists())


class _Display:
    """Shows a live table on a terminal, and otherwise a line for each tenth of the samples."""

    def __init__(self, console: Console, detect: float | None) -> None:
        self.console, self.detect = console, detect
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self.started, self.tenths = time.monotonic(), 0
        self.before: EvalReport | None = None  # what a resumed run had done

    def __enter__(self) -> _Display:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()

    def update(self, report: EvalReport) -> None:
        if self.before is None:
            self.before, self.tenths = report, _total(report, "done") * 10 // _total(report, "planned")
            self._announce(report)
        done, planned = _total(report, "done"), _total(report, "planned")
        line = self._line(report, self.before)
        if self.live is not None:
            grid = Table.grid()
            grid.add_row(_table(report))
            grid.add_row(line)
            self.live.update(grid, refresh=True)
        elif done * 10 // planned > self.tenths:
            self.tenths = done * 10 // planned
            self.console.print(line, soft_wrap=True)

    def _announce(self, report: EvalReport) -> None:
        """Print the size of the evaluation and how precise it will be."""
        rollouts = report.settings["rollouts"]
        tasks = [env.planned // rollouts for env in report.envs]
        width = max(expected_half_width(count, rollouts) for count in tasks)
        self.console.print(
            f"{counted(len(tasks), 'environment')}, {counted(sum(tasks), 'task')}, {counted(rollouts, 'rollout')} per "
            f"task. Expected 95 % interval of a success rate: ± {width:.3f} or less.",
            soft_wrap=True,
        )
        if self.detect is not None:
            self.console.print(
                f"To detect a difference of {self.detect:g} between two models with a power of 80 %: "
                f"{tasks_needed(self.detect, rollouts):,} tasks.",
                soft_wrap=True,
            )

    def _line(self, report: EvalReport, before: EvalReport) -> str:
        seconds = max(1e-3, time.monotonic() - self.started)
        done, planned = _total(report, "done"), _total(report, "planned")
        rate = (done - _total(before, "done")) / seconds
        tokens = (_total(report, "tokens_out") - _total(before, "tokens_out")) / seconds
        left = f", {(planned - done) / rate:.0f} s left" if rate > 0 and done < planned else ""
        failed = _total(report, "failed")
        return f"{done}/{planned} done, {failed} failed, {rate:.1f} samples/s, {tokens:.0f} tokens/s{left}"


def _total(report: EvalReport, name: str) -> int:
    return sum(getattr(env, name) for env in report.envs)


def _table(report: EvalReport) -> Table:
    table = Table(title=f"Evaluation of {report.model}", title_justify="left")
    rows = [env.cells() for env in report.envs]
    shown = [i for i in range(len(report.columns)) if any(row[i] != "0" for row in rows)]  # leaves out empty counts
    for i in shown:
        table.add_column(report.columns[i], justify="right" if i else "left", overflow="fold", no_wrap=i > 0)
    for row in rows:
        table.add_row(*(Text(row[i]) for i in shown))
    return table


def _console(stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def _compare(config: Config) -> int:
    word, *paths = config.words
    if word != "compare":
        raise BadValue(f"unexpected argument {word!r}; gem eval takes flags, or compare and two folders")
    others = [f.name for f in fields(Config) if f.name not in ("words", "json")]
    _refuse([name for name in others if getattr(config, name) not in (None, [], {}, False)], "with compare")
    found = compare(paths)
    if config.json:
        print_json(asdict(found))
        return 0
    console = _console()
    table = Table()
    for number, column in enumerate(found.columns):
        table.add_column(Text(column), justify="right" if number else "left", overflow="fold")
    for row in found.rows():
        table.add_row(*(Text(text, style="bold" if is_best else "") for text, is_best in row))
    console.print(table)
    for warning in found.warnings:
        console.print(f"warning: {warning}", soft_wrap=True, markup=False)
    return 0
