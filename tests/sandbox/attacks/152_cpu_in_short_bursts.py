# CLASS: limits   SEVERITY: must   CPU: 2   TIMEOUT: 25
# EXPECT: the CPU time of thousands of processes that live a few milliseconds counts.
import mmap
import os
import signal
import time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
spent = mmap.mmap(-1, 4096)
for slot in range(2):
    if os.fork() == 0:
        while True:
            start = time.process_time()
            while time.process_time() - start < 0.004:
                pass
            count = int.from_bytes(spent[8 * slot : 8 * slot + 8], "little") + 1
            spent[8 * slot : 8 * slot + 8] = count.to_bytes(8, "little")
            if os.fork():
                os._exit(0)
total = 0.0
while total < 5:
    time.sleep(0.1)
    total = 0.004 * sum(int.from_bytes(spent[at : at + 8], "little") for at in (0, 8))
print("PWNED", total, "s of CPU", flush=True)
