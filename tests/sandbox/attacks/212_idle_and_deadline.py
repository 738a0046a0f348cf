# CLASS: priority   SEVERITY: should   TIMEOUT: 5
# EXPECT: no policy that outruns the neighbours: real-time, round robin, deadline, a negative nice value, a raised limit.
import os
import resource

libc_policies = {"fifo": 1, "round robin": 2, "deadline": 6}
for name, policy in libc_policies.items():
    for flags in (0, 0x40000000):
        try:
            os.sched_setscheduler(0, policy | flags, os.sched_param(1 if policy < 6 else 0))
            print("PWNED policy", name)
        except OSError as error:
            print(name, error)
for limit in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):
    try:
        resource.setrlimit(limit, (40, 40))
        print("PWNED raised limit", limit)
    except (OSError, ValueError) as error:
        print(limit, error)
for attempt in (lambda: os.nice(-1), lambda: os.setpriority(os.PRIO_PGRP, 0, -1), lambda: os.setpriority(os.PRIO_USER, 0, -1)):
    try:
        attempt()
        print("PWNED negative nice value")
    except OSError as error:
        print(error)
try:
    with open("/proc/self/autogroup", "w") as file:
        file.write("-20")
    print("PWNED autogroup")
except OSError as error:
    print(error)
