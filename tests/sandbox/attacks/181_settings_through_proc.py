# CLASS: proc   SEVERITY: must
# EXPECT: /proc and /sys change no setting of the machine, and are no way around the rules for files.
import os

changes = {
    "/proc/sys/kernel/core_pattern": "|/bin/true",
    "/proc/sys/kernel/hostname": "gem",
    "/proc/sys/vm/drop_caches": "1",
    "/proc/sys/kernel/ns_last_pid": "100",
    "/proc/sys/fs/pipe-user-pages-soft": "1",
    "/proc/sysrq-trigger": "h",
    "/proc/self/oom_score_adj": "-1000",
    "/proc/self/uid_map": "0 0 1",
    "/proc/self/coredump_filter": "0x7f",
    f"/proc/{os.getppid()}/oom_score_adj": "1000",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always",
}
allowed = ("coredump_filter",)
for path, text in changes.items():
    try:
        with open(path, "w") as file:
            file.write(text)
        if not path.endswith(allowed):
            print("PWNED", path)
    except OSError as error:
        print(path, error)
fd = os.open("/", os.O_PATH)
for way in ("/proc/self/root", "/proc/thread-self/root", f"/proc/self/fd/{fd}", "/proc/self/cwd/../../../../..", "/proc/1/root", "/dev/fd/0/../../.."):
    for name in ("tmp/v/home/.ssh/id_rsa", "tmp/v/work/tests.json", "tmp/v/home/.netrc"):
        try:
            print(open(f"{way}/{name}").read())
        except OSError:
            pass
