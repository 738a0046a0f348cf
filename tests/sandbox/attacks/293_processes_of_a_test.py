# CLASS: limits   SEVERITY: must   TIMEOUT: 4   TESTS: 3
# EXPECT: one test of a program has the processes of a run, 64, and not those of all tests together.
import os
import threading
import time

started = 0
for n in range(400):
    try:
        if n % 2:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        elif not os.fork():
            os.setsid()
            time.sleep(60)
        started += 1
    except (OSError, RuntimeError):
        break
print("PWNED" if started > 80 else "started", started, flush=True)
