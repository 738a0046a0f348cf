"""Replay recorded episodes and show what changed.

Each file is a playthrough: the seed, the first observation, and the action, observation and reward of every turn.
Replays the actions and shows every line that differs. Exits with 1 if there is one. Environments whose dependencies
are not installed are skipped, which is shown.

  gem replay tests/playthroughs                        all files in the folder
  gem replay tests/playthroughs/game_Wordle-v0.txt     one file
  gem replay tests/playthroughs --update               record changed playthroughs again
  gem replay tests/playthroughs --update --ids 'game:*'    also record environments without a file
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gem._internal.folders import plain
from gem._internal.text import clip
from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.cli.list import matching
from gem.cli.output import MAX_TEXT, print_json
from gem.errors import BadValue, MissingDependency
from gem.registry import ENV_REGISTRY
from gem.testing.env.playthroughs import Difference, file_name, header, record, replay

MAX_SHOWN = 20  # maximum number of differences printed per file


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    env_fields = ("ids",)
    files: list[Path] = flag(REQUIRED, help="playthrough files, or folders of them", positional=True)
    update: bool = flag(False, help="record changed playthroughs again")
    ids: str = flag(
        "",
        help="with --update: also record environments that match and have no file, in the first folder",
    )
    trust: bool = flag(
        False, help="let the files name environments by a path, such as harbor:FOLDER, which is then run"
    )
    json: bool = flag(False, help="print a JSON array with the differences of each file")


def run(config: Config) -> int:
    files = [
        file for path in config.files for file in (map(plain, sorted(path.glob("*.txt"))) if path.is_dir() else [path])
    ]
    new = _missing_files(config)
    if not files and not new:
        raise BadValue(f"no playthroughs in {', '.join(map(str, config.files))}; --update --ids PATTERN records some")
    results = []
    for file in files:
        results.append(_result(file, config.update, config.trust))
        if not config.json:
            _show(results[-1])
    for file, env_id in new.items():
        _write(file, record(env_id))
        results.append(_Result(str(file), [], recorded=True))
        if not config.json:
            print(f"recorded   {file}")
    if config.json:
        print_json([result.to_json() for result in results])
    return 1 if any(result.differences and not result.recorded for result in results) else 0


@dataclass(frozen=True)
class _Result:
    file: str
    differences: list[Difference]
    recorded: bool = False
    skipped: str = ""  # why it was not replayed

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"differences": [difference._asdict() for difference in self.differences]}


def _result(file: Path, update: bool, trust: bool) -> _Result:
    """Replay a file, and record it again if it has changed and update is set."""
    text = _read(file)
    try:
        env_id = header(text)[0]
        if not trust and env_id in ENV_REGISTRY and env_id not in set(ENV_REGISTRY):
            raise BadValue(f"it would run what {env_id!r} names, and nothing was run; pass --trust if you want this")
        differences = replay(text)
    except MissingDependency as e:
        return _Result(str(file), [], skipped=str(e))
    except BadValue as e:
        raise BadValue(f"{file}: {e}") from e
    if differences and update:
        env_id, seed, _ = header(text)
        _write(file, record(env_id, seed))
    return _Result(str(file), differences, recorded=bool(differences) and update)


def _missing_files(config: Config) -> dict[Path, str]:
    """Return a dict from each missing file to the id of the environment to record in it."""
    if not config.ids:
        return {}
    folders = [path for path in config.files if path.is_dir()]
    if not config.update or not folders:
        raise BadValue("--ids requires --update and a folder to record in")
    files = {folders[0] / file_name(spec.id): spec.id for spec in matching(config.ids)}
    return {file: env_id for file, env_id in files.items() if not file.exists()}


def _show(result: _Result) -> None:
    if result.skipped:
        print(f"skipped    {result.file}: {result.skipped}")
        return
    if not result.differences:
        print(f"unchanged  {result.file}")
        return
    print(f"CHANGED    {result.file}: {len(result.differences)} lines")
    print(*(clip(str(difference), MAX_TEXT) for difference in result.differences[:MAX_SHOWN]), sep="\n")
    if len(result.differences) > MAX_SHOWN:
        print(f"… and {len(result.differences) - MAX_SHOWN} more")
    if result.recorded:
        print(f"recorded   {result.file}")


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", newline="") as stream:  # line endings are part of the recorded text
            return stream.read()
    except UnicodeDecodeError as e:
        raise BadValue(f"{file} is not a playthrough: {e}") from e


def _write(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text)
