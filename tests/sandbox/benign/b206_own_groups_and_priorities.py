# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: children_3_ended_by_signal_15
import os
import resource
import signal
import subprocess
import sys

children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) for _ in range(3)]
os.sched_setaffinity(0, os.sched_getaffinity(0))
for child in children:
    os.killpg(child.pid, signal.SIGTERM)
ends = {child.wait() for child in children}
resource.getrlimit(resource.RLIMIT_NOFILE)
print("children", len(children), "ended by signal", -ends.pop())
