# CLASS: priority   SEVERITY: must
# EXPECT: no process outside the run gets another priority, which an unprivileged user could not take back.
import ctypes
import os
import platform

libc = ctypes.CDLL(None, use_errno=True)
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}[platform.machine()]
groups = [0, os.getppid(), *range(1, 200)]
for kind, targets in ((os.PRIO_USER, [0, os.getuid(), *range(61_000, 61_010)]), (os.PRIO_PGRP, groups), (os.PRIO_PROCESS, groups)):
    for who in targets:
        try:
            os.setpriority(kind, who, 19)
        except OSError:
            pass
for kind in (1, 2, 3):  # process, process group, user
    for who in groups:
        libc.syscall(IOPRIO_SET, kind, who, 3 << 13)
print("done")
