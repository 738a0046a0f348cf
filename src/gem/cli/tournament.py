"""Rate players in a game of two: every pair plays every deal with both seats.

A player is random, oracle (the best known player of the game), strength:X (a random move with probability 1 - X, else
the best known one), MODEL@URL (a model behind an OpenAI-compatible endpoint), checkpoint:RUN (the newest checkpoint of
a training run), or the folder of a model.

Prints the crosstable with Bradley-Terry ratings and 95 % bootstrap intervals. Files go to --out: trajectories.jsonl
with one line per game, failures.jsonl, report.md, report.json and, with matplotlib, ratings.png. A player that fails
makes a failed game, never a win; failed games are played again, and those that fail again are not scored. If more than
2 % of the games fail, the exit code is 1. --resume continues a tournament that was interrupted or killed.

  gem tournament random strength:.5 oracle --env board:TicTacToe-v0
  gem tournament oracle my-model@http://127.0.0.1:8000/v1 checkpoint:runs/nim --env board:Nim-v0 --games 100
  gem tournament --resume tournaments/board-Nim-v0
"""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gem._internal.folders import plain
from gem.cli.data import DataFlags
from gem.cli.eval.policies import CONCURRENCY, RANGES, TRUST, open_policy, recorded_command
from gem.cli.flags import flag
from gem.cli.output import print_json, resumable, table, wrap_for
from gem.errors import BadValue, MissingDependency, did_you_mean
from gem.evaluation.plot import draw_ratings
from gem.evaluation.records import check_free
from gem.evaluation.report import MAX_FAILED_SHARE
from gem.evaluation.tournament import TournamentReport, play_tournament, sparring_player
from gem.multiagent import Player
from gem.policies import Policy
from gem.registry import register_class

GAMES = 40
SPARRING = {"random": "random", "oracle": "best"}  # player → value of the environments' argument ``opponent``
STRENGTH, CHECKPOINT = "strength:", "checkpoint:"
_OF_MODELS = ("api_key_env", "temperature", "max_tokens", "top_p", "device")
_OF_ENDPOINTS = ("api_key_env",)
_NOT_KEPT = ("out", "resume", "trust", "json", *(f.name for f in fields(DataFlags)))


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    players: list[str] = flag(
        [], help="random, oracle, strength:X, MODEL@URL, checkpoint:RUN, or a folder", positional=True, metavar="PLAYER"
    )
    env: str | None = flag(None, help="id of a game between players, such as board:TicTacToe-v0")
    env_kwargs: dict[str, Any] = flag({}, help="arguments of the environment, such as on_illegal=retry")
    games: int | None = flag(None, help=f"games of each pair, half of them with exchanged seats [default: {GAMES}]")
    seed: int | None = flag(None, help="seed of the deals and of the players' choices [default: 0]")
    concurrency: int | None = flag(None, help=f"games at once [default: {CONCURRENCY}]")
    api_key_env: str | None = flag(None, help="environment variable with the API key of the endpoints")
    temperature: float | None = flag(None, help="of all models [default: the endpoint's; 0 for a folder]")
    max_tokens: int | None = flag(None, help="tokens per reply of all models [default: as in gem eval]")
    top_p: float | None = flag(None, help="nucleus sampling of all models")
    device: str | None = flag(None, help="torch device of models in folders [default: a GPU if there is one]")
    out: str | None = flag(None, help="folder for the records and the report [default: tournaments/ENV]")
    resume: str | None = flag(None, help="folder of a tournament to continue; other flags may not change its settings")
    trust: bool = flag(False, help=f"with --resume: {TRUST}")
    json: bool = flag(False, help="print the report as JSON")


