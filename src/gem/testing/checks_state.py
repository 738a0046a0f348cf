"""State: an episode can be saved, restored, forked and sent to another process, and goes on as it would have."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence

from gem.core import Step
from gem.testing.lab import Broken, Lab, Player, Unchecked
from gem.testing.plain import around, canonical
from gem.testing.promise import promise
from gem.testing.subject import importable
from gem.testing.watch import GlobalStreams


@promise(
    "json-state",
    "From get_state(), sent through JSON to set_state(), the episode goes on alike.",
    needs=("protocol", "step-determinism"),
)
def json_state(lab: Lab) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        player, rest = _halfway(lab, seed, actions)
        state = lab.call(f"state = {player.name}.get_state()", player.env.get_state, optional=True)
        try:
            text = lab.call("text = json.dumps(state)", json.dumps, state, passes=(TypeError, ValueError))
        except (TypeError, ValueError) as e:
            raise Broken(f"get_state() is not plain data: {e}") from e
        twin, turn = lab.fresh("twin"), player.turn
        _restore(lab, twin, text, player)
        again = canonical(lab.call("twin.get_state()", twin.env.get_state))
        if again != (said := canonical(json.loads(text))):
            raise Broken(f"twin's state is {around(again, said)}, and was set to {around(said, again)}")
        streams = GlobalStreams()
        expected = _same_ahead(player, [twin], rest)
        if json.dumps(state) != text:
            raise Broken("what get_state() had returned changed when the episode went on")
        _restore(lab, player, text, player)
        player.turn, player.over = turn, not expected
        streams.restore()
        player.repeat(rest, expected, player.name)

    lab.each(body)
    return None


@promise(
    "fork",
    "spawn(same_state=True) gives forks that go on alike, and independently.",
    needs=("protocol", "step-determinism", "json-state"),
)
def fork(lab: Lab) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        player, rest = _halfway(lab, seed, actions)
        forks = []
        for name in ("fork", "second"):
            code = f"{name} = {player.name}.spawn(same_state=True)"
            env = lab.call(code, player.env.spawn, same_state=True, optional=True)
            if env is player.env:
                raise Broken("spawn(same_state=True) returned the environment itself")
            forks.append(lab.adopt(name, env, like=player))
        _same_ahead(player, forks, rest)

    lab.each(body)
    return None


@promise(
    "pickle",
    "An environment can be pickled in mid-episode, and the copy goes on alike.",
    needs=("protocol", "step-determinism"),
)
def pickling(lab: Lab) -> str | None:
    if importable(cls := type(lab.fresh().env)) is None:
        raise Unchecked(f"pickle finds no class {cls.__qualname__}, which is local to a function or to __main__")

    def body(seed: int, actions: Sequence[str]) -> None:
        player, rest = _halfway(lab, seed, actions)
        code = f"twin = pickle.loads(pickle.dumps({player.name}))"
        env = lab.call(code, lambda: pickle.loads(pickle.dumps(player.env)))
        _same_ahead(player, [lab.adopt("twin", env, like=player)], rest)

    lab.each(body)
    return None


def _halfway(lab: Lab, seed: int, actions: Sequence[str]) -> tuple[Player, list[str]]:
    """An environment in mid-episode, and the actions that are left."""
    player = lab.fresh()
    player.reset(seed)
    half = len(actions) // 2
    player.play(actions[:half])
    return player, list(actions[half:])


def _same_ahead(player: Player, copies: Sequence[Player], actions: Sequence[str]) -> list[Step]:
    """Raises Broken unless the copies and then the player itself, one after the other, answer alike."""
    streams = GlobalStreams()
    expected = copies[0].play(actions)
    for other in (*copies[1:], player):
        streams.restore()
        other.repeat(actions, expected, copies[0].name)
    return expected


def _restore(lab: Lab, player: Player, text: str, like: Player) -> None:
    code = f"{player.name}.set_state(json.loads(text))"
    lab.call(code, player.env.set_state, json.loads(text), optional=True)
    player.turn, player.over = like.turn, like.over
