# CLASS: limits   SEVERITY: must   TESTS: 3   TIMEOUT: 15
# EXPECT: one test of a program has the memory limit of a run.
import os
import sys
import time

if sys.stdin.readline().strip() not in ("", "0"):
    sys.exit()  # only the first test takes what it can

read, write = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        hoard = bytearray(500 << 20)
        hoard[::4096] = b"x" * len(hoard[::4096])
        os.write(write, b"x")
        time.sleep(60)
full = 0
while full < 4:
    full += len(os.read(read, 4))
time.sleep(0.4)
print("PWNED", full * 500, "MiB", flush=True)
