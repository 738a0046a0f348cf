# CLASS: ipc   SEVERITY: must   TIMEOUT: 5
# EXPECT: no POSIX message queue takes the bytes that the kernel allows the user in total, and none outlives the run.
import ctypes
import os

try:
    libc = ctypes.CDLL("librt.so.1", use_errno=True)
    libc.mq_open
except (OSError, AttributeError):
    libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "maxmsg", "msgsize", "curmsgs", "a", "b", "c", "d")]


total = 0
for n in range(60):
    attributes = Attributes(0, 10, 8192)
    queue = libc.mq_open(f"/gem_{os.getpid()}_{n}".encode(), os.O_CREAT | os.O_RDWR, 0o666, ctypes.byref(attributes))
    if queue < 0:
        break
    total += 10 * 8192
print("PWNED message queues of" if total > 100_000 else "queues of", total, "bytes")
