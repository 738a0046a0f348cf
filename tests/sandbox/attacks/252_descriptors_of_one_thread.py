# CLASS: disk   SEVERITY: must   TIMEOUT: 6
# EXPECT: removed files count that only one thread has open, by a table of descriptors of its own.
import ctypes
import os
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
CLONE_FILES = 0x400
held, ready = 0, threading.Event()


def keep():
    global held
    if libc.unshare(CLONE_FILES):
        print("unshare:", os.strerror(ctypes.get_errno()))
        ready.set()
        return
    block = bytes(4 << 20)
    try:
        for n in range(100):
            fd = os.open(f"f{n}", os.O_CREAT | os.O_WRONLY)
            os.unlink(f"f{n}")
            held += os.write(fd, block)
            time.sleep(0.02)
    except OSError as error:
        print(error)
    ready.set()
    time.sleep(60)


threading.Thread(target=keep, daemon=True).start()
ready.wait()

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
