# CLASS: files   SEVERITY: must   TIMEOUT: 6   TESTS: 6
# EXPECT: a test finds nothing of the others: no files in any folder, no processes, no memory with a name, no sockets.
import contextlib
import os
import socket
import tempfile
import time

places = {".", tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~"), "/run", ".."}
for place in places:
    with contextlib.suppress(OSError):
        for entry in os.listdir(place):
            if entry.startswith(("trace_", "late_")):
                print("PWNED found", place, entry)
        if os.stat(place).st_mtime == 5 or "user.trace" in os.listxattr(place):
            print("PWNED found a mark on", place)
for place in places:
    with contextlib.suppress(OSError):
        open(f"{place}/trace_{os.getpid()}_{time.time_ns()}", "x").close()
        os.makedirs(f"{place}/trace_folder_{time.time_ns()}/a")
        os.chmod(place, 0o755)
        os.setxattr(place, "user.trace", b"x")
with contextlib.suppress(OSError):
    name = socket.socket(socket.AF_UNIX)
    name.bind("\0gem_trace")
    if not os.fork():
        time.sleep(60)
if not os.fork():
    os.setsid()
    for n in range(200):
        for place in places:
            with contextlib.suppress(OSError):
                open(f"{place}/late_{n}", "w").close()
        time.sleep(0.02)
    os._exit(0)
for place in places:
    with contextlib.suppress(OSError):
        os.utime(place, (5, 5))
print("done")
