"""Building a vector environment from ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gem.errors import BadValue
from gem.registry import make
from gem.seeding import check_seed
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.sync import SyncVectorEnv


def make_vec(
    env_ids: str | Sequence[str],
    wrappers: Sequence[Callable[[Any], Any]] = (),
    vec_kwargs: Sequence[Mapping[str, Any]] | None = None,
    async_mode: bool = False,
    seed: int | None = 0,
    *,
    num_envs: int | None = None,
    autoreset: str | Autoreset = Autoreset.SAME_STEP,
    **kwargs: Any,
) -> VectorEnv:
    """Build many environments behind one interface.

    Args:
        env_ids: one id for every slot, or a list with one per slot.
        wrappers: callables applied to each environment, innermost first.
        vec_kwargs: constructor arguments, one dict per slot; they are not written to.
        async_mode: only False for now: every slot in this process, in a loop.
        seed: slot i is seeded with seed + i where its vec_kwargs give no seed; None seeds from the operating system.
        num_envs: slots; by default as many as env_ids or vec_kwargs list, else 1.
        autoreset: when a slot starts its next episode; see Autoreset.
        kwargs: constructor arguments of every slot; vec_kwargs win.

    Raises BadValue when the lengths disagree, and what gem.make raises.
    """
    if not all(callable(wrap) for wrap in wrappers):
        raise BadValue(
            f"wrappers must be callables, got {wrappers!r}; gem.wrappers.get_wrapper_fns turns names into some"
        )
    if async_mode:
        raise BadValue("async_mode=True is not available yet; async_mode=False steps every slot in this process")
    slots = _slots(env_ids, vec_kwargs, num_envs)
    first = None if seed is None else check_seed(seed)
    env_fns = []
    for i, (env_id, own) in enumerate(slots):
        seeded = {} if first is None else {"seed": first + i}
        env_fns.append(partial(_build, env_id, {**seeded, **kwargs, **own}, tuple(wrappers)))
    return SyncVectorEnv(env_fns, autoreset)


def _build(env_id: str, kwargs: dict[str, Any], wrappers: tuple[Callable[[Any], Any], ...]) -> Any:
    env: Any = make(env_id, **kwargs)
    for wrap in wrappers:
        env = wrap(env)
    return env


def _slots(
    env_ids: str | Sequence[str], vec_kwargs: Sequence[Mapping[str, Any]] | None, num_envs: int | None
) -> list[tuple[str, Mapping[str, Any]]]:
    lengths = {"num_envs": num_envs, "vec_kwargs": None if vec_kwargs is None else len(vec_kwargs)}
    if not isinstance(env_ids, str):
        lengths["env_ids"] = len(env_ids)
    given = {name: length for name, length in lengths.items() if length is not None}
    if len(set(given.values())) > 1:
        raise BadValue(f"the number of slots is given differently: {given}")
    count = next(iter(given.values()), 1)
    if count < 1:
        raise BadValue(f"need at least one slot, got {given}")
    ids = [env_ids] * count if isinstance(env_ids, str) else list(env_ids)
    return list(zip(ids, vec_kwargs or [{}] * count, strict=True))
