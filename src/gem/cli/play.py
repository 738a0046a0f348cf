r"""Play an environment in the terminal.

Shows the observations of an agent. If the rules ask for moves in a box, type the move alone: 5 is sent as \boxed{5}.
:hint asks the oracle for a move, :undo takes back the last move, :rules shows the rules and the board again, :restart
restarts the episode and :quit leaves. A line that opens a fenced block, such as ```python, starts a move of several
lines that ends with the closing fence. Images are written to files, whose paths are shown.

At a terminal, an invalid move that would end the game is taken back. Moves can also be piped in, one per line; they
count as those of an agent. Without --seed, a random seed is used and shown.

  gem play game:GuessTheNumber-v0-easy
  gem play game:GuessTheNumber-v0 --seed 3 --env-kwargs max_number=100
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem._internal.text import clip, counted
from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.cli.output import MAX_TEXT, console
from gem.conversation.observations import images_of, with_prefix_and_suffix
from gem.core import Env, HasBoard, Info
from gem.errors import BadValue, CallerError, did_you_mean
from gem.parsing import last_boxed
from gem.policies import oracle
from gem.registry import make
from gem.seeding import fresh_seed

if TYPE_CHECKING:
    from rich.text import Text

COMMANDS = {
    ":hint": "show the oracle's move, if there is an oracle",
    ":undo": "take back the last move",
    ":rules": "show the rules and the board again",
    ":restart": "restart the episode",
    ":help": "list the commands",
    ":quit": "leave (also at the end of input)",
}
_STYLES = {"solved": "bold green", "lost": "bold red", "format": "bold red"}
# name of a game → (pattern, style) of what a color explains, on its board or, without a board, in what a move returns
_COLORS: dict[str, list[tuple[str, str]]] = {
    "Crosswords": [(r"_", "bold yellow"), (r"(?<= )\.(?= |$)", "dim")],
    "Hangman": [(r"wrong: .*", "red")],
    "Mastermind": [(r"\d+ black", "bold green"), (r"\d+ white", "bold yellow")],
    "Minesweeper": [(r"(?<= )[1-8]\b", "cyan"), (r"(?<= )F\b", "bold red"), (r"^Mines: .*|^ [\d ]+$", "dim")],
    "Sokoban": [(r"#", "dim"), (r"[@+]", "bold cyan"), (r"\$", "bold yellow"), (r"\*", "bold green"), (r"\.", "red")],
    "Sudoku": [(r"(?<= )\.", "bold yellow"), (r"^\d+:", "dim")],
    "Wordle": [(r"(?<= )G\b", "bold green"), (r"(?<= )Y\b", "bold yellow"), (r"(?<= )X\b", "dim")],
}
_INDEX_BASE = re.compile(r"\b(?:count(?:ed)? from|numbered from|starting at) ([01])\b")


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    env_fields = ("id",)
    id: str = flag(REQUIRED, help="environment id (see `gem list`)", positional=True)
    seed: int | None = flag(None, help="seed of the episode; random by default")
    env_kwargs: dict[str, Any] = flag({}, help="arguments for the environment, e.g. max_turns=5")


def run(config: Config) -> int:
    screen = Screen()
    with make(config.id, **config.env_kwargs) as env:
        game = Game(env, fresh_seed() % 1_000_000 if config.seed is None else config.seed)
        while _play(game, screen):
            game = Game(env, game.seed + 1)
    return 0


@dataclass(frozen=True)
class Moment:
    """The result of one step() or of reset().

    Args:
        observation, info, reward: the values that step() or reset() returned; the reward of reset() is 0.
        state: the state of the environment after the call; None if the environment cannot save its state.
    """

    observation: Any
    info: Info
    reward: float
    state: Mapping[str, Any] | None


class Game:
    """One episode and its history. The history allows the player to undo moves.

    Attributes:
        moments: the results of reset() and of every step().
        stopped: the reason why the episode ended; None while the episode is running.
        boxes: whether the first observation mentions boxes, so that moves have to be in a box.
        index_base: the number of the first row and column of the board; None if moves do not name rows and columns.
    """

    def __init__(self, env: Env, seed: int) -> None:
        self.env, self.seed = env, seed
        self.restart()

    def restart(self) -> None:
        observation, info = self.env.reset(seed=self.seed)
        self.moments: list[Moment] = []
        self.stopped: str | None = None
        self._add(observation, info, 0.0)
        self.boxes = r"\boxed" in shown(self.now)
        base = _INDEX_BASE.search(shown(self.now)) if self.board() else None
        self.index_base = None if base is None else int(base[1])

    def board(self) -> str:
        """Return the current board; empty if the environment has no board."""
        return env.board() if isinstance(env := self.env.unwrapped, HasBoard) else ""

    def rules(self) -> str:
        """Return the rules with the current board or, if the environment has no board, the first observation."""
        env, board = self.env.unwrapped, self.board()
        return f"{env.rules()}\n{board}" if board and isinstance(env, HasBoard) else shown(self.moments[0])

    @property
    def now(self) -> Moment:
        return self.moments[-1]

    @property
    def turns(self) -> int:
        return len(self.moments) - 1

    def move(self, line: str) -> None:
        """Play a typed line. The line is put in a box if the rules require a box and the line has no box."""
        self.act(rf"\boxed{{{line}}}" if self.boxes and r"\boxed" not in line else line)

    def act(self, action: str) -> None:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._add(observation, info, reward)
        if terminated or truncated:
            self.stopped = str(info.get("stop_reason", "terminated" if terminated else "truncated"))

    def undo_fatal_typo(self) -> str | None:
        """Take back an invalid move that ended the episode and return its observation. Return None for other moves."""
        last = self.now
        if self.stopped is None or "invalid" not in last.info or self.moments[-2].state is None:
            return None
        self.undo()
        return shown(last)

    def undo(self) -> None:
        """Take back the last move. Raises BadValue without a move, or if the environment cannot save its state."""
        if not self.turns:
            raise BadValue("there is no move to take back")
        before = self.moments[-2].state
        if before is None:
            raise BadValue("this environment cannot be saved, so moves cannot be taken back")
        self.env.set_state(before)
        self.moments.pop()
        self.stopped = None

    def hint(self) -> str:
        """Return the oracle's move without the box.

        An oracle may remember earlier turns of the episode. Therefore a new oracle plays all turns of the episode in a
        fork of the environment, whose state is set to the saved state of each turn.

        Raises:
            BadValue: the environment has no oracle or cannot save its state, or the oracle fails.
        """
        if self.now.state is None:
            raise BadValue("this environment cannot be saved, so hints are not available")
        fork, action = self.env.spawn(same_state=True), ""
        player = oracle(fork)
        try:
            for moment in self.moments:
                fork.set_state(moment.state or {})
                action = player.act(moment.observation)
        except Exception as e:  # an oracle may fail if the player's moves differ from its own moves
            raise BadValue(f"the oracle cannot follow this game ({type(e).__name__}: {e})") from e
        return last_boxed(action) or action

    def ending(self) -> str:
        total = sum(moment.reward for moment in self.moments)
        return f"Game over ({self.stopped}): total reward {total:.6g} in {counted(self.turns, 'turn')}."

    def _add(self, observation: Any, info: Info, reward: float) -> None:
        try:
            state = self.env.get_state()
        except NotImplementedError:
            state = None
        self.moments.append(Moment(observation, info, reward, state))


class Screen:
    """Terminal output and input. Output has colors only on a terminal."""

    def __init__(self) -> None:
        plain = bool(os.environ.get("NO_COLOR"))
        self.console = console(color_system=None if plain else "auto", highlight=False)
        self.images: Path | None = None  # folder, created for the first image
        self.interactive = sys.stdin.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")

    def say(self, text: str, style: str = "") -> None:
        from rich.text import Text  # rich would parse markup and :emoji: in a str

        self.console.print(Text(clip(text, MAX_TEXT), style), soft_wrap=not self.console.is_terminal)

    def open(self, game: Game) -> None:
        """Show the first observation."""
        self.card(game, self.observed(game))
        self.say(f"Type a move, or one of {' '.join(COMMANDS)}", "dim")

    def card(self, game: Game, card: str) -> None:
        """Show the rules in a frame on a terminal, without a frame elsewhere."""
        from rich.panel import Panel
        from rich.text import Text

        title = f"{game.env.env_id}, seed {game.seed}"
        if self.console.is_terminal:
            panel = Panel(_colored(game, card), title=Text(title), border_style="cyan", expand=False)
            self.console.print(panel)  # wraps long lines inside the frame
        else:
            self.say(f"{title}\n\n{card}\n")
        self.say_index_base(game)

    def say_index_base(self, game: Game) -> None:
        if game.index_base is not None:
            self.say(f"(rows and columns count from {game.index_base})", "dim")

    def observed(self, game: Game) -> str:
        """Return the observation as text, with the paths of its images, which are written to files."""
        text, images = _parts(game.now)
        if not all(hasattr(image, "save") for image in images):  # not PIL images
            return shown(game.now)
        for number, image in enumerate(images):
            self.images = self.images or Path(tempfile.mkdtemp(prefix="gem-play-"))
            path = self.images / f"seed-{game.seed}-turn-{game.turns}-{number}.png"
            image.save(path)
            text += f"\n[image: {path}]"
        return text

    def turn(self, game: Game) -> None:
        """Show the result of the last move."""
        self.console.print(_colored(game, self.observed(game)), soft_wrap=not self.console.is_terminal)
        self.say_index_base(game)
        if reward := game.now.reward:
            self.say(f"reward {reward:+.6g}", "green" if reward > 0 else "red")
        if game.stopped is not None:
            self.say(game.ending(), _STYLES.get(game.stopped, "bold yellow"))

    def ask(self, prompt: str) -> str | None:
        """Read and return a stripped line or a whole fenced block. Returns None at the end of input."""
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
        """Read and return a line, or None at the end of input. If input is piped, the line is also printed."""
        if not self.interactive:
            line = sys.stdin.readline()
            self.say(f"{prompt}{line.rstrip()}")
            return line.rstrip() if line else None
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  adds line editing and history to input()
        try:
            return input(prompt)
        except EOFError:
            self.say("")
            return None


def _colored(game: Game, text: str) -> Text:
    from rich.text import Text

    text = clip(text, MAX_TEXT)
    name = (game.env.env_id or "").partition(":")[2].partition("-")[0]
    board = game.board() or ("" if game.turns == 0 else text)
    start = len(text) - len(board) if board and text.endswith(board) else len(text)
    colored = Text(text[start:])
    for pattern, style in _COLORS.get(name, []):
        colored.highlight_regex(re.compile(pattern, re.MULTILINE), style)
    return Text(text[:start]) + colored


def shown(moment: Moment) -> str:
    """Return the observation as text. The number of images is appended."""
    text, images = _parts(moment)
    return f"{text}\n[images: {len(images)}]" if images else text


def _parts(moment: Moment) -> tuple[str, list[Any]]:
    """Return the text and the images of an observation."""
    observation = with_prefix_and_suffix(moment.observation, moment.info)
    images = images_of(observation)
    if isinstance(observation, list):
        return "\n".join(f"{message['role']}: {_text(message['content'])}" for message in observation), images
    return observation["text"] if isinstance(observation, dict) else observation, images


def _text(content: Any) -> str:
    """Return the text of a message's content: a str, or a list of parts."""
    if not isinstance(content, list):
        return str(content)
    return " ".join(str(part.get("text", part)) for part in content if part.get("type") != "image")


