# CLASS: starvation   SEVERITY: must   TIMEOUT: 4   COPIES: 3
# EXPECT: sixty chains of processes that each compute for some milliseconds and pass on leave others their share.
import os
import signal
import time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(30):
    if not os.fork():
        os.setsid()
        while True:
            end = time.perf_counter() + 0.004
            while time.perf_counter() < end:
                pass
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                pass
while True:
    time.sleep(1)
