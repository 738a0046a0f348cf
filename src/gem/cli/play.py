r"""Play an environment yourself, in the terminal.

You read what an agent reads. Where moves go in a box, type the bare move: 5 is sent as \boxed{5}. At the prompt,
:hint asks the oracle, :undo takes the last move back, :restart begins the same game again and :quit leaves.
A line that opens a fenced block, as ```python, goes on until the block is closed: that is how programs are typed.

A seed makes the game reproducible; without one, the seed drawn is shown. Moves may be piped in, one a line.

  gem play game:GuessTheNumber-v0-easy
  gem play game:GuessTheNumber-v0 --seed 3 --env-kwargs max_number=100
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.conversation import observation_text
from gem.core import Env, Info
from gem.errors import BadValue, CallerError, did_you_mean
from gem.parsing import last_boxed
from gem.policies import oracle
from gem.registry import make
from gem.seeding import fresh_seed

COMMANDS = {
    ":hint": "what the oracle would do here, where one is known",
    ":undo": "take the last move back",
    ":restart": "the same game from its start",
    ":help": "this list",
    ":quit": "leave, as the end of the input does",
}
_STYLES = {"solved": "bold green", "lost": "bold red", "format": "bold red"}


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    id: str = flag(REQUIRED, help="environment id (see `gem list`)", positional=True)
    seed: int | None = flag(None, help="of the game; by default drawn and shown")
    env_kwargs: dict[str, Any] = flag({}, help="arguments of the environment, e.g. max_turns=5")


def run(config: Config) -> int:
    screen = Screen()
    with make(config.id, **config.env_kwargs) as env:
        game = Game(env, fresh_seed() % 1_000_000 if config.seed is None else config.seed)
        while _play(game, screen):
            game = Game(env, game.seed + 1)
    return 0


@dataclass(frozen=True)
class Moment:
    """Where a game stood after a turn, and what that turn earned. state: None where the environment cannot be saved."""

    observation: Any
    info: Info
    reward: float
    state: Mapping[str, Any] | None


class Game:
    """One episode, with what it takes to go back in it. stopped: why it ended, None while it runs."""

    def __init__(self, env: Env, seed: int) -> None:
        self.env, self.seed = env, seed
        self.restart()

    def restart(self) -> None:
        observation, info = self.env.reset(seed=self.seed)
        self.moments: list[Moment] = []
        self.stopped: str | None = None
        self._add(observation, info, 0.0)
        self.boxes = r"\boxed" in shown(self.now)

    @property
    def now(self) -> Moment:
        return self.moments[-1]

    @property
    def turns(self) -> int:
        return len(self.moments) - 1

    def move(self, line: str) -> None:
        """Play a line as a person types it: in a box where the rules ask for one and it has none."""
        self.act(rf"\boxed{{{line}}}" if self.boxes and r"\boxed" not in line else line)

    def act(self, action: str) -> None:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._add(observation, info, reward)
        if terminated or truncated:
            self.stopped = str(info.get("stop_reason", "terminated" if terminated else "truncated"))

    def undo(self) -> None:
        """Take the last move back. Raises BadValue where there is none or the environment cannot be saved."""
        if not self.turns:
            raise BadValue("there is no move to take back")
        before = self.moments[-2].state
        if before is None:
            raise BadValue("this environment cannot be saved, so no move can be taken back")
        self.env.set_state(before)
        self.moments.pop()
        self.stopped = None

    def hint(self) -> str:
        """What the oracle would do here, without the box. Raises BadValue where there is none, or it is at a loss.

        An oracle remembers its episode, so a fresh one is shown all of this one, in a fork that each time stands where
        the game stood.
        """
        if self.now.state is None:
            raise BadValue("this environment cannot be saved, so its oracle cannot be asked")
        fork, action = self.env.spawn(same_state=True), ""
        player = oracle(fork)
        try:
            for moment in self.moments:
                fork.set_state(moment.state or {})
                action = player.act(moment.observation)
        except Exception as e:  # it may take for granted that its own moves were played; no reason to end the game
            raise BadValue(f"the oracle cannot follow this game ({type(e).__name__}: {e})") from e
        return last_boxed(action) or action

    def ending(self) -> str:
        total = sum(moment.reward for moment in self.moments)
        return f"Game over ({self.stopped}): total reward {total:.6g} in {_turns(self.turns)}."

    def _add(self, observation: Any, info: Info, reward: float) -> None:
        try:
            state = self.env.get_state()
        except NotImplementedError:
            state = None
        self.moments.append(Moment(observation, info, reward, state))


class Screen:
    """Where a game is shown and moves are typed: with colours on a terminal, else as plain text."""

    def __init__(self) -> None:
        from rich.console import Console

        plain = bool(os.environ.get("NO_COLOR"))
        self.console = Console(color_system=None if plain else "auto", highlight=False, soft_wrap=True)
        self.interactive = sys.stdin.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")

    def say(self, text: str, style: str = "") -> None:
        from rich.text import Text  # a plain str would be searched for markup and :emoji:

        self.console.print(Text(text, style))

    def open(self, game: Game) -> None:
        """The first sight of a game: the rules card."""
        from rich.panel import Panel
        from rich.text import Text

        title, card = f"{game.env.env_id}, seed {game.seed}", shown(game.now)
        if self.console.is_terminal:
            panel = Panel(Text(card), title=Text(title), border_style="cyan", expand=False)
            self.console.print(panel, soft_wrap=False)  # inside a frame long lines have to be broken
        else:
            self.say(f"{title}\n\n{card}\n")
        self.say(f"Type a move, or one of {' '.join(COMMANDS)}", "dim")

    def turn(self, game: Game) -> None:
        """What the last move led to."""
        self.say(shown(game.now))
        if reward := game.now.reward:
            self.say(f"reward {reward:+.6g}", "green" if reward > 0 else "red")
        if game.stopped is not None:
            self.say(game.ending(), _STYLES.get(game.stopped, "bold yellow"))

    def ask(self, prompt: str) -> str | None:
        """The next line, stripped, with all of the fenced block that it opens; None at the end of the input."""
        line = self._line(prompt)
        if line is None:
            return None
        lines = [line.strip()]
        if fence := re.match("`{3,}|~{3,}", lines[0]):
            while (line := self._line("| ")) is not None:
                lines.append(line)
                if line.strip() == fence[0]:
                    break
        return "\n".join(lines)

    def _line(self, prompt: str) -> str | None:
        """The next line, None at the end of the input. A piped line is shown as if it had been typed."""
        if not self.interactive:
            line = sys.stdin.readline()
            self.say(f"{prompt}{line.rstrip()}")
            return line.rstrip() if line else None
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  gives input() editing and a history
        try:
            return input(prompt)
        except EOFError:
            self.say("")
            return None


def shown(moment: Moment) -> str:
    """What the agent reads, as one text; images are counted."""
    observation = moment.observation
    if isinstance(observation, list):
        return "\n".join(f"{message['role']}: {message['content']}" for message in observation)
    if isinstance(observation, dict) and observation.get("images"):
        text = observation_text(observation["text"], moment.info)
        return f"{text}\n[images: {len(observation['images'])}]"
    return observation_text(observation, moment.info)


def _play(game: Game, screen: Screen) -> bool:
    """Play a game to its end, or until the player leaves. Returns whether another one is wanted."""
    screen.open(game)
    while game.stopped is None or screen.interactive:
        line = screen.ask("> " if game.stopped is None else "Again? (y, n, :undo) ")
        if line is None or line == ":quit":
            if game.stopped is None:
                screen.say(f"Left after {_turns(game.turns)}.", "dim")
            return False
        if line.startswith(":"):
            _obey(line, game, screen)
        elif game.stopped is not None and line in ("y", "n", ""):
            return line == "y"
        elif game.stopped is None and line:
            game.move(line)
            screen.turn(game)
    return False


def _obey(command: str, game: Game, screen: Screen) -> None:
    try:
        if command == ":hint":
            screen.say(f"try {game.hint()}", "cyan")
        elif command == ":undo":
            game.undo()
            screen.say(shown(game.now))
        elif command == ":restart":
            game.restart()
            screen.open(game)
        elif command == ":help":
            screen.say("\n".join(f"{name:<10}{what}" for name, what in COMMANDS.items()))
        else:
            screen.say(f"no command {command!r}{did_you_mean(command, COMMANDS)}  (:help lists them)", "yellow")
    except CallerError as e:
        screen.say(str(e), "yellow")


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"
