# CLASS: starvation   SEVERITY: must   COPIES: 4
# EXPECT: a program that starts all processes that it can does not keep others from starting theirs.
import os
import time

alive = 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        if os.fork() == 0:
            time.sleep(60)
        alive += 1
    except OSError:
        time.sleep(0.001)
print("processes", alive, flush=True)
