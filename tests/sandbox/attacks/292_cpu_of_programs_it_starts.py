# CLASS: cpu   SEVERITY: must   TIMEOUT: 12   CPU: 2
# EXPECT: the time of interpreters counts that are started without pause and forgotten.
import os
import signal
import sys
import time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    for _ in range(4):
        try:
            os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", "-c", "sum(range(1_000_000))"], {})
        except OSError:
            time.sleep(0.01)
    time.sleep(0.03)
