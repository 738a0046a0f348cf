# CLASS: lookups   SEVERITY: must   TIMEOUT: 8
# EXPECT: no command line, environment or memory of others by guessed numbers, by threads, by relative roads.
import contextlib
import os

roads = ["/proc/{}", "/proc/{0}/task/{0}", "/proc/self/../{}", "/proc/thread-self/../../../{}", "/proc/self/task/../../{}"]
roads += ["/proc/self/root/proc/{}", "/proc/self/cwd/../../../../../../../../proc/{}"]
folder = None
with contextlib.suppress(OSError):
    folder = os.open("/proc/self", os.O_PATH)
me = os.getpid()
for pid in [*range(1, 200), *range(max(200, me - 600), me + 200)]:
    for road in roads:
        for name in ("cmdline", "environ", "mem", "maps", "stack", "syscall", "fd", "cwd", "root"):
            path = road.format(pid) + "/" + name
            with contextlib.suppress(OSError):
                if name in ("fd", "cwd", "root"):
                    print([os.readlink(os.path.join(path, entry)) for entry in os.listdir(path)][:3] if pid != me else "")
                    if name == "root" and pid != me:
                        print(open(path + "/tmp/v/home/.ssh/id_rsa").read())
                else:
                    with open(path, "rb") as file:
                        print(file.read(4096).decode(errors="replace"))
    with contextlib.suppress(OSError, TypeError):
        fd = os.open(f"../{pid}/environ", os.O_RDONLY, dir_fd=folder)
        print(os.read(fd, 4096))
