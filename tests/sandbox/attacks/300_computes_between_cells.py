# CLASS: sessions   SEVERITY: must   TIMEOUT: 5   CELLS: 3
# EXPECT: processes in sessions of their own, which have started by the end of a cell, do not compute between cells.
import mmap
import os
import signal
import sys
import time

COUNT = 6


def total():
    return sum(int.from_bytes(used[8 * n : 8 * n + 8], "little") for n in range(COUNT)) / 1000


def spin(n):
    for number in range(1, 64):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
    while True:
        used[8 * n : 8 * n + 8] = int(1000 * time.process_time()).to_bytes(8, "little")


if globals().get("CELL") == 0:
    used = mmap.mmap(-1, 8 * COUNT)
    for n in range(COUNT):
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            spin(n)
    time.sleep(0.5)
    last = total()
elif "CELL" in globals():
    gained = total() - last
    print("PWNED computed" if gained > 0.6 else "computed", round(gained, 2), "s between cells")
    time.sleep(0.2)
    last = total()
