# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: alarm_timer_usr1_interrupted_-15
import os
import signal
import subprocess
import time

seen = []


def late(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, late)
signal.alarm(1)
try:
    while True:
        pass
except TimeoutError:
    seen.append("alarm")
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    time.sleep(10)
except TimeoutError:
    seen.append("timer")
signal.signal(signal.SIGUSR1, lambda *_: seen.append("usr1"))
os.kill(os.getpid(), signal.SIGUSR1)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
assert signal.sigtimedwait({signal.SIGUSR2}, 5).si_signo == signal.SIGUSR2
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    seen.append("interrupted")
child = subprocess.Popen(["sleep", "60"])
child.terminate()
print(*seen, child.wait(10))
