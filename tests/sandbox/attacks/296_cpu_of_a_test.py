# CLASS: limits   SEVERITY: must   TIMEOUT: 12   CPU: 2   TESTS: 2
# EXPECT: one test of a program has the CPU seconds of a run, its children and their children included.
import mmap
import os
import time

used = mmap.mmap(-1, 8 * 8)
for n in range(8):
    if not os.fork():
        if os.fork():
            os._exit(0)
        while True:
            used[8 * n : 8 * n + 8] = int(1000 * time.process_time()).to_bytes(8, "little")
end = time.monotonic() + 11
while time.monotonic() < end:
    total = sum(int.from_bytes(used[8 * n : 8 * n + 8], "little") for n in range(8))
    if total > 6000:
        print("PWNED 6 s of CPU", flush=True)
        break
    time.sleep(0.02)
