"""Score a model on environments, with intervals.

Scores any model behind an OpenAI-compatible endpoint, a model in a folder, the newest checkpoint of a training run, or
a policy that needs no model: oracle, random, constant:TEXT, or module:name, a function of yours from messages to a
reply, from a module in the current folder or installed. A folder and a checkpoint are sampled as in training, and
greedily without --temperature; --checkpoint RUN --seeds run repeats the last evaluation of that run.

--env names environments, or --suite a list of them: offline (the default; needs no download), games, math and qa (those
of the GEM paper), or a TOML file. Each task is played --rollouts times. Files go to --out: trajectories.jsonl,
report.md, report.json, report.tex and, with matplotlib, scores.png.

A reply cut at its limit, a full context and a refusal are scored. Samples that fail because of an outage are not: they
are played again, and left out of the means if they fail again. If more than 2 % fail, the exit code is 1.

--resume continues a run that was interrupted or killed with the samples that are missing. `gem eval compare` shows
several evaluations side by side, with the tasks that flipped, and takes those that differ in --seed as one; `rescore`
grades recorded transcripts again with the installed graders; `export` writes logs for inspect-ai or verifiers, and
`import` reads theirs into records for `gem view`.

  gem eval --model my-model --base-url http://127.0.0.1:8000/v1 --env game:Wordle-v0 qa:Facts --limit 200 --rollouts 4
  gem eval --model my-model --base-url https://api.example.com/v1 --api-key-env MY_KEY --suite math --max-tokens 8192
  gem eval --model path/to/folder --env qa:Facts
  gem eval --checkpoint runs/my-run --seeds run
  gem eval --policy random --suite games
  gem eval --policy my_agent:reply --env my_envs:Parity
  gem eval --resume evals/my-model
  gem eval compare evals/my-model evals/other-model
  gem eval rescore evals/my-model
  gem eval export evals/my-model --format inspect
  gem eval export evals/my-model evals/other-model --leaderboard --out rows.jsonl
  gem eval import logs/2026-01-02_task.json outputs/run/traces.jsonl --out imported
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from gem._internal.folders import plain
from gem.cli.data import DataFlags
from gem.cli.eval.display import Display, plain_console, report_table
from gem.cli.eval.folders import export, import_files, print_comparison, print_rescored
from gem.cli.eval.policies import (
    CONCURRENCY,
    TIMEOUT_S,
    TRUST,
    as_recorded,
    check_flags,
    environments_of,
    kind_of,
    open_policy,
    price_for,
    recorded_command,
    refuse,
)
from gem.cli.flags import flag
from gem.cli.output import print_json, resumable
from gem.errors import BadValue, EndpointError, MissingDependency, did_you_mean
from gem.evaluation import EvalEnv, EvalReport, evaluate, load_suite
from gem.evaluation.exchange.reference import reference_notes
from gem.evaluation.logs.run_log import LogKind
from gem.evaluation.metrics import tasks_needed
from gem.evaluation.plot import draw_scores
from gem.evaluation.records import check_free
from gem.evaluation.report import MAX_FAILED_SHARE
from gem.evaluation.suites import DEFAULT
from gem.evaluation.tasks import TaskSet
from gem.policies import Policy
from gem.registry import register_class

# word → the flags that it takes
WORDS = {
    "compare": (),
    "rescore": ("out", "concurrency", "env_timeout", "trust", "env_path"),
    "export": ("out", "format", "leaderboard"),
    "import": ("out",),
}
USAGE = "compare RUN RUN…, rescore RUN, export RUN, import FILE…"
LIMIT, ROLLOUTS, RETRIES = 100, 1, 2
_OF_DATA = [f.name for f in fields(DataFlags)]
_OF_WORDS = ("words", "format", "leaderboard")
NOT_KEPT = (*_OF_WORDS, "out", "resume", "trust", "json", "allow_failures", "detect", *_OF_DATA)


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    words: list[str] = flag([], help=f"{USAGE}", positional=True, metavar="WORD RUN")
    model: str | None = flag(None, help="name of the model at the endpoint, or the folder of a model")
    base_url: str | None = flag(None, help="URL of the endpoint, without /chat/completions")
    api_key_env: str | None = flag(None, help="environment variable with the API key")
    checkpoint: str | None = flag(None, help="instead of a model: folder of a training run, for its newest checkpoint")
    seeds: Literal["run"] | None = flag(
        None, help="run: play the evaluation episodes of the training run of --checkpoint, in its environment"
    )
    policy: str | None = flag(
        None,
        help="instead of a model: oracle, random, constant:TEXT, or module:name of a function from messages to a reply",
    )
    env: list[str] = flag([], help="ids of environments")
    suite: str | None = flag(None, help=f"name or TOML file of a suite [default without --env: {DEFAULT}]")
    env_kwargs: dict[str, Any] = flag({}, help="arguments of the environments of --env")
    wrappers: str | None = flag(None, help="comma-separated wrappers, such as python_tool_no_int_reward")
    limit: int | None = flag(None, help=f"tasks per environment [default: {LIMIT}]")
    rollouts: int | None = flag(None, help=f"rollouts per task [default: {ROLLOUTS}]")
    concurrency: int | None = flag(None, help=f"episodes at once [default: {CONCURRENCY}]")
    temperature: float | None = flag(None, help="sampling temperature [default: the endpoint's; 0 for a folder]")
    max_tokens: int | None = flag(None, help="tokens per reply [default: the endpoint's; 256 for a folder]")
    top_p: float | None = flag(None, help="nucleus sampling [default: the endpoint's]")
    reasoning_effort: str | None = flag(None, help="passed on to the endpoint")
    extra_body: dict[str, Any] = flag({}, help="further fields of each request")
    system: str | None = flag(None, help="system message")
    prompt_template: str | None = flag(
        None, help="instructions around the task: qwen3_game, qwen3_general, code, no, or a file with {observation}"
    )
    mcp: str | None = flag(None, help="JSON file with MCP servers, whose tools the model may call", metavar="FILE")
    native_tools: bool = flag(False, help="call the tools of --wrappers as native tool calls, and not in text")
    token_limit: int | None = flag(None, help="tokens per episode, of prompts and replies [default: no limit]")
    seed: int | None = flag(None, help="seed of the sampling; an endpoint gets one derived from it with each request")
    device: str | None = flag(None, help="torch device of the model in a folder [default: a GPU if there is one]")
    dtype: Literal["float32", "bf16"] | None = flag(
        None, help="bf16: compute in bfloat16 [default: on a GPU; of a run, as in it]"
    )
    threads: int | None = flag(None, help="torch threads [default: all cores; of a run, as in it]")
    price_in: float | None = flag(None, help="US dollars per million tokens of prompts, for the cost in the report")
    price_out: float | None = flag(None, help="US dollars per million sampled tokens")
    prices: str | None = flag(
        None, help="instead: JSON or TOML file of model → input, output and cached_input, per million", metavar="FILE"
    )
    cost_limit: float | None = flag(None, help="stop when so many US dollars are spent; --resume continues with more")
    log: LogKind | None = flag(None, help="also send scores to a service, or spans of the episodes to OpenTelemetry")
    timeout: float | None = flag(None, help=f"seconds per request [default: {TIMEOUT_S:g}]")
    env_timeout: float | None = flag(None, help="seconds per step of an environment [default: no limit]")
    retries: int | None = flag(None, help=f"how often failed samples are played again [default: {RETRIES}]")
    allow_failures: bool = flag(False, help=f"exit with 0 even if over {MAX_FAILED_SHARE:.0%} of the samples failed")
    detect: float | None = flag(None, help="print how many tasks it takes to detect this difference between two models")
    out: str | None = flag(None, help="folder for the records and the report [default: evals/MODEL]")
    format: Literal["inspect", "verifiers"] | None = flag(None, help="of export: a log of inspect-ai, or of verifiers")
    leaderboard: bool = flag(False, help="of export: one row of JSON per evaluation, with its versions and hashes")
    resume: str | None = flag(None, help="folder of an evaluation to continue; other flags may not change its settings")
    trust: bool = flag(False, help=f"with --resume, rescore and --checkpoint: {TRUST}")
    json: bool = flag(False, help="print the report as JSON, and the progress on stderr")


def run(config: Config) -> int:
    if config.words:
        return _word(config)
    console = plain_console(stderr=config.json)
    refuse([name for name in ("format", "leaderboard") if getattr(config, name)], "without export")
    settings = _settings(config)
    if config.trust and config.resume is None and "checkpoint" not in settings:
        refuse(["trust"], "without --resume, rescore or --checkpoint")
    found = _envs(settings, config.trust)
    envs: list[str | EvalEnv | TaskSet] = [] if "seeds" in settings else [*found]
    out = config.resume or config.out or _free_folder(_name(settings))
    if config.resume is None:
        check_free(Path(out))
    if config.detect is not None:
        tasks_needed(config.detect, 1)  # checks it before the run
    with ExitStack() as stack:
        policy, tasks = open_policy(settings, stack)
        stack.enter_context(resumable("eval", out))
        with Display(console, config.detect) as display:
            report = _evaluate(policy, tasks or envs, settings, out, config.resume is not None, display)
        with suppress(MissingDependency):  # the picture needs the extra [plot]
            draw_scores(report, plain(Path(out) / "scores.png"))
        if config.json:
            print_json(report.to_json())
        else:
            console.print(report_table(report))
            notes = [*report.notes(), *reference_notes(report), *as_recorded(settings, out)]
            for line in [*notes, f"Records and report: {shlex.quote(out)}"]:
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
    envs: Sequence[str | EvalEnv | TaskSet],
    settings: Mapping[str, Any],
    out: str,
    resume: bool,
    display: Display,
) -> EvalReport:
    from gem.policies import AccessRefused, InvalidReply, Unreachable

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
            prompt_template=settings.get("prompt_template"),
            mcp=settings.get("mcp"),
            token_limit=settings.get("token_limit"),
            native_tools=settings.get("native_tools", False),
            price=price_for(settings),
            cost_limit=settings.get("cost_limit"),
            log=settings.get("log"),
            notes={"command": settings},
            progress=display.update,
        )
    except EndpointError as e:
        is_usual = Path(out).is_dir() or str(settings.get("base_url", "/v1")).rstrip("/").endswith("/v1")
        kind = BadValue if isinstance(e, (AccessRefused, InvalidReply, Unreachable)) else EndpointError
        raise kind(f"{e}{'' if is_usual else '; a base URL usually ends with /v1'}") from e


def _settings(config: Config) -> dict[str, Any]:
    """Return the flags that were given. Those of a resumed run are the defaults."""
    given = {f.name: getattr(config, f.name) for f in fields(Config) if f.name not in NOT_KEPT}
    given = {name: value for name, value in given.items() if value not in (None, [], {}) and value is not False}
    if config.resume is None:
        check_flags(given, given)
        return given
    if config.out is not None:
        raise BadValue("--out has no effect with --resume, which continues in the same folder")
    settings = {**recorded_command(config.resume, "gem eval", given, config.trust), **given}
    check_flags(given, settings)
    for env_id in settings.get("env", ()):
        register_class(env_id)
    return settings


def _envs(settings: Mapping[str, Any], trust: bool) -> list[str | EvalEnv]:
    if "env" in settings and "suite" in settings:
        raise BadValue("give --env or --suite, not both")
    if "env" in settings:
        return [EvalEnv(id=env_id, kwargs=settings.get("env_kwargs", {})) for env_id in settings["env"]]
    if "checkpoint" in settings and "suite" not in settings:
        return list(environments_of(settings["checkpoint"], trust))
    return list(load_suite(settings.get("suite", DEFAULT)))


def _name(settings: Mapping[str, Any]) -> str:
    """Return a name for the folder of the records."""
    name = str(next(settings[key] for key in ("policy", "model", "checkpoint") if key in settings))
    return name if kind_of(settings) in ("--policy", "a function", "an endpoint") else Path(name).resolve().name


def _free_folder(name: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "model"
    names = (f"evals/{plain}{suffix}" for suffix in ["", *(f"-{n}" for n in range(2, 10_000))])
    return next(folder for folder in names if not Path(folder).exists())


def _word(config: Config) -> int:
    """Run `gem eval WORD FOLDER…`."""
    word, *paths = config.words
    if word not in WORDS:
        raise BadValue(f"unexpected argument {word!r}{did_you_mean(word, WORDS)}; gem eval takes flags, or {USAGE}")
    others = [f.name for f in fields(Config) if f.name not in ("words", "json", *WORDS[word])]
    refuse([name for name in others if getattr(config, name) not in (None, [], {}, False)], f"with {word}")
    if word == "compare":
        print_comparison(paths, config.json)
    elif word == "export":
        export(paths, config.format, config.out, config.leaderboard)
    elif word == "import":
        import_files(paths, config.out)
    else:
        rescored = config.concurrency or CONCURRENCY, config.env_timeout, config.trust
        print_rescored(paths, config.out, *rescored, config.json)
    return 0
