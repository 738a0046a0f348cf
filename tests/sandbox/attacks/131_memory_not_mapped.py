# CLASS: limits   SEVERITY: must   TIMEOUT: 20
# EXPECT: pages of a shared mapping count although no process maps them any more.
import mmap
import os
import time

read, write = os.pipe()
for _ in range(5):
    if os.fork() == 0:
        held = []
        while True:
            part = mmap.mmap(-1, 64 << 20)
            for start in range(0, len(part), 1 << 20):
                part[start : start + (1 << 20)] = b"x" * (1 << 20)
            part.madvise(mmap.MADV_DONTNEED)
            held.append(part)
            os.write(write, b"x")
            if len(held) == 9:
                time.sleep(60)
full = 0
while full < 30:
    full += len(os.read(read, 9))
time.sleep(0.5)
print("PWNED", full * 64, "MiB in shared mappings", flush=True)
