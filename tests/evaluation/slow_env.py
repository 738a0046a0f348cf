"""A stub environment that takes seconds per step and crashes on some tasks when they are first played.

As a script, runs `gem eval` with it: python slow_env.py FOLDER RUNS SECONDS FLAG…
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import gem
from gem.core import Env, Step, StopReason
from gem.registry import EnvSpec

ID = "test:Slow"


class Slow(Env):
    """Args: folder, in which the crashes are noted; seconds per step, unless the environment variable SLOW_ENV_S says
    otherwise; kill, whether a crash ends the process."""

    def __init__(self, folder, seconds=1.0, kill=False):
        self.folder, self.seconds, self.kill = Path(folder), seconds, kill

    def reset(self, seed=None):
        super().reset(seed)
        self.note = self.folder / f"crash-{seed}"
        self.crashes = self.rng.random() < 0.4 and not self.note.exists()
        return "?", {}

    def step(self, action):
        (self.folder / "steps").touch()
        time.sleep(float(os.environ.get("SLOW_ENV_S", self.seconds)))
        if self.crashes:
            self.note.touch()
            if self.kill:
                os._exit(5)
            raise RuntimeError("the container died")
        return Step("", 1.0, True, False, {"stop_reason": StopReason.SOLVED})


if __name__ == "__main__":
    from gem.cli import main

    folder, runs, seconds, *flags = sys.argv[1:]
    os.environ["SLOW_ENV_S"] = seconds
    gem.register(EnvSpec(ID, "slow_env:Slow", {"folder": folder}, runs=runs))
    raise SystemExit(main(["eval", "--env", ID, *flags]))
