# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: rang_and_went_on
import signal


class Rang(Exception):
    pass


def ring(*_):
    raise Rang


signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    while True:
        pass
except Rang:
    print("rang and went on")
