# CLASS: resources   SEVERITY: must
# EXPECT: prlimit and setpriority cannot change processes outside the sandbox.
import os
import resource

print("start", flush=True)
for pid in {os.getppid(), *range(2, 300)} - {os.getpid(), 0}:
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        try:
            resource.prlimit(pid, limit, (7, 7))
        except (OSError, ValueError):
            pass
    try:
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    except OSError:
        pass
