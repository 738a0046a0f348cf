"""The environment API: Env, EnvWrapper and Step, in one file because a wrapper repeats the whole interface of Env.

An environment is a class with ``reset`` and ``step``. It draws random numbers from ``self.rng``, which
``super().reset(seed)`` creates, and keeps the episode in a dataclass ``self.state``. Saving, forking and the random
stream of sampled actions then work without further code.

>>> from dataclasses import dataclass, replace
>>> @dataclass(frozen=True)
... class Count:
...     left: int
>>> class Countdown(Env):
...     def reset(self, seed=None):
...         super().reset(seed)
...         self.state = Count(self.rng.randint(1, 3))
...         return "Say 'down'.", {}
...     def step(self, action):
...         self.state = replace(self.state, left=self.state.left - 1)
...         return Step("down", terminated=self.state.left == 0)
>>> with Countdown() as env:
...     _ = env.reset(seed=1)
...     fork = env.spawn(same_state=True)
...     env.step("down") == fork.step("down")
True
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast, get_type_hints, runtime_checkable

from gem._internal.annotations import check_arguments
from gem._internal.construction import InitSignature, by_name, construct, dropping_ignored, rejecting_unknown_arguments
from gem.errors import BadAction, BadValue
from gem.messages import Observation
from gem.seeding import check_seed, derive, fresh_seed

__all__ = [
    "Env",
    "EnvWrapper",
    "HasBoard",
    "Optimum",
    "Step",
    "StopReason",
]

Info = dict[str, Any]
EnvT = TypeVar("EnvT", bound="Env")
ObsType, ActType = TypeVar("ObsType"), TypeVar("ActType")  # published names, for annotations

# Clients of the gem API merge info into records with these keys, so info must not contain them.
RESERVED_INFO_KEYS = frozenset(
    {"observation", "actions_left", "messages", "reward"}
    | {"llm_response", "prompt_ids", "response_ids", "infer_logprobs"}
)

# Raised while converting plain data that does not have the expected shape.
_CONVERSION_ERRORS = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


class StopReason(str, Enum):
    """Why an episode ended: the value of ``info["stop_reason"]``.

    MAX_TURNS, MAX_TOKENS, REFUSED and FAILED come with truncated, the others with terminated. REFUSED is set by
    rollouts: the model refused to reply, or a content filter removed its reply. FAILED means that the
    infrastructure failed (see gem.errors.InfraError); such an episode counts as neither won nor lost.
    """

    SOLVED = "solved"
    LOST = "lost"
    FORMAT = "format"
    MAX_TURNS = "max_turns"
    MAX_TOKENS = "max_tokens"
    REFUSED = "refused"
    FAILED = "failed"

    __str__ = str.__str__


class _Step(NamedTuple):
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class Step(_Step):
    """The result of one step: Gym's five values as a named tuple.

    Args:
        observation: the next observation: a str, ``{"text", "images"}`` or a list of messages.
        reward: the reward of this step alone.
        terminated: True when the task is over: won, lost, or ended by an unreadable action.
        truncated: True when the episode was cut off: by a turn or token limit, or by an infrastructure failure.
        info: None stands for a new empty dict. Keys: ``stop_reason``, why the episode ended; ``invalid``, why the
            action was invalid; ``reward_parts``, named components that sum to the reward; ``revealed``, in the last
            step only, the secrets of an episode that was not won; ``outside_limit``, True in the last step if a limit
            that is not one of the task's rules, such as that of TurnLimit, ended the episode; ``explanation`` and
            ``checks``, see below. Vectors and rollouts add ``surrogates``, the number of lone surrogates in the
            observation that they have replaced by U+FFFD.

    ``info["explanation"]`` of the last step says why the episode has its score, in one or a few sentences.
    ``info["checks"]`` of the last step names what was checked: a list of
    ``{"name": str, "passed": bool, "detail": str}``, in which the detail may be left out, or a dict from names to
    whether they passed. Both may name secrets, because the episode is over. Records, transcripts and exports show them.
    """

    __slots__ = ()

    def __new__(
        cls,
        observation: Observation,
        reward: float = 0.0,
        terminated: bool = False,
        truncated: bool = False,
        info: Info | None = None,
    ) -> Step:
        return tuple.__new__(cls, (observation, reward, terminated, truncated, {} if info is None else info))


class Optimum(NamedTuple):
    """The best result that any policy can reach, for learning curves and rules cards.

    Args:
        success: fraction of episodes won, 0 to 1.
        turns: mean number of turns of the episodes won.
        name: name of the policy that reaches it.
    """

    success: float
    turns: float
    name: str


_RngState = tuple[int, tuple[int, ...], float | None]


@dataclass(frozen=True)
class _Saved:
    seed: int | None
    episode: int
    rng: _RngState | None
    action_rng: _RngState | None
    state: Any


class Env:
    """A single-agent environment with text (and image) observations.

    Subclasses define ``reset`` and ``step``; their ``reset`` calls ``super().reset(seed)``, which creates ``self.rng``.
    They need not call ``super().__init__()``. An episode depends only on the constructor arguments, the id, the seed
    and the actions: the k-th reset after ``reset(seed=s)`` has its own random stream, independent of earlier episodes.
    The id is that of ``make``, or the name of the class if the environment was built from its class.

    The constructor raises BadValue for an argument whose type is not that of its annotation.

    Attributes:
        answers_in_fences: True if the environment reads answers from fenced code blocks. Such blocks are then never
            tool calls.
        waits_for_io: True if reset() or step() waits for I/O, although the spec says that the environment runs inline.
            A ToolEnvWrapper then steps it on a thread.
        shows_history: True if each observation contains the history. Rollouts then send it as the whole context.
        shows_prompt: True if each observation is a complete prompt, which rollouts send to the model unchanged.
        moves_only: True if an action is a move of a game, so that the longest legal one bounds the length of a reply.
        ends_on_truncation: True if ``terminated`` is set whenever ``truncated`` is. Vectors then do the same for failed
            episodes.
    """

    answers_in_fences: bool = False
    waits_for_io: bool = False
    shows_history: bool = False
    shows_prompt: bool = False
    moves_only: bool = False
    ends_on_truncation: bool = False
    # Keyword arguments of the published class that have no effect here, and why. The constructor drops them. In a
    # subclass, parameters of its own constructor are not among them.
    ignored_kwargs: ClassVar[Mapping[str, str]] = {}

    env_id: str | None = None
    entry_point: Any = None
    rng: random.Random
    state: Any

    # inspect.signature(SomeEnv) shows the parameters of __init__, although __new__ accepts anything.
    __signature__ = InitSignature()
    _arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    _first_seed: int | None = None  # from make(seed=…), used by the first reset
    _seed: int | None = None
    _episode: int = 0
    _action_rng: random.Random | None = None

    def __new__(cls: type[EnvT], *args: Any, **kwargs: Any) -> EnvT:
        env = super().__new__(cls)
        # Here, because subclasses need not call super().__init__(). The arguments are kept for spawn().
        env._arguments = args, {name: value for name, value in kwargs.items() if name not in cls.ignored_kwargs}
        check_arguments(cls, *env._arguments)
        return env

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.ignored_kwargs and (init := vars(cls).get("__init__")) is not None:
            if "ignored_kwargs" not in vars(cls):
                own = inspect.signature(init).parameters
                cls.ignored_kwargs = {name: why for name, why in cls.ignored_kwargs.items() if name not in own}
            setattr(cls, "__init__", dropping_ignored(cls, init))  # noqa: B010  as below
        if inspect.isfunction(reset := vars(cls).get("reset")):
            setattr(cls, "reset", rejecting_unknown_arguments(reset))  # noqa: B010  mypy refuses to assign to a method

    def __init__(self) -> None:
        super().__init__()  # a mixin class may follow in the MRO

    def reset(self, seed: int | None = None) -> tuple[Any, Info]:
        """Start an episode.

        Args:
            seed: an integer >= 0 starts a new sequence of episodes. None continues with the next episode of the current
                sequence, or starts a sequence from a random seed if there is none.

        Returns:
            The first observation and info.

        Raises:
            BadValue: for any other seed.
        """
        seed = self._first_seed if seed is None else seed
        self._first_seed = None
        if seed is not None:
            self._seed, self._episode = check_seed(seed), 0
            if not type(self).__module__.startswith("gem."):
                _seed_global_streams(self._seed)
        elif self._seed is None:
            self._seed, self._episode = fresh_seed(), 0
        else:
            self._episode += 1
        self.rng, self._action_rng = self._stream("world"), None
        return "", {}

    def _stream(self, purpose: str) -> random.Random:
        """Return a random stream of the current episode, which environments with other ids do not share."""
        seed = fresh_seed() if self._seed is None else self._seed
        return random.Random(derive(seed, self.env_id or type(self).__qualname__, self._episode, purpose))

    def step(self, action: str) -> tuple[Any, float, bool, bool, Info]:
        """Take one action. Any text is accepted; an invalid action is reported in the Step and does not raise.

        Returns:
            A Step: observation, reward, terminated, truncated, info.

        Raises:
            EpisodeOver: before the first reset and after the end of an episode.
            BadAction: for an action of the wrong type.
            InfraError: when the infrastructure behind the environment fails.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step(action)")

    def sample_random_action(self) -> str:
        """Return a random legal action, drawn from ``self.action_rng`` so that sampling does not affect the episode."""
        raise NotImplementedError(f"{type(self).__name__} must define sample_random_action()")

    def optimum(self) -> Optimum | None:
        """Return the best result that any policy can reach, or None if it is not known."""
        return None

    def instances(self) -> int | None:
        """Return how many different episodes reset() can start, or None if they are many or not counted.

        With few instances, fresh seeds repeat episodes: an evaluation then plays what training has played.
        """
        return None

    def state_key(self) -> Any:
        """Return JSON-compatible data that is equal in equal states of a task, or None for the last observation.

        GiGPO uses it, which compares what was done in equal states of a group of episodes. Override this method if
        equal states have different observations, or different states the same one.
        """
        return None

    def secrets(self) -> list[str] | None:
        """Return the strings that observations must not reveal in this episode, such as a secret word.

        None means that the environment does not declare its secrets; ``gem check`` then does not check for leaks and
        says so.
        """
        return None

    def close(self) -> None:
        """Release processes, files and connections. Safe to call twice."""

    @property
    def unwrapped(self) -> Env:
        return self

    @property
    def action_rng(self) -> random.Random:
        """The random stream for sampled actions, separate from ``self.rng``."""
        if self._action_rng is None:
            self._action_rng = self._stream("action")
        return self._action_rng

    def get_state(self) -> dict[str, Any]:
        """Return the state of the episode and its random streams, as data that ``json.dumps`` accepts.

        Raises:
            NotImplementedError: when there is no ``self.state`` to save.
        """
        if not hasattr(self, "state"):
            raise NotImplementedError(
                f"{type(self).__name__} has no self.state to save: call reset() first, or define get_state() and "
                "set_state() if the episode is stored elsewhere"
            )
        saved = _Saved(
            self._seed,
            self._episode,
            _rng_state(getattr(self, "rng", None)),
            _rng_state(self._action_rng),
            self.state,
        )
        return cast("dict[str, Any]", _msgspec().to_builtins(saved, str_keys=True))

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore an episode saved by get_state() of this or another environment with the same constructor arguments.

        Raises:
            BadValue: when the data does not match this environment's state. The environment is then unchanged.
        """
        convert = _msgspec().convert
        try:
            saved = convert(state, _Saved)
            restored = convert(saved.state, self.state_type(), str_keys=True)
            rng, action_rng = _rng_from(saved.rng), _rng_from(saved.action_rng)
        except _CONVERSION_ERRORS as e:
            raise BadValue(f"invalid state for {type(self).__name__}: {e}") from e
        self._seed, self._episode, self._first_seed = saved.seed, saved.episode, None
        self.state, self._action_rng = restored, action_rng
        if rng is not None:
            self.rng = rng

    def state_type(self) -> Any:
        """Return the type of ``self.state``: its class annotation or, without one, the type of its value.

        Without an annotation and before the first reset, this calls reset(seed=0). A class attribute ``state = None``
        means that there is no state before the first reset.
        """
        for cls in type(self).__mro__:
            if cls is Env:
                break
            if "state" in inspect.get_annotations(cls):
                return get_type_hints(cls)["state"]
        if getattr(self, "state", None) is None:
            self.reset(seed=0)
        return type(self.state) | None if getattr(type(self), "state", self) is None else type(self.state)

    def spawn(self: EnvT, same_state: bool = False, **overrides: Any) -> EnvT:
        """Build another environment from the same constructor arguments.

        Args:
            same_state: also copy the current episode; both environments then continue independently.
            overrides: constructor arguments to change. If the constructor has no parameter ``seed``, an override
                of this name sets the seed of the first reset.

        Raises:
            UnknownArgument: for an override that the constructor does not accept.
        """
        env: EnvT = construct(type(self), *by_name(type(self), *self._arguments), overrides)
        env.env_id, env.entry_point = self.env_id, self.entry_point
        if same_state:
            env.set_state(self.get_state())
        return env

    def __enter__(self: EnvT) -> EnvT:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.env_id}>" if self.env_id else f"<{type(self).__name__}>"


class _OfInner:
    """A flag of a wrapper: that of the wrapped environment, unless the wrapper or its class sets its own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, wrapper: EnvWrapper | None, owner: type | None = None) -> bool:
        return False if wrapper is None else bool(getattr(wrapper.env, self.name, False))


