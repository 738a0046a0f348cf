# CLASS: limits   SEVERITY: must
# EXPECT: pending signals and timers, of which a user has a limited number, remain for other processes of the user.
import ctypes
import os
import signal
import time

libc = ctypes.CDLL(None, use_errno=True)
for _ in range(3):
    if os.fork() == 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
        sent = 0
        while sent < 40_000 and libc.sigqueue(os.getpid(), 36, ctypes.c_void_p(0)) == 0:
            sent += 1
        print("queued", sent, flush=True)
        time.sleep(1.2)
        os._exit(0)
for _ in range(3):
    os.wait()
