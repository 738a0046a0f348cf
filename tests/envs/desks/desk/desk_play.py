"""Play tasks of the desks by number, for the tests."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from gem.envs.desks.desk.players import DeskReader
from gem.envs.desks.desk.retail import Oracle, State, retail
from gem.envs.desks.desk.support import support
from gem.envs.desks.desk.support_players import SupportReader
from gem.envs.desks.desk.support_templates import SUPPORT_TEMPLATES, make_support_task
from gem.envs.desks.desk.templates import TEMPLATES, make_task
from gem.envs.desks.desk.user import first_message
from gem.messages import ToolCall
from gem.tools.formats import TAGS

IDENTIFY = "May I have your e-mail address, or your name and zip code?"


@dataclass(frozen=True)
class Desk:
    """A desk: how to make its environment and its tasks, and the player that solves them."""

    name: str
    make: Callable[..., Any]
    templates: Mapping[str, Mapping[str, Any]]
    make_task: Callable[..., Any]
    reader: type[DeskReader]
    topics: tuple[str, ...]

    @property
    def names(self):
        """(split, template) of each template."""
        return [(split, name) for split in self.templates for name in self.templates[split]]

    def numbered(self, split, name, count=3):
        """Return numbers of tasks of a template."""
        place = list(self.templates[split]).index(name)
        return [place + len(self.templates[split]) * random.Random(k).randrange(2**30) for k in range(count)]

    def begin(self, split, number):
        """Start the episode of a task. Return the environment, which calls share, and the first observation."""
        env, observation = _made(self.name, split)
        task = self.make_task(number, split)
        reply = first_message(task.goal)
        env.reset(seed=0)
        env.env.state = State(number, copy.deepcopy(task.data), reply.mood, said=(reply.text,))
        return env, re.sub(r"Customer: .*", lambda _: f"Customer: {reply.text}", observation)

    def wrong_end(self, split, number, change):
        """Play the oracle's moves, each replaced by change(move, task), a list of moves. Return the last step."""
        env, _ = self.begin(split, number)
        task = env.env.task()
        for move in moves(env):
            for new in change(move, task):
                step = env.step(new)
        return step


RETAIL = Desk("Retail", retail, TEMPLATES, make_task, DeskReader, ("warranty", "invoice", "complaint"))
SUPPORT = Desk(
    "Support", support, SUPPORT_TEMPLATES, make_support_task, SupportReader, ("porting", "company", "complaint")
)
DESKS = (RETAIL, SUPPORT)
EVERY = [(desk, split, name) for desk in DESKS for split, name in desk.names]


@cache
def _made(name, split):
    """Return the environment of a desk, and the first observation of seed 0."""
    env = next(desk for desk in DESKS if desk.name == name).make(split=split)
    return env, env.reset(seed=0)[0]


def play(env, player, observation):
    """Play to the end. Return the last step and the player's moves."""
    moves = []
    while True:
        moves.append(player.act(observation))
        step = env.step(moves[-1])
        if step.terminated or step.truncated:
            return step, moves
        observation = step.observation


def moves(env):
    """Yield the moves of the oracle."""
    return Oracle(env.env)._plan(env.env.task())


def written(function, /, **arguments):
    """Return a call as the agent writes it."""
    return TAGS.write(ToolCall(function, arguments), ())


def failed(step):
    """Return the checks that failed."""
    return {name for name, passed in step.info["checks"].items() if not passed}
