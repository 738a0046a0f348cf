"""Known misses: programs that violate an invariant in settings that do not promise it, in known_misses.json."""

from __future__ import annotations

import json
from pathlib import Path

from envelope.setting import Setting

_MISSES: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "known_misses.json").read_text())


def miss(name: str, setting: Setting) -> str:
    """Why a program violates an invariant in a setting; "" if it must not.

    A key of the file is a level, or a level with suffixes, all of which apply to the setting: -root or -user, -cgroup
    or -nocgroup.
    """
    for key, names in _MISSES.items():
        level, *needed = key.split("-")
        has = {"root": setting.root, "user": not setting.root, "cgroup": setting.cgroup, "nocgroup": not setting.cgroup}
        if level == setting.level and all(has[word] for word in needed) and name in names:
            return names[name]
    return ""
