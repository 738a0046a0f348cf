# CLASS: memory   SEVERITY: must   TIMEOUT: 6
# EXPECT: memory of processes counts whose first thread has ended, in sessions of their own, with parents that are gone.
import ctypes
import mmap
import os
import threading
import time

libc = ctypes.CDLL(None)
SHARE = 130 << 20
done = mmap.mmap(-1, 64)


def keep(n):
    time.sleep(0.05)
    region = mmap.mmap(-1, SHARE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for place in range(0, SHARE, 4096):
        region[place] = 1
    done[n] = 1
    time.sleep(60)


for n in range(20):
    pid = os.fork()
    if not pid:
        os.setsid()
        if os.fork():
            os._exit(0)
        threading.Thread(target=keep, args=(n,)).start()
        libc.pthread_exit(None)
    os.waitpid(pid, 0)
held, end = 0, time.monotonic() + 4.5
while held < 2400 << 20 and time.monotonic() < end:
    time.sleep(0.05)
    held = SHARE * sum(done[:20])

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
