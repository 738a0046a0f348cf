# CLASS: lookups   SEVERITY: should   TIMEOUT: 5
# EXPECT: no list of locks, keys, IPC objects, timers or addresses of the kernel that tells about other processes.
import os
import re

mine = {os.getpid(), os.getppid()}
for name in ("locks", "keys", "key-users", "timer_list", "sched_debug", "kallsyms", "kcore", "kpagecount", "kmsg", "vmallocinfo",
             "sysvipc/shm", "sysvipc/sem", "sysvipc/msg", "slabinfo", "pagetypeinfo"):
    try:
        with open(f"/proc/{name}", "rb") as file:
            text = file.read(200_000).decode(errors="replace")
    except OSError as error:
        print(name, error)
        continue
    lines = text.splitlines()
    bad = name in ("kcore", "kmsg", "timer_list", "sched_debug", "kpagecount")
    bad = bad or (name == "kallsyms" and re.search(r"^0*[1-9a-f][0-9a-f]{8,} ", text, re.M))
    bad = bad or (name in ("locks", "keys") and len(lines) > 0) or (name.startswith("sysvipc") and len(lines) > 1)
    print("PWNED" if bad else "empty", name, len(lines))
