"""Building a vector environment from ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gem._internal.imports import resolve
from gem.errors import BadValue, did_you_mean
from gem.registry import ENV_REGISTRY, EnvSpec, make
from gem.seeding import check_seed
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.slots import OnFailure

# name → "module:class"; each takes env_fns, autoreset, timeout=, on_failure= and its own options by keyword.
BACKENDS = {
    "sync": "gem.vector.sync:SyncVectorEnv",
    "async": "gem.vector.async_:AsyncVectorEnv",
    "thread": "gem.vector.thread:ThreadVectorEnv",
    "process": "gem.vector.process:ProcessVectorEnv",
    "ray": "gem.vector.ray:RayVectorEnv",
}
# The options of a backend's own; whatever else make_vec does not know is an argument of the environments.
OPTIONS = {
    "sync": (),
    "async": ("num_workers",),
    "thread": ("num_workers",),
    "process": ("num_workers",),
    "ray": ("num_workers", "address"),
}


def make_vec(
    env_ids: str | Sequence[str] | Mapping[str, float],
    wrappers: Sequence[Callable[[Any], Any]] = (),
    vec_kwargs: Sequence[Mapping[str, Any]] | None = None,
    async_mode: bool = False,
    seed: int | None = 0,
    *,
    num_envs: int | None = None,
    backend: str | None = None,
    autoreset: str | Autoreset = Autoreset.SAME_STEP,
    timeout: float | None = None,
    on_failure: OnFailure = "raise",
    num_workers: int | None = None,
    address: str | None = None,
    **kwargs: Any,
) -> VectorEnv:
    """Build many environments behind one interface.

    Args:
        env_ids: one id for every slot; a list with one per slot; or {id: weight}, which shares num_envs slots out in
            proportion, at least one each. (Slots, not episodes: an id with longer episodes ends fewer of them.)
        wrappers: callables applied to each environment, innermost first.
        vec_kwargs: constructor arguments, one dict per slot; they are not written to.
        async_mode: True is backend "async", False "sync", where backend is None.
        seed: slot i is seeded with seed + i where its vec_kwargs give no seed; None seeds from the operating system.
        num_envs: slots; by default as many as env_ids or vec_kwargs list, else 1.
        backend: where the slots run. "sync": this thread. "thread": threads. "process": worker processes. "ray": actors
            of a Ray cluster. "async": each where its spec says, inline, on a thread or in a process.
        autoreset: when a slot starts its next episode; see Autoreset.
        timeout: seconds for a call of one environment, the reset that follows an episode's end included; what takes
            longer has failed. None waits. Not for sync.
        on_failure: of an environment that raises what it must not, hangs, or dies with its worker. "raise": EnvFailed.
            "restart": its episode ends as failed (reward NaN, truncated, ``info["failure"]``) and it is built anew.
        num_workers: threads, processes or actors; None chooses. Not for sync.
        address: of the Ray cluster; None starts or finds a local one. For ray alone.
        kwargs: constructor arguments of every slot; vec_kwargs win.

    Raises BadValue when the lengths disagree or an option is not for the backend, and what gem.make raises.
    """
    if not all(callable(wrap) for wrap in wrappers):
        raise BadValue(
            f"wrappers must be callables, got {wrappers!r}; gem.wrappers.get_wrapper_fns turns names into some"
        )
    name = _backend(backend, async_mode)
    options = _options(name, num_workers=num_workers, address=address)
    slots = _slots(env_ids, vec_kwargs, num_envs)
    first = None if seed is None else check_seed(seed)
    env_fns = []
    for i, (env_id, own) in enumerate(slots):
        seeded = {} if first is None else {"seed": first + i}
        env_fns.append(partial(build, ENV_REGISTRY[env_id], {**seeded, **kwargs, **own}, tuple(wrappers)))
    if name == "async":
        options["runs"] = [ENV_REGISTRY[env_id].runs for env_id, _ in slots]
    vec_env: VectorEnv = resolve(BACKENDS[name])(env_fns, autoreset, timeout=timeout, on_failure=on_failure, **options)
    return vec_env


def build(spec: EnvSpec, kwargs: dict[str, Any], wrappers: tuple[Callable[[Any], Any], ...]) -> Any:
    """One slot's environment. From its spec: a worker process has not seen what this one registered."""
    env: Any = make(spec, **kwargs)
    for wrap in wrappers:
        env = wrap(env)
    return env


def _backend(backend: str | None, async_mode: bool) -> str:
    if backend is None:
        return "async" if async_mode else "sync"
    if backend not in BACKENDS:
        raise BadValue(
            f"no backend {backend!r}{did_you_mean(str(backend), BACKENDS)}  (there are: {', '.join(BACKENDS)})"
        )
    if async_mode and backend != "async":
        raise BadValue(f"async_mode=True is backend 'async', and backend={backend!r} was asked for too")
    return backend


def _options(backend: str, **given: Any) -> dict[str, Any]:
    wanted = {name: value for name, value in given.items() if value is not None}
    for name, value in wanted.items():
        if name not in OPTIONS[backend]:
            takers = [other for other, names in OPTIONS.items() if name in names]
            raise BadValue(f"{name}={value!r} is not for backend {backend!r}, only for {', '.join(takers)}")
        if name == "num_workers" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise BadValue(f"num_workers must be an integer >= 1, got {value!r}")
    return wanted


def _slots(
    env_ids: str | Sequence[str] | Mapping[str, float],
    vec_kwargs: Sequence[Mapping[str, Any]] | None,
    num_envs: int | None,
) -> list[tuple[str, Mapping[str, Any]]]:
    lengths = {"num_envs": num_envs, "vec_kwargs": None if vec_kwargs is None else len(vec_kwargs)}
    if not isinstance(env_ids, (str, Mapping)):
        lengths["env_ids"] = len(env_ids)
    given = {name: length for name, length in lengths.items() if length is not None}
    if len(set(given.values())) > 1:
        raise BadValue(f"the number of slots is given differently: {given}")
    count = next(iter(given.values()), len(env_ids) if isinstance(env_ids, Mapping) else 1)
    if count < 1:
        raise BadValue(f"need at least one slot, got {given}")
    if isinstance(env_ids, Mapping):
        ids = _share_out(env_ids, count)
    else:
        ids = [env_ids] * count if isinstance(env_ids, str) else list(env_ids)
    return list(zip(ids, vec_kwargs or [{}] * count, strict=True))


def _share_out(weights: Mapping[str, float], count: int) -> list[str]:
    """One id per slot, interleaved: each next slot goes to the id that is furthest below its share."""
    for env_id, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight < float("inf"):
            raise BadValue(f"the weight of {env_id!r} must be a number above 0, got {weight!r}")
    if count < len(weights):
        raise BadValue(f"{len(weights)} ids need at least {len(weights)} slots, got num_envs={count}")
    slots = list(weights)  # one each, so that none is left out
    shares = {env_id: 1 for env_id in weights}
    while len(slots) < count:
        env_id = min(weights, key=lambda i: shares[i] / weights[i])
        shares[env_id] += 1
        slots.append(env_id)
    return slots
