# CLASS: limits   SEVERITY: must   TIMEOUT: 6   TESTS: 3
# EXPECT: one test of a program has the memory of a run, 1 GiB, its children included.
import mmap
import os
import time

done = mmap.mmap(-1, 64)
SHARE = 200 << 20
children = []
for n in range(10):
    children.append(os.fork())
    if not children[-1]:
        region = mmap.mmap(-1, SHARE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        region[0:SHARE:4096] = bytes(SHARE // 4096)
        done[n] = 1
        time.sleep(60)
    time.sleep(0.1)
time.sleep(1)
held = SHARE * sum(done[n] for n in range(10) if os.waitpid(children[n], os.WNOHANG) == (0, 0))  # those still alive
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