class EnvWrapper(Env):
    """An environment that wraps another environment.

    Attributes that the wrapper does not define are looked up on the inner environment.

    Subclasses override ``reset`` and ``step``, and expose their own per-episode state through ``own_state`` and
    ``set_own_state`` so that saving and forking include it. A subclass that also overrides ``areset`` and ``astep``
    keeps an inner environment with coroutines asynchronous; otherwise the wrapped environment is called on a thread.

    Attributes:
        awaits: True if ``areset`` and ``astep`` work around any environment, because the wrapper itself awaits I/O.
    """

    awaits: bool = False
    answers_in_fences: bool = _OfInner()  # type: ignore[assignment]
    waits_for_io: bool = _OfInner()  # type: ignore[assignment]
    shows_history: bool = _OfInner()  # type: ignore[assignment]
    shows_prompt: bool = _OfInner()  # type: ignore[assignment]
    ends_on_truncation: bool = _OfInner()  # type: ignore[assignment]

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that the wrapper lacks. While unpickling, it also lacks "env".
        if name == "env" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return cast("tuple[Any, Info]", self.env.reset(seed=seed, **kwargs))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        return cast("tuple[Any, float, bool, bool, Info]", self.env.step(action))

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return cast("tuple[Any, Info]", await self.env.areset(seed=seed, **kwargs))

    async def astep(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        return cast("tuple[Any, float, bool, bool, Info]", await self.env.astep(action))

    def sample_random_action(self) -> str:
        return cast(str, self.env.sample_random_action())

    def optimum(self) -> Optimum | None:
        return cast("Optimum | None", self.env.optimum())

    def instances(self) -> int | None:
        return cast("int | None", self.env.instances())

    def state_key(self) -> Any:
        return self.env.state_key()

    def secrets(self) -> list[str] | None:
        return cast("list[str] | None", self.env.secrets())

    def close(self) -> None:
        self.env.close()

    @property
    def env_id(self) -> str | None:
        return cast("str | None", self.env.env_id)

    @env_id.setter
    def env_id(self, value: str | None) -> None:
        self.env.env_id = value

    @property
    def entry_point(self) -> Any:
        return self.env.entry_point

    @entry_point.setter
    def entry_point(self, value: Any) -> None:
        self.env.entry_point = value

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    @property
    def action_rng(self) -> random.Random:
        return cast(random.Random, self.env.action_rng)

    def get_state(self) -> dict[str, Any]:
        return {"env": self.env.get_state(), "wrapper": self.own_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        before = self.own_state()
        try:
            inner, own = state["env"], state["wrapper"]
            self.set_own_state(own)
        except _CONVERSION_ERRORS as e:
            self.set_own_state(before)
            raise BadValue(f"invalid state for {type(self).__name__}: {type(e).__name__}: {e}") from e
        try:
            self.env.set_state(inner)
        except BadValue:
            self.set_own_state(before)
            raise

    def state_type(self) -> Any:
        return self.env.state_type()

    def own_state(self) -> Any:
        """Return this wrapper's per-episode state as plain data."""
        return None

    def set_own_state(self, state: Any) -> None:
        """Restore a value returned by own_state()."""

    def spawn(self: EnvT, same_state: bool = False, **overrides: Any) -> EnvT:
        """Spawn the inner environment with the overrides and wrap the result in the same way."""
        this = cast(EnvWrapper, self)
        args, kwargs = this._arguments
        inner = this.env.spawn(**overrides)
        wrapper = type(self)(
            *(inner if value is this.env else value for value in args),
            **{name: inner if value is this.env else value for name, value in kwargs.items()},
        )
        if same_state:
            wrapper.set_state(self.get_state())
        return wrapper

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r})"


