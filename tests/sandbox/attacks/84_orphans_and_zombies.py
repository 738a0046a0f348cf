# CLASS: processes   SEVERITY: must
# EXPECT: orphans, zombies and stopped processes are all removed with the run.
import ctypes
import os
import signal
import time

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # adopt orphans
for index in range(30):
    try:
        if os.fork() == 0:
            if index % 3 == 0:
                os._exit(0)
            if index % 3 == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(600)
    except OSError:
        break
time.sleep(0.3)
print("done", flush=True)
