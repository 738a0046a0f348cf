# CLASS: cpu   SEVERITY: must   TIMEOUT: 12   CPU: 2
# EXPECT: the time of children counts that the kernel reaps at once (SA_NOCLDWAIT), one short life after the other.
import ctypes
import mmap
import os
import signal
import struct
import time

libc = ctypes.CDLL(None)
SA_NOCLDWAIT = 2
action = ctypes.create_string_buffer(struct.pack("Q128xi4xQ", 0, SA_NOCLDWAIT, 0), 256)
libc.sigaction(signal.SIGCHLD, action, None)
used = mmap.mmap(-1, 8)
while True:
    pid = os.fork()
    if not pid:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        used[:] = (int.from_bytes(used[:], "little") + 20).to_bytes(8, "little")
        os._exit(0)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
    if int.from_bytes(used[:], "little") > 6000:
        print("PWNED 6 s of CPU", flush=True)
