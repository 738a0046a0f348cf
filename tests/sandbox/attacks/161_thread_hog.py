# CLASS: starvation   SEVERITY: must   COPIES: 4
# EXPECT: a program that starts all threads that it can does not keep others from starting theirs.
import threading
import time

started = 0
try:
    while started < 2000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
print("threads", started, flush=True)
time.sleep(2)
