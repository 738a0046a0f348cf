# CLASS: limits   SEVERITY: must   TIMEOUT: 15
# EXPECT: removed files count although the process that holds them does not let others look into it.
import ctypes
import os
import time

PR_SET_DUMPABLE = 4
print(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
block = bytes(1 << 20)
held = []
for number in range(100):
    held.append(open("f", "wb"))
    for _ in range(4):
        held[-1].write(block)
    held[-1].flush()
    os.unlink("f")
    time.sleep(0.02)
time.sleep(0.5)
print("PWNED 400 MiB in removed files", flush=True)
