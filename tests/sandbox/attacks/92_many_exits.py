# CLASS: grader   SEVERITY: must   GRADE: 42   FUNC: solve
# EXPECT: a right answer followed by a crash, a signal or a nonzero status fails the test.
import os
import signal


def solve(*_):
    print(42)
    os.kill(os.getpid(), signal.SIGKILL)
    return 42


print(42, flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
os._exit(7)
