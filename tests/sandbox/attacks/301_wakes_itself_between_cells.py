# CLASS: sessions   SEVERITY: must   TIMEOUT: 5   CELLS: 3
# EXPECT: processes that send each other SIGCONT, and fork all the time, do not compute between cells either.
import mmap
import os
import signal
import sys
import time

COUNT = 6


def total():
    return sum(int.from_bytes(used[8 * n : 8 * n + 8], "little") for n in range(COUNT)) / 1000


def wake(n):
    """Compute and wake the others; now and then continue in a child."""
    spent = 0
    while True:
        end = time.process_time() + 0.03
        while time.process_time() < end:
            for m in range(COUNT):
                pid = int.from_bytes(used[8 * COUNT + 8 * m : 8 * COUNT + 8 * m + 8], "little")
                try:
                    os.kill(pid or os.getpid(), signal.SIGCONT)
                except OSError:
                    pass
        spent += 30
        used[8 * n : 8 * n + 8] = spent.to_bytes(8, "little")
        if os.fork():
            os._exit(0)
        used[8 * COUNT + 8 * n : 8 * COUNT + 8 * n + 8] = os.getpid().to_bytes(8, "little")


if globals().get("CELL") == 0:
    used = mmap.mmap(-1, 16 * COUNT)
    for n in range(COUNT):
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            wake(n)
    time.sleep(0.5)
    last = total()
elif "CELL" in globals():
    gained = total() - last
    print("PWNED computed" if gained > 0.6 else "computed", round(gained, 2), "s between cells")
    time.sleep(0.2)
    last = total()
