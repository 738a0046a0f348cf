# CLASS: memory   SEVERITY: must   TIMEOUT: 6
# EXPECT: memory is bounded for all processes of a run together, not for each of them alone.
import os
import time

read, write = os.pipe()
for _ in range(12):
    if os.fork() == 0:
        hoard = bytearray(250 << 20)
        for page in range(0, len(hoard), 4096):
            hoard[page] = 1
        os.write(write, b"x")
        time.sleep(60)
full = 0
while full < 8:
    full += len(os.read(read, 12))
    print("full", full, flush=True)
time.sleep(0.5)
alive = 12 - sum(os.waitpid(-1, os.WNOHANG)[0] != 0 for _ in range(12))
if alive >= 8:
    print("PWNED 2 GiB in children")
