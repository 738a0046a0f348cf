# CLASS: sessions   SEVERITY: must   CELLS: 2   TIMEOUT: 2
# EXPECT: after a cell that timed out, none of the processes that it started is alive.
import os
import time

if globals().get("CELL", 0) == 0:
    pids = []
    for _ in range(19):
        pid = os.fork()
        if pid == 0:
            os.setsid()
            while True:
                pass
        pids.append(pid)
    while True:
        pass
else:
    alive = 0
    for pid in globals().get("pids", []):
        try:
            alive += os.waitpid(pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            pass
    print("PWNED" if alive else "left", alive)
