# CLASS: lookups   SEVERITY: must
# EXPECT: nothing that was opened read-only, or is mapped or executed, can be opened for writing through /proc.
import os
import stat

names = [f"/proc/self/fd/{fd}" for fd in range(256)] + ["/proc/self/exe", "/proc/thread-self/exe"]
try:
    names += [f"/proc/self/map_files/{name}" for name in os.listdir("/proc/self/map_files")]
except OSError as error:
    print(error)
here = os.path.realpath(".")
for name in names:
    try:
        target = os.readlink(name)
        fd = os.open(name, os.O_WRONLY | os.O_APPEND)
    except OSError:
        continue
    if stat.S_ISREG(os.fstat(fd).st_mode) and not target.startswith((here, "/memfd:", "/dev/shm")):
        print("PWNED writes", target)
    os.close(fd)
for name in ("/proc/self/coredump_filter", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
             "/proc/sys/vm/drop_caches", "/proc/sys/kernel/randomize_va_space", "/proc/sys/user/max_user_namespaces"):
    try:
        with open(name, "w") as file:
            file.write("0")
        if name != "/proc/self/coredump_filter":
            print("PWNED wrote", name)
    except OSError as error:
        print(error)
