# CLASS: memory   SEVERITY: must   TIMEOUT: 6
# EXPECT: shared memory of System V that no process has attached counts as memory, or there is none.
import ctypes
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
SIZE, held, segments = 64 << 20, 0, []
while held < 2600 << 20:
    segment = libc.shmget(0, ctypes.c_size_t(SIZE), 0o1600)
    if segment < 0:
        print(os.strerror(ctypes.get_errno()))
        break
    segments.append(segment)
    pid = os.fork()
    if not pid:
        address = libc.shmat(segment, None, 0)
        ctypes.memset(address, 1, SIZE)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        break
    held += SIZE
time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
for segment in segments:
    libc.shmctl(segment, 0, None)
