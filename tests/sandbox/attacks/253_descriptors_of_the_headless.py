# CLASS: disk   SEVERITY: must   TIMEOUT: 7
# EXPECT: removed files count that are open in a process whose first thread has ended, or that allows no one to look.
import ctypes
import mmap
import os
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_DUMPABLE = 4
written = mmap.mmap(-1, 64 * 8)


def keep(n):
    time.sleep(0.1)
    block, total = bytes(4 << 20), 0
    try:
        for part in range(12):
            fd = os.open(f"f{n}_{part}", os.O_CREAT | os.O_WRONLY)
            os.unlink(f"f{n}_{part}")
            total += os.write(fd, block)
            written[8 * n : 8 * n + 8] = total.to_bytes(8, "little")
            time.sleep(0.05)
    except OSError:
        pass
    time.sleep(60)


for n in range(10):
    if not os.fork():
        if n % 2:
            libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        threading.Thread(target=keep, args=(n,)).start()
        libc.pthread_exit(None)
time.sleep(2.5)
held = sum(int.from_bytes(written[8 * n : 8 * n + 8], "little") for n in range(10))

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
