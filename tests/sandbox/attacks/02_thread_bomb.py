# CLASS: processes   SEVERITY: must
# EXPECT: threads are bounded like processes; the host can still start its own.
import threading
import time

started = 0
try:
    while started < 5000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        started += 1
except (RuntimeError, MemoryError):
    pass
print("threads", started)
if started > 1000:
    print("PWNED thousands of threads")
