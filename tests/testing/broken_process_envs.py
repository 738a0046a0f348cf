"""Versions of the correct game that change settings of the process, print, leave files, read the clock or grow."""

import datetime
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import numpy as np
from broken_envs import TURNS, Correct

from gem.core import Step

# process-state


class ChangesTheFolder(Correct):
    def draw(self):
        os.chdir(tempfile.gettempdir())
        return super().draw()


class SetsAVariable(Correct):
    def judge(self, action, guess):
        os.environ["LAST_GUESS"] = str(guess)
        return super().judge(action, guess)


class HandlesSignals(Correct):
    def __init__(self):
        signal.signal(signal.SIGUSR1, lambda number, frame: None)


class RaisesTheRecursionLimit(Correct):
    def draw(self):
        sys.setrecursionlimit(54_321)
        return super().draw()


class RaisesTheRecursionLimitOnce(Correct):
    done = False

    def __init__(self):
        if not RaisesTheRecursionLimitOnce.done:
            sys.setrecursionlimit(54_321)
        RaisesTheRecursionLimitOnce.done = True


class IgnoresNumpyErrors(Correct):
    def draw(self):
        np.seterr(all="ignore")
        return super().draw()


class ShortensNumpyText(Correct):
    def draw(self):
        np.set_printoptions(precision=3)
        return super().draw()


class IgnoresWarnings(Correct):
    def draw(self):
        warnings.simplefilter("ignore")
        return super().draw()


class ConfiguresLogging(Correct):
    def draw(self):
        logging.getLogger().setLevel(logging.DEBUG - 1)
        return super().draw()


class ChangesTheFolderWhenClosed(Correct):
    def close(self):
        os.chdir(tempfile.gettempdir())


# stdout


class Prints(Correct):
    def judge(self, action, guess):
        print("guessed", guess)
        return super().judge(action, guess)


class WritesToTheDescriptor(Correct):
    def draw(self):
        os.write(1, b"a new game\n")
        return super().draw()


# files


class LeavesFiles(Correct):
    def draw(self):
        handle, _ = tempfile.mkstemp(prefix="broken_process_envs_")
        os.close(handle)
        return super().draw()


class WritesALog(Correct):
    def judge(self, action, guess):
        with open(os.path.join(tempfile.gettempdir(), "broken_process_envs_log"), "a") as log:
            log.write(f"{guess}\n")
        return super().judge(action, guess)


# wall-clock


class ShowsTheDate(Correct):
    def info(self, **more):
        return {"date": f"{datetime.date.today()}", **more}


class ShowsTheTime(Correct):
    def info(self, **more):
        return {"time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H"), **more}


class GreetsByTheHour(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(observation=f"Day {int(time.time()) // 86400}: {step.observation}")


# growth

kept = []


def release():
    """Release what the environments below have kept in this process."""
    for thing in kept:
        if isinstance(thing, subprocess.Popen):
            thing.wait()
        elif hasattr(thing, "close"):
            thing.close()
    kept.clear()
    StartsThreads.forever.set()
    StartsThreads.forever = threading.Event()


class LongGame(Correct):
    """Never ends before turn 200."""

    def judge(self, action, guess):
        if self.state.turn < 200:
            return Step("Go on.")
        self.state = self.state.__class__(self.state.secret, TURNS, self.state.over)
        return super().judge("1000", 1000)


class KeepsEveryEpisode(Correct):
    def draw(self):
        secret = super().draw()
        kept.append(f"{secret:200}")
        return secret


class Clock:
    """Replaces the clock of the process, so that measured times do not depend on the machine."""

    seconds = 0.0

    @classmethod
    def spend(cls, seconds):
        cls.seconds += seconds
        time.process_time = lambda: cls.seconds

    @classmethod
    def pass_by(cls, seconds):
        cls.spend(seconds)
        time.perf_counter = lambda: cls.seconds


class SlowsDown(Correct):
    resets = 0

    def draw(self):
        SlowsDown.resets += 1
        Clock.spend(1e-3 * SlowsDown.resets)
        return super().draw()


class KeepsFilesOpen(Correct):
    def draw(self):
        kept.append(open(os.devnull))  # noqa: SIM115
        return super().draw()


class StartsThreads(Correct):
    forever = threading.Event()

    def draw(self):
        threading.Thread(target=StartsThreads.forever.wait, daemon=True).start()
        return super().draw()


class StartsProcesses(Correct):
    def draw(self):
        kept.append(subprocess.Popen(["true"]))
        return super().draw()


class SlowsDownInTheEpisode(LongGame):
    def judge(self, action, guess):
        Clock.spend(1e-3 * self.state.turn)
        return super().judge(action, guess)


class GrowsInTheEpisode(LongGame):
    def judge(self, action, guess):
        self.boards = [*getattr(self, "boards", []), " " * 50_000 + str(guess)] if self.state.turn > 1 else []
        return super().judge(action, guess)


# replaced streams, standard error, folders, steps that become slow


class ReplacesStdout(Correct):
    def draw(self):
        sys.stdout = io.StringIO()
        return super().draw()


class HidesWarnings(Correct):
    def draw(self):
        warnings.showwarning = lambda *args: None
        return super().draw()


class HidesWarningsOnce(Correct):
    done = False

    def __init__(self):
        if not HidesWarningsOnce.done:
            warnings.showwarning = lambda *args: None
        HidesWarningsOnce.done = True


class WritesToStderr(Correct):
    def judge(self, action, guess):
        sys.stderr.write(f"guessed {guess}\n")
        return super().judge(action, guess)


class WritesToTheErrorDescriptor(Correct):
    def draw(self):
        os.write(2, b"a new game\n")
        return super().draw()


class LogsAndWarns(Correct):
    """No defect: the application decides what is shown of logs and warnings."""

    def judge(self, action, guess):
        logging.getLogger("broken").error("guessed %s", guess)
        warnings.warn("a guess", stacklevel=1)
        return super().judge(action, guess)


class LeavesAFolder(Correct):
    def draw(self):
        tempfile.mkdtemp(prefix="broken_process_envs_")
        return super().draw()


class LeavesAFolderOnce(Correct):
    folder = None

    def __init__(self):
        if LeavesAFolderOnce.folder is None:
            LeavesAFolderOnce.folder = tempfile.mkdtemp(prefix="broken_process_envs_")


class GetsSlower(LongGame):
    """Each step takes longer than the one before."""

    def __init__(self):
        Clock.pass_by(0)

    def judge(self, action, guess):
        Clock.pass_by(1e-2 * self.state.turn)
        return super().judge(action, guess)


class EveryEpisodeGetsSlower(Correct):
    resets = 0

    def __init__(self):
        Clock.pass_by(0)

    def draw(self):
        EveryEpisodeGetsSlower.resets += 1
        Clock.pass_by(0.5 * EveryEpisodeGetsSlower.resets)
        return super().draw()
