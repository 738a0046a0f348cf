# CLASS: resources   SEVERITY: should
# EXPECT: no real-time or raised priority, and no immunity from the kernel's out-of-memory killer.
import os

attempts = {
    "real-time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
    "raised priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, -10),
    "oom immunity": lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1000"),
    "priority of the parent": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid() or -1, 19),
}
for what, attempt in attempts.items():
    try:
        attempt()
        print("PWNED", what)
    except OSError as error:
        print(what, error)
