# CLASS: starvation   SEVERITY: must   COPIES: 2
# EXPECT: processes that are replaced all the time take no more of the machine than others.
import os
import signal

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(20):
    try:
        if os.fork() == 0:
            break
    except OSError:
        pass
while True:
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError:
        pass
