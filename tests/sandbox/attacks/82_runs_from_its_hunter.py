# CLASS: processes   SEVERITY: must   AFTER: 1.5
# EXPECT: a chain of forks, in which each process exits at once and its child continues, is killed.
import os

print("start", flush=True)
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        while True:
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                pass
os._exit(0)
