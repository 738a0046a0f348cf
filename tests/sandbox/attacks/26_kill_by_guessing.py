# CLASS: signals   SEVERITY: must
# EXPECT: no process of the host can be stopped or ended by trying every id, process groups included.
import os
import signal

own = {os.getpid(), 1, 0}
hit = 0
for pid in range(2, 4000):
    if pid in own:
        continue
    for victim in (pid, -pid):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(victim, number)
                hit += 1
            except OSError:
                pass
print("hit", hit)
