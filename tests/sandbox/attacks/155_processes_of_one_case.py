# CLASS: limits   SEVERITY: must   TESTS: 4   TIMEOUT: 15
# EXPECT: one test of a program has the process limit of a run, not that of all tests together.
import os
import sys
import time

if sys.stdin.readline().strip() not in ("", "0"):
    sys.exit()  # only the first test takes what it can

alive = 0
try:
    while alive < 400:
        if os.fork() == 0:
            time.sleep(60)
        alive += 1
except OSError:
    pass
time.sleep(0.5)
print("PWNED" if alive > 160 else "alive", alive, flush=True)
