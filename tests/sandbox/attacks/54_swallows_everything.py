# CLASS: python-level   SEVERITY: must   TIMEOUT: 2
# EXPECT: killed at the limit although it catches every exception and delays every exit.
import atexit
import sys
import time

atexit.register(time.sleep, 600)
sys.excepthook = lambda *_: time.sleep(600)


class Clings:
    def __del__(self):
        time.sleep(600)


clings = Clings()
print("start", flush=True)
while True:
    try:
        time.sleep(600)
    except BaseException:
        continue
