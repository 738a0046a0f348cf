# CLASS: time   SEVERITY: must   TIMEOUT: 2
# EXPECT: killed at the limit although every signal is blocked, ignored or handled.
import signal
import time

for number in signal.valid_signals():
    try:
        signal.signal(number, lambda *_: None)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print("start", flush=True)
while True:
    time.sleep(60)
