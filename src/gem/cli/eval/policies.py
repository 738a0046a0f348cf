"""Which policy `gem eval` scores: a model at an endpoint, in a folder or of a training run; or a policy without one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from gem._internal.folders import check_own
from gem._internal.imports import resolve_given
from gem.errors import BadValue, require
from gem.evaluation.cost import Price, read_price
from gem.evaluation.records import SETTINGS, read_records, read_settings
from gem.evaluation.tasks import EvalEnv, TaskSet
from gem.policies import Policy
from gem.rl.data.evaluation import evaluation_tasks
from gem.rl.run.folder import RunFolder, newest_checkpoint, outcome_of

CONCURRENCY, TIMEOUT_S = 128, 600.0
TRUST = "let a folder that this user has not made on this machine choose what runs"
SAMPLING = ("temperature", "max_tokens", "top_p", "reasoning_effort")
MACHINE = ("device", "dtype", "threads")  # how a model in this process computes
# The flags of each kind of policy, besides those of every evaluation.
PRICES = ("price_in", "price_out", "prices", "cost_limit")
FLAGS: dict[str, tuple[str, ...]] = {
    "an endpoint": (
        *("base_url", "api_key_env", *SAMPLING, "extra_body", "system", "native_tools", "seed", "timeout", *PRICES),
    ),
    "a model in a folder": ("temperature", "max_tokens", "top_p", "seed", *MACHINE),
    "--checkpoint": ("temperature", "max_tokens", "top_p", "seed", *MACHINE, "seeds"),
    "--policy": (),
    "a function": ("native_tools",),
}
_FUNCTION = re.compile(r"(?!constant:)[A-Za-z_][\w.]*:\w+")  # module:name
RANGES: dict[str, tuple[Callable[[float], bool], str]] = {  # flag → what it accepts; NaN is in no range
    "temperature": (lambda value: 0 <= value < math.inf, "a number >= 0"),
    "max_tokens": (lambda value: value >= 1, "at least 1"),
    "token_limit": (lambda value: value >= 1, "at least 1"),
    "top_p": (lambda value: 0 < value <= 1, "a number in (0, 1]"),
    "threads": (lambda value: value >= 1, "at least 1"),
    "timeout": (lambda value: value > 0, "seconds above 0"),
    "env_timeout": (lambda value: value > 0, "seconds above 0"),
    "price_in": (lambda value: 0 <= value < math.inf, "dollars >= 0 per million tokens"),
    "price_out": (lambda value: 0 <= value < math.inf, "dollars >= 0 per million tokens"),
    "cost_limit": (lambda value: 0 < value < math.inf, "dollars above 0"),
}
NUMBERS = {*RANGES, "limit", "rollouts", "games", "seed", "concurrency", "retries", "native_tools"}


def kind_of(settings: Mapping[str, Any]) -> str:
    """Return the key of FLAGS for the policy of these settings. Raises BadValue unless there is exactly one."""
    given = [name for name in ("model", "policy", "checkpoint") if name in settings]
    if not given:
        raise BadValue("gem eval needs --model and --base-url, or --policy, or --checkpoint  (see `gem eval --help`)")
    if len(given) > 1:
        raise BadValue(f"give {_label(given[0])} or {_label(given[1])}, not both")
    if given == ["model"]:
        is_local = "base_url" not in settings and Path(settings["model"]).is_dir()
        return "a model in a folder" if is_local else "an endpoint"
    if given == ["policy"] and _FUNCTION.fullmatch(settings["policy"]):
        return "a function"
    return _label(given[0])


def check_flags(given: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse flags out of range, and those that have no effect with these settings."""
    for name, (accepts, range_) in RANGES.items():
        if name in given and not accepts(given[name]):
            raise BadValue(f"{_label(name)} must be {range_}, got {given[name]:g}")
    for name in settings.get("extra_body", {}):
        if name in SAMPLING and name in settings:
            raise BadValue(f"{_label(name)} and --extra-body {name}=… set the same field of the request; give one")
    if ("price_in" in settings) != ("price_out" in settings):
        raise BadValue("give both --price-in and --price-out, in dollars per million tokens")
    if "prices" in settings and "price_in" in settings:
        raise BadValue("give --prices, or --price-in and --price-out, not both")
    kind = kind_of(settings)
    others = {name for flags in FLAGS.values() for name in flags} - set(FLAGS[kind])
    refuse([name for name in given if name in others], f"with {kind}")
    if "env" not in settings and "env_kwargs" in given:
        refuse(["env_kwargs"], "without --env")
    if "seeds" in settings:
        of_tasks = ("env", "suite", "env_kwargs", "wrappers", "rollouts", "limit")
        refuse([name for name in of_tasks if name in given], "with --seeds run")
    is_local = kind in ("a model in a folder", "--checkpoint")
    if is_local and settings.get("rollouts", 1) > 1 and not settings.get("temperature"):
        raise BadValue("rollouts of greedy replies are equal: --rollouts above 1 needs --temperature above 0")


def refuse(names: list[str], why: str) -> None:
    """Raise BadValue if there is a flag that has no effect."""
    if names:
        raise BadValue(f"{_label(names[0])} has no effect {why}")


