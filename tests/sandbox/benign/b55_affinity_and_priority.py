# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: affinity_works
import os
import platform
import time

cores = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(cores)})
assert os.sched_getaffinity(0) == {min(cores)} and os.cpu_count() >= 1
before = os.nice(0)
os.nice(1)
assert os.nice(0) >= min(19, before + 1) and os.getpriority(os.PRIO_PROCESS, 0) == os.nice(0)
os.sched_yield()
assert platform.system() and platform.python_version() and os.getloadavg() and time.clock_gettime(time.CLOCK_MONOTONIC)
assert (
    time.process_time() >= 0 and time.thread_time() >= 0 and os.times().user >= 0 and os.getpgrp() and os.getppid() >= 0
)
print("affinity works")