def run(config: Config) -> int:
    settings = _settings(config)
    out = config.resume or config.out or _free_folder(settings["env"])
    if config.resume is None:
        check_free(Path(out))
    with ExitStack() as stack:
        players = {word: _player(word, settings, stack) for word in settings["players"]}
        stack.enter_context(resumable("tournament", out))
        report = play_tournament(
            players,
            settings["env"],
            games=settings.get("games", GAMES),
            seed=settings.get("seed", 0),
            env_kwargs=settings.get("env_kwargs", {}),
            concurrency=settings.get("concurrency", CONCURRENCY),
            out=out,
            resume=config.resume is not None,
            notes={"command": settings},
            progress=_Progress(),
        )
        if report.ratings is not None:
            with suppress(MissingDependency):  # the picture needs the extra [plot]
                draw_ratings(report, plain(Path(out) / "ratings.png"))
        if config.json:
            print_json({**report.to_json(), "folder": out})
        else:
            _print(report, out)
    if report.failures > MAX_FAILED_SHARE * report.planned:
        how = f"play them again with `gem tournament --resume {shlex.quote(out)}`"
        print(f"gem: {report.failures} of {report.planned} games failed; {how}", file=sys.stderr)
        return 1
    return 0


def _print(report: TournamentReport, out: str) -> None:
    for text in ("\n".join(table(report.crosstable())), *report.notes(), f"Records and report: {shlex.quote(out)}"):
        print(wrap_for(sys.stdout, text))


class _Progress:
    """Prints a line on stderr for each tenth of the games of a tournament that takes longer than a moment."""

    def __init__(self) -> None:
        self.tenths: int | None = None

    def __call__(self, done: int, planned: int) -> None:
        before, self.tenths = self.tenths, done * 10 // planned
        if before is not None and self.tenths > before and sys.stderr.isatty():
            print(f"{done} of {planned} games", file=sys.stderr)


def _settings(config: Config) -> dict[str, Any]:
    """Return the flags that were given. Those of a resumed tournament are the defaults."""
    given = {f.name: getattr(config, f.name) for f in fields(Config) if f.name not in _NOT_KEPT}
    given = {name: value for name, value in given.items() if value not in (None, [], {})}
    for name, (accepts, range_) in RANGES.items():
        if name in given and not accepts(given[name]):
            raise BadValue(f"--{name.replace('_', '-')} must be {range_}, got {given[name]:g}")
    if config.resume is not None:
        if config.out is not None:
            raise BadValue("--out has no effect with --resume, which continues in the same folder")
        if "players" not in (command := recorded_command(config.resume, "gem tournament", given, config.trust)):
            raise BadValue(f"{config.resume} was not written by gem tournament")
        given = {**command, **given}
        register_class(str(given.get("env")))
    elif config.trust:
        raise BadValue("--trust has no effect without --resume")
    if "env" not in given:
        raise BadValue("gem tournament needs --env, such as --env board:TicTacToe-v0")
    words = given.get("players", [])
    twice = [word for word in dict.fromkeys(words) if words.count(word) > 1]
    if twice:
        raise BadValue(f"the players must differ, got {twice[0]!r} twice")
    if len(words) < 2:
        raise BadValue(f"a tournament needs at least two players, got {len(words)}")
    return given


def _player(word: str, settings: dict[str, Any], stack: ExitStack) -> Policy | Player:
    env, kwargs = settings["env"], settings.get("env_kwargs", {})
    if word in SPARRING:
        return sparring_player(env, SPARRING[word], kwargs)
    if word.startswith(STRENGTH):
        try:
            strength = float(word.removeprefix(STRENGTH))
        except ValueError:
            raise BadValue(f"strength:X takes a number between 0 and 1, got {word!r}") from None
        return sparring_player(env, strength, kwargs)
    model, at, url = word.partition("@http")
    if at:
        policy = {"model": model, "base_url": f"http{url}"}
    elif word.startswith(CHECKPOINT):
        policy = {"checkpoint": word.removeprefix(CHECKPOINT)}
    elif Path(word).is_dir():
        policy = {"model": word}
    else:
        kinds = "; players are random, oracle, strength:X, MODEL@URL, checkpoint:RUN, or the folder of a model"
        raise BadValue(f"unknown player {word!r}{did_you_mean(word, [*SPARRING, STRENGTH, CHECKPOINT]) or kinds}")
    names = [name for name in _OF_MODELS if name in settings and (at or name not in _OF_ENDPOINTS)]
    opened, _ = open_policy({**policy, **{name: settings[name] for name in names}}, stack)
    assert not isinstance(opened, str)  # only --policy has names
    return opened


def _free_folder(env_id: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", env_id).strip("-.")
    names = (f"tournaments/{plain}{suffix}" for suffix in ["", *(f"-{n}" for n in range(2, 10_000))])
    return next(folder for folder in names if not Path(folder).exists())
