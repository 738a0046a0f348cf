# CLASS: cpu   SEVERITY: must   AFTER: 1.5
# EXPECT: children that spin in sessions of their own end with the run.
import os

for _ in range(6):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            while True:
                pass
        os._exit(0)
print("main done", flush=True)