class ResultWrapper(EnvWrapper):
    """A wrapper that only changes what reset() and step() return, also where they are coroutines."""

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return self._after_reset(*self.env.reset(seed=seed, **kwargs))

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return self._after_reset(*await self.env.areset(seed=seed, **kwargs))

    def step(self, action: Any) -> Step:
        return self._after_step(action, Step(*self.env.step(action)))

    async def astep(self, action: Any) -> Step:
        return self._after_step(action, Step(*await self.env.astep(action)))

    def _after_reset(self, observation: Any, info: Info) -> tuple[Any, Info]:
        """Return what reset() returns, from the result of the inner environment."""
        return observation, info

    def _after_step(self, action: Any, step: Step) -> Step:
        """Return what step() returns, from the result of the inner environment."""
        return step


class EndOnTruncation(ResultWrapper):
    """Set terminated whenever truncated is set, for callers that check only terminated."""

    ends_on_truncation = True

    def _after_step(self, action: Any, step: Step) -> Step:
        return step._replace(terminated=step.terminated or step.truncated)


@runtime_checkable
class HasBoard(Protocol):
    """An environment with a board, such as all games: ``gem play`` shows the rules once, and the board after moves."""

    def rules(self) -> str:
        """Return the rules, without the board."""

    def board(self) -> str:
        """Return the board as text; empty if there is none to show."""


