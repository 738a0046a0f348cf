# CLASS: signals   SEVERITY: must   TIMEOUT: 2
# EXPECT: a run that stops itself and its group is killed at its time limit.
import os
import signal

print("start", flush=True)
if os.fork() == 0:
    os.kill(os.getppid(), signal.SIGSTOP)
for victim in (0, os.getpid()):
    os.kill(victim, signal.SIGSTOP)
while True:
    signal.pause()
