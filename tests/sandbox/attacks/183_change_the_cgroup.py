# CLASS: limits   SEVERITY: must
# EXPECT: a program can neither leave its cgroup nor change its limits, nor freeze those of others.
import glob
import os

roots = {"/sys/fs/cgroup", *(f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))}
try:
    roots |= {line.split()[4] for line in open("/proc/self/mountinfo") if " cgroup" in line}
except OSError:
    pass
changes = {"cgroup.procs": "0", "tasks": "0", "memory.limit_in_bytes": "-1", "memory.max": "max", "pids.max": "max", "cpu.shares": "262144"}
changes |= {"freezer.state": "FROZEN", "cgroup.freeze": "1", "cgroup.kill": "1", "cpu.weight": "10000"}
for root in sorted(roots):
    for name, text in changes.items():
        for path in [f"{root}/{name}", *glob.glob(f"{glob.escape(root)}/*/{name}"), *glob.glob(f"{glob.escape(root)}/*/*/{name}")]:
            try:
                with open(path, "w") as file:
                    file.write(text)
                print("PWNED", path, flush=True)
            except OSError:
                pass
    for folder in (f"{root}/gem-new", f"{root}/memory/gem-new", f"{root}/pids/gem-new"):
        if not root.startswith("/proc/self/fd"):
            try:
                os.mkdir(folder)
                print("PWNED", folder)
            except OSError:
                pass
print("done")
