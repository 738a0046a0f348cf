"""Build vector environments from registered ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gem._internal.annotations import check_types
from gem._internal.counts import check_count
from gem.datasets.tasks import SharesOrder
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, EnvSpec, ends_on_truncation, make
from gem.seeding import check_seed, fresh_seed
from gem.vector.base import BACKENDS, Autoreset, VectorEnv
from gem.vector.slots import OnFailure


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
    group_size: int | None = None,
    **kwargs: Any,
) -> VectorEnv:
    """Build a vector environment from registered ids.

    Args:
        env_ids: one id for all slots, a list with one id per slot, or a dict {id: weight}, which divides num_envs slots
            among the ids in proportion to the weights; each id gets at least one slot. (The weights are shares of
            slots, not of episodes: an id with longer episodes completes fewer episodes.)
        wrappers: callables that wrap each environment, the innermost wrapper first.
        vec_kwargs: constructor arguments, one dict per slot.
        async_mode: if backend is None, True means backend "async" and False means "sync".
        seed: slot i is seeded with seed + i, unless kwargs or its vec_kwargs contain a seed. None means random seeds.
        num_envs: number of slots. None means the length of vec_kwargs, else of env_ids (a list or dict), else 1.
        backend: where the slots run. "sync": in the thread of the caller. "thread": on threads. "process": in worker
            processes. "ray": in actors of a Ray cluster. "async": inline, on a thread or in a process, depending on
            ``runs`` in the EnvSpec of each slot.
        autoreset: when a slot starts its next episode; see Autoreset.
        timeout: seconds for one call of one environment, including autoreset (for a slot with a shared order of rows,
            autoreset is a call of its own). A call that exceeds the limit fails. None sets no limit. Must be None for
            "sync".
        on_failure: what to do if an environment hangs or raises an unexpected exception, or if its worker dies.
            "raise" raises EnvFailed. "restart" ends the episode as failed (reward NaN, truncated,
            ``info["failure"]``) and rebuilds the environment.
        num_workers: maximum number of threads, processes or actors. None uses the default of the backend. Must be
            None for "sync".
        address: address of the Ray cluster. None finds a running cluster or starts a local one. Must be None for other
            backends.
        group_size: for environments over a dataset. Slots with the same id and arguments share one order of rows, so
            that each row is asked once per epoch over all of them; with a group size G, by G resets in a row. The rows
            are assigned in the order of the resets. None means 1, but then slots whose seed is in kwargs or vec_kwargs
            have their own orders. A slot leaves the shared order when it is reset with a seed.
        kwargs: constructor arguments for all environments. Arguments in vec_kwargs take precedence.

    Raises:
        BadValue: the arguments give different numbers of slots, or the backend does not support an option.
        Exception: any exception of gem.make.
    """
    check_types(make_vec, {"num_envs": num_envs})
    if not all(callable(wrap) for wrap in wrappers):
        raise BadValue(
            f"wrappers must be callables, got {wrappers!r}; gem.wrappers.get_wrapper_fns converts names to callables"
        )
    name = _backend(backend, async_mode)
    options: dict[str, Any] = {"num_workers": num_workers, "address": address}
    slots = _slots(env_ids, vec_kwargs, num_envs)
    first = None if seed is None else check_seed(seed)
    orders = _shared_orders(slots, kwargs, first, group_size)
    env_fns = []
    for i, (env_id, own) in enumerate(slots):
        # Decided here, because a worker process may not have the environment variable.
        merged = {"end_on_truncation": ends_on_truncation(), **kwargs, **own}
        seeded = {} if first is None else {"seed": first + i}
        env_fns.append(partial(build, ENV_REGISTRY[env_id], {**seeded, **merged}, tuple(wrappers), orders[i]))
    if name == "async":
        options["runs"] = [ENV_REGISTRY[env_id].runs for env_id, _ in slots]
    return VectorEnv.of(env_fns, autoreset, backend=name, timeout=timeout, on_failure=on_failure, **options)


def build(
    spec: EnvSpec,
    kwargs: dict[str, Any],
    wrappers: tuple[Callable[[Any], Any], ...],
    order: tuple[int, int, int] | None = None,
) -> Any:
    """Build the environment of one slot.

    The environment is built from its EnvSpec, because the id may not be registered in a worker process.

    Args:
        order: arguments of share_order(), for an environment that has it.
    """
    env: Any = make(spec, **kwargs)
    if order is not None and isinstance(env.unwrapped, SharesOrder):
        env.unwrapped.share_order(*order)
    for wrap in wrappers:
        env = wrap(env)
    return env


def _shared_orders(
    slots: list[tuple[str, Mapping[str, Any]]], kwargs: Mapping[str, Any], seed: int | None, group_size: int | None
) -> list[tuple[int, int, int] | None]:
    """Return the arguments of share_order() for each slot, or None for slots that have their own order."""
    check_count("group_size", group_size, optional=True)
    sharing: dict[str, list[int]] = {}
    for slot, (env_id, own) in enumerate(slots):
        if group_size is not None or ("seed" not in own and "seed" not in kwargs):
            same = sorted((name, repr(value)) for name, value in own.items() if name != "seed")
            sharing.setdefault(repr((env_id, same)), []).append(slot)
    orders: list[tuple[int, int, int] | None] = [None] * len(slots)
    for number, members in enumerate(sharing.values()):
        given = {**kwargs, **slots[members[0]][1]}.get("seed", None if seed is None else seed + members[0])
        first = fresh_seed() if given is None else check_seed(given)
        for slot in members:
            orders[slot] = (first, number, group_size or 1)
    return orders


def _backend(backend: str | None, async_mode: bool) -> str:
    if backend is None:
        return "async" if async_mode else "sync"
    if async_mode and backend in BACKENDS and backend != "async":
        raise BadValue(f"async_mode=True means backend 'async', which conflicts with backend={backend!r}")
    return backend


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
        raise BadValue(f"conflicting numbers of slots: {given}")
    count = next(iter(given.values()), len(env_ids) if isinstance(env_ids, Mapping) else 1)
    if count < 1:
        raise BadValue(f"need at least one slot, got {given}")
    if isinstance(env_ids, Mapping):
        ids = _assign_by_weight(env_ids, count)
    else:
        ids = [env_ids] * count if isinstance(env_ids, str) else list(env_ids)
    return list(zip(ids, vec_kwargs or [{}] * count, strict=True))


def _assign_by_weight(weights: Mapping[str, float], count: int) -> list[str]:
    """Return an id per slot. Each id gets one slot; a further slot goes to the id with the fewest slots per weight."""
    for env_id, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight < float("inf"):
            raise BadValue(f"the weight of {env_id!r} must be a number above 0, got {weight!r}")
    if count < len(weights):
        raise BadValue(f"{len(weights)} ids need at least {len(weights)} slots, got num_envs={count}")
    slots = list(weights)  # each id gets at least one slot
    counts = {env_id: 1 for env_id in weights}
    while len(slots) < count:
        env_id = min(weights, key=lambda i: counts[i] / weights[i])
        counts[env_id] += 1
        slots.append(env_id)
    return slots
