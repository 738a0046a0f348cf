# CLASS: memory   SEVERITY: must   TIMEOUT: 8
# EXPECT: pages of shared mappings count although the processes that touched them have ended and the others never did.
import mmap
import os
import time

SIZE, SLICE = 512 << 20, 64 << 20
counts = mmap.mmap(-1, 4096)


def fill(n):
    """Touch a mapping in children only."""
    shared = mmap.mmap(-1, SIZE)
    for start in range(0, SIZE, SLICE):
        pid = os.fork()
        if not pid:
            shared[start : start + SLICE : 4096] = bytes(SLICE // 4096)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            break
        counts[n] += 1
    time.sleep(60)


for n in range(5):
    try:
        if not os.fork():
            fill(n)
    except OSError as error:
        print(error)
end, held = time.monotonic() + 6, 0
while held < 2500 << 20 and time.monotonic() < end:
    time.sleep(0.05)
    held = SLICE * sum(counts[:5])

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