def unwrapped(env: Any) -> Any:
    """Return ``env.unwrapped``, or the object itself if it is an environment only by its reset() and step()."""
    return getattr(env, "unwrapped", env)


def has_coroutines(env: Any) -> bool:
    """Return whether ``await env.astep(action)`` and ``await env.areset(seed)`` can replace step and reset.

    Returns False if there are no coroutines, or if a subclass overrides step or reset but not the inherited coroutine.
    """
    cls = type(env)
    if not all(_most_derived(cls, name, f"a{name}") == f"a{name}" for name in ("step", "reset")):
        return False
    return has_coroutines(env.env) if isinstance(env, EnvWrapper) and not env.awaits else True


def waits(env: Any) -> bool:
    """Return whether any wrapper of an environment awaits I/O itself. Such an environment must not run inline."""
    while isinstance(env, EnvWrapper):
        if env.awaits:
            return True
        env = env.env
    return False


def _most_derived(cls: type, name: str, twin: str) -> str | None:
    """Return the name, of the two, defined by the most derived class that defines either of them.

    Returns the twin if that class defines both, and None if no class defines either.
    """
    return next((twin if twin in vars(c) else name for c in cls.__mro__ if {name, twin} & vars(c).keys()), None)


def position_of(env: Any) -> tuple[int | None, int]:
    """Return (seed, episode index) of the current episode, or (None, 0) if the environment does not record them."""
    inner = unwrapped(env)
    return getattr(inner, "_seed", None), getattr(inner, "_episode", 0)


def skip_to(env: Any, seed: int | None, episode: int) -> None:
    """Make the next reset() without a seed start the episode that follows (seed, episode).

    Has no effect if seed is None or the unwrapped environment is not an Env.
    """
    inner = unwrapped(env)
    if seed is not None and isinstance(inner, Env):
        inner._seed, inner._episode, inner._first_seed = check_seed(seed), episode, None


def require_text(action: object) -> None:
    """Raise BadAction unless the action is a str."""
    if not isinstance(action, str):
        raise BadAction(f"action must be a str, got {type(action).__name__} {action!r:.80}")


def _seed_global_streams(seed: int) -> None:
    # Environments written for the published package draw from the global streams after super().reset(seed).
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


def _msgspec() -> Any:
    import msgspec  # third-party, so imported late: `import gem` loads only the standard library

    return msgspec


def _rng_state(rng: random.Random | None) -> _RngState | None:
    return None if rng is None else rng.getstate()


def _rng_from(state: _RngState | None) -> random.Random | None:
    if state is None:
        return None
    rng = random.Random()
    rng.setstate(state)
    return rng