def _play(game: Game, screen: Screen) -> bool:
    """Play an episode until it ends or the player leaves. Returns whether to play another episode."""
    screen.open(game)
    while game.stopped is None or screen.interactive:
        line = screen.ask("> " if game.stopped is None else "Again? (y, n, :undo) ")
        if line is None or line == ":quit":
            if game.stopped is None:
                screen.say(f"Left after {counted(game.turns, 'turn')}.", "dim")
            return False
        if line.startswith(":"):
            _run_command(line, game, screen)
        elif game.stopped is not None and line in ("y", "n", ""):
            return line == "y"
        elif game.stopped is None and line:
            game.move(line)
            typo = game.undo_fatal_typo() if screen.interactive else None
            if typo is None:
                screen.turn(game)
            else:
                screen.say(
                    f"{typo}\nThis move would have ended the game and was taken back (:help lists the commands).",
                    "yellow",
                )
    return False


def _run_command(command: str, game: Game, screen: Screen) -> None:
    try:
        if command == ":hint":
            screen.say(f"try {game.hint()}", "cyan")
        elif command == ":undo":
            game.undo()
            screen.turn(game)
        elif command == ":rules":
            screen.card(game, game.rules())
        elif command == ":restart":
            game.restart()
            screen.open(game)
        elif command == ":help":
            screen.say("\n".join(f"{name:<10}{what}" for name, what in COMMANDS.items()))
        else:
            screen.say(f"unknown command {command!r}{did_you_mean(command, COMMANDS)}  (:help lists all)", "yellow")
    except CallerError as e:
        screen.say(str(e), "yellow")
