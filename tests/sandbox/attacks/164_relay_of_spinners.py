# CLASS: starvation   SEVERITY: must   COPIES: 2
# EXPECT: spinning processes cannot shed a lower priority by replacing themselves.
import os
import signal
import time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(50):
    try:
        if os.fork() == 0:
            break
    except OSError:
        break
while True:
    start = time.process_time()
    while time.process_time() - start < 0.02:
        pass
    try:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        if os.fork():
            os._exit(0)
    except OSError:
        pass
