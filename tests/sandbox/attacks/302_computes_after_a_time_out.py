# CLASS: sessions   SEVERITY: must   TIMEOUT: 2   CELLS: 2
# EXPECT: after a time-out of a cell none of its processes is left, stopped or running, in whatever session or group.
import mmap
import os
import signal
import sys
import time

COUNT = 6


def total():
    return sum(int.from_bytes(used[8 * n : 8 * n + 8], "little") for n in range(COUNT)) / 1000


if globals().get("CELL") == 0:
    used = mmap.mmap(-1, 16 * COUNT)
    for n in range(COUNT):
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            used[8 * COUNT + 8 * n : 8 * COUNT + 8 * n + 8] = os.getpid().to_bytes(8, "little")
            while True:
                used[8 * n : 8 * n + 8] = int(1000 * time.process_time()).to_bytes(8, "little")
    while True:
        time.sleep(1)
elif "CELL" in globals() and "used" in globals():
    alive = 0
    for n in range(COUNT):
        before = used[8 * n : 8 * n + 8]
        time.sleep(0.1)
        alive += before != used[8 * n : 8 * n + 8]
    print("PWNED" if alive else "none of them:", alive, "processes compute after the time-out")
