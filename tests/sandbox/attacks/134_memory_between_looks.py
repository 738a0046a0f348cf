# CLASS: limits   SEVERITY: must   TIMEOUT: 20
# EXPECT: memory counts although its owners are replaced so fast that no list of processes has them all.
import mmap
import os
import time

shared = mmap.mmap(-1, 4096)
for slot in range(24):
    if os.fork() == 0:
        hoard = bytearray(100 << 20)
        while True:
            hoard[::4096] = bytes([slot]) * len(hoard[::4096])
            shared[slot] = 1
            if os.fork():
                os._exit(0)
end = time.monotonic() + 15
while time.monotonic() < end and sum(shared[:24]) < 20:
    time.sleep(0.02)
time.sleep(0.5)
if sum(shared[:24]) >= 20:
    print("PWNED", sum(shared[:24]) * 100, "MiB in a relay of processes", flush=True)
