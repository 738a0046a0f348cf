"""Replay recorded episodes and show what changed.

Each file is a playthrough: the seed, the first observation, and the action, observation and reward of every turn.
Replays the actions and shows every line that differs. Exits with 1 if there is one.

  gem replay tests/playthroughs                        all files in the folder
  gem replay tests/playthroughs/game_Wordle-v0.txt     one file
  gem replay tests/playthroughs --update               record changed playthroughs again
  gem replay tests/playthroughs --update --ids 'game:*'    also record environments without a file
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.errors import BadValue, UnknownEnv
from gem.registry import list_envs
from gem.testing.playthroughs import file_name, header, record, replay

MAX_SHOWN = 20  # maximum number of differences printed per file


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    files: list[Path] = flag(REQUIRED, help="playthrough files, or folders of them", positional=True)
    update: bool = flag(False, help="record changed playthroughs again")
    ids: str = flag(
        "",
        help="with --update: also record environments that match and have no file, in the first folder",
    )


def run(config: Config) -> int:
    files = [file for path in config.files for file in (sorted(path.glob("*.txt")) if path.is_dir() else [path])]
    new = _missing_files(config)
    if not files and not new:
        raise BadValue(f"no playthroughs in {', '.join(map(str, config.files))}; --update --ids PATTERN records some")
    changed = [file for file in files if not _is_unchanged(file, config.update)]
    for file, env_id in new.items():
        _write(file, record(env_id))
        print(f"recorded   {file}")
    return 1 if changed and not config.update else 0


def _missing_files(config: Config) -> dict[Path, str]:
    """Return a dict from each missing file to the id of the environment to record in it."""
    if not config.ids:
        return {}
    folders = [path for path in config.files if path.is_dir()]
    if not config.update or not folders:
        raise BadValue("--ids requires --update and a folder to record in")
    if not (specs := list_envs(config.ids)):
        raise UnknownEnv(f"no env matches {config.ids!r}  (`gem list` shows all)")
    files = {folders[0] / file_name(spec.id): spec.id for spec in specs}
    return {file: env_id for file, env_id in files.items() if not file.exists()}


def _is_unchanged(file: Path, update: bool) -> bool:
    text = _read(file)
    differences = replay(text)
    if not differences:
        print(f"unchanged  {file}")
        return True
    print(f"CHANGED    {file}: {len(differences)} lines")
    print(*differences[:MAX_SHOWN], sep="\n")
    if len(differences) > MAX_SHOWN:
        print(f"… and {len(differences) - MAX_SHOWN} more")
    if update:
        env_id, seed, _ = header(text)
        _write(file, record(env_id, seed))
        print(f"recorded   {file}")
    return False


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", newline="") as stream:  # line endings are part of the recorded text
            return stream.read()
    except UnicodeDecodeError as e:
        raise BadValue(f"{file} is not a playthrough: {e}") from e


def _write(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text)