def _label(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def open_policy(settings: Mapping[str, Any], stack: ExitStack) -> tuple[Policy | str, list[TaskSet]]:
    """Return the policy, and the tasks that it brings along; none unless they are those of a training run.

    Raises:
        BadValue: the model, the run or the URL is not usable.
        MissingDependency: a library of the policy is not installed.
    """
    kind = kind_of(settings)
    if kind == "--policy":
        return str(settings["policy"]), []
    if kind == "a function":
        return _function_policy(settings["policy"]), []
    if kind == "an endpoint":
        return _endpoint_policy(settings, stack), []
    library = require("gem.rl.run.build", extra="train")  # imports PyTorch, which takes seconds
    if kind == "--checkpoint":
        return _checkpoint_policy(settings, library)
    return _local_policy(settings["model"], settings, library), []


def price_for(settings: Mapping[str, Any]) -> Price | None:
    """Return the price of the model; None if none is given. Raises BadValue for an unusable file of prices."""
    if "prices" in settings:
        return read_price(settings["prices"], settings["model"])
    if "price_in" in settings:
        return Price(input=settings["price_in"], output=settings["price_out"])
    return None


def recorded_command(path: str, writer: str, given: Mapping[str, Any], trust: bool) -> dict[str, Any]:
    """Return the flags that a command recorded in its folder.

    Args:
        writer: the command, such as "gem eval".
        given: the flags of this command line. What they leave to the folder, other than NUMBERS, must be trusted.

    Raises:
        BadValue: another program wrote the folder, or it is not trusted.
    """
    notes = read_settings(path).get("notes")
    command = notes.get("command") if isinstance(notes, Mapping) else None
    if not isinstance(command, dict):
        raise BadValue(f"{path} was not written by {writer}; continue it in Python, with resume=True")
    harmless = {name for name, value in command.items() if name in NUMBERS and isinstance(value, (int, float))}
    chosen = {name: value for name, value in command.items() if name not in harmless | given.keys()}
    check_own(Path(path) / SETTINGS, chosen, trust)
    return command


def environments_of(run: str, trust: bool) -> list[EvalEnv]:
    """Return the environments of a training run. Raises BadValue if the folder is no run, or is not trusted."""
    _, config = RunFolder.open(run, plays=True, trust=trust)
    return [EvalEnv(id=env.id, name=env.name, wrappers=env.wrappers or "", kwargs=env.kwargs) for env in config.envs]


def as_recorded(settings: Mapping[str, Any], out: str) -> list[str]:
    """Return a line on whether the greedy episodes ended as the training run has recorded; nothing if all are sampled.

    Args:
        out: folder of the finished evaluation.
    """
    if "seeds" not in settings or settings.get("temperature") or "max_tokens" in settings:
        return []
    run, config = RunFolder.open(settings["checkpoint"], plays=True)
    source = newest_checkpoint(run.checkpoints)
    recorded = run.read_evaluation(int(source.name.removeprefix("update-")), "greedy")
    if not recorded:
        return [f"The run has no evaluation of {source.name} to compare with."]
    played = {trajectory.episode: outcome_of(trajectory) for trajectory in read_records(out)}
    greedy, first = list[int](), 0  # numbers of the samples that the run has played greedily as well
    for env, tasks in zip(config.eval_sets, read_settings(out)["envs"], strict=True):
        greedy += range(first, first + tasks["tasks"]) if env.mode == "greedy" else ()
        first += tasks["tasks"]
    same = sum(played.get(number) == outcome for number, outcome in zip(greedy, recorded, strict=False))
    sampled = sorted({env.mode for env in config.eval_sets} - {"greedy"})
    others = f"; the run has sampled other sets ({', '.join(sampled)}), which are played greedily here"
    besides = others if sampled else ""
    return [f"{same} of {len(recorded)} episodes ended as the run has recorded for {source.name}{besides}."]


def _endpoint_policy(settings: Mapping[str, Any], stack: ExitStack) -> Policy:
    if "base_url" not in settings:
        raise BadValue(
            f"--model needs --base-url, such as http://127.0.0.1:8000/v1, or the folder of a model; there is no folder "
            f"{settings['model']!r}"
        )
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


def _function_policy(name: str) -> Policy:
    """Return the policy, or that of the function, that "module:name" names. Raises BadValue if it cannot be loaded."""
    from gem.policies import FunctionPolicy

    try:
        found = resolve_given(name)
    except (ImportError, AttributeError, ValueError) as e:
        module, _, attribute = name.partition(":")
        is_file = module.endswith(".py") and Path(module).is_file()
        hint = f"; name the module and not its file: {module.removesuffix('.py')}:{attribute}" if is_file else ""
        raise BadValue(f"--policy {name} cannot be loaded: {e}{hint}") from e
    if isinstance(found, type) or not (hasattr(found, "act") or callable(found)):
        raise BadValue(f"--policy {name} must name a function from messages to a reply, or a policy, got {found!r:.80}")
    policy: Policy = found if hasattr(found, "act") else FunctionPolicy(found, name=name)
    return policy


def _local_policy(folder: str, settings: Mapping[str, Any], library: Any) -> Policy:
    options = {name: settings[name] for name in ("temperature", "top_p", "seed", *MACHINE) if name in settings}
    policy: Policy = library.load_policy(folder, max_new_tokens=settings.get("max_tokens"), **options)
    return policy


def _checkpoint_policy(settings: Mapping[str, Any], library: Any) -> tuple[Policy, list[TaskSet]]:
    _, config = RunFolder.open(settings["checkpoint"], plays=True)
    policy: Any = _local_policy(settings["checkpoint"], settings, library)
    if "seeds" not in settings:
        return policy, []
    sets = []
    for env, tasks in zip(config.eval_sets, evaluation_tasks(config, policy.tokenizer), strict=True):
        most = None if "max_tokens" in settings else env.max_new_tokens
        player = policy.variant(max_new_tokens=most, max_context=env.max_context)
        sets.append(replace(tasks, policy=player))
    return policy, sets
