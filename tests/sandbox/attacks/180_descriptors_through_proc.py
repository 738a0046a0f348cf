# CLASS: proc   SEVERITY: must
# EXPECT: /proc leads to no file, descriptor or memory of another process.
import os

names = ("environ", "cmdline", "maps", "mem", "stack", "syscall", "io", "auxv", "exe", "cwd/important.txt", "root/tmp/v/home/.netrc")
for pid in ["1", str(os.getppid()), *filter(str.isdigit, os.listdir("/proc")), *map(str, range(2, 200))]:
    if pid in (str(os.getpid()), "0"):
        continue
    folders = [f"/proc/{pid}", f"/proc/{pid}/task/{pid}"]
    for path in [f"{folder}/{name}" for folder in folders for name in names]:
        try:
            text = open(path, "rb").read(3000)
        except OSError:
            continue
        if b"CANARY" in text or b"envelope" in text:
            print("PWNED", path, text[:100])
    for folder in (f"/proc/{pid}/fd", f"/proc/{pid}/map_files", f"/proc/{pid}/ns"):
        try:
            found = os.listdir(folder)
        except OSError:
            continue
        for name in found:
            for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
                try:
                    fd = os.open(f"{folder}/{name}", flags | os.O_NONBLOCK)
                    print("opened", folder, name, os.read(fd, 100) if flags != os.O_WRONLY else os.write(fd, b"PWNED\n"))
                except OSError:
                    pass
