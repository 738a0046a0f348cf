"""Replay recorded games and show what changed.

Each file is a playthrough: seed, rules, and turn by turn the action, the observation and the reward. Its actions are
played again, and every line that is not as it was is shown. Exit code 1 when there is one.

  gem replay tests/playthroughs                        every file of the folder
  gem replay tests/playthroughs/game_Wordle-v0.txt     one
  gem replay tests/playthroughs --update               record anew what changed
  gem replay tests/playthroughs --update --ids 'game:*'    and the environments that have no file yet
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.errors import BadValue, UnknownEnv
from gem.registry import list_envs
from gem.testing.playthroughs import file_name, header, record, replay

SHOWN = 20  # differences of one file


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    files: list[Path] = flag(REQUIRED, help="playthroughs, or folders of them", positional=True)
    update: bool = flag(False, help="record what differs anew, with the oracle's actions where there is one")
    ids: str = flag("", help="with --update: also record these ids, in the first folder, where they have no file")


def run(config: Config) -> int:
    files = [file for path in config.files for file in (sorted(path.glob("*.txt")) if path.is_dir() else [path])]
    new = _new(config)
    if not files and not new:
        raise BadValue(f"no playthroughs in {', '.join(map(str, config.files))}; --update --ids PATTERN records some")
    changed = [file for file in files if not _unchanged(file, config.update)]
    for file, env_id in new.items():
        _write(file, record(env_id))
        print(f"recorded   {file}")
    return 1 if changed and not config.update else 0


def _new(config: Config) -> dict[Path, str]:
    """Files to be made → the ids to record in them."""
    if not config.ids:
        return {}
    folders = [path for path in config.files if path.is_dir()]
    if not config.update or not folders:
        raise BadValue("--ids goes with --update and a folder to record in")
    if not (specs := list_envs(config.ids)):
        raise UnknownEnv(f"no env matches {config.ids!r}  (`gem list` shows all)")
    files = {folders[0] / file_name(spec.id): spec.id for spec in specs}
    return {file: env_id for file, env_id in files.items() if not file.exists()}


def _unchanged(file: Path, update: bool) -> bool:
    text = _read(file)
    differences = replay(text)
    if not differences:
        print(f"unchanged  {file}")
        return True
    print(f"CHANGED    {file}: {len(differences)} lines")
    print(*differences[:SHOWN], sep="\n")
    if len(differences) > SHOWN:
        print(f"… and {len(differences) - SHOWN} more")
    if update:
        env_id, seed, _ = header(text)
        _write(file, record(env_id, seed))
        print(f"recorded   {file}")
    return False


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", newline="") as stream:  # a text's own line ends are part of it
            return stream.read()
    except UnicodeDecodeError as e:
        raise BadValue(f"{file} is no playthrough: {e}") from e


def _write(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text)
