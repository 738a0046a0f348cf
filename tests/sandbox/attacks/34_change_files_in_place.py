# CLASS: files   SEVERITY: must
# EXPECT: files outside cannot be linked, renamed, chmodded, truncated, touched or given attributes.
import os

HOMES = (os.path.expanduser("~"), "/tmp/v/home", "/proc/1/root/tmp/v/home", "/proc/self/root/tmp/v/home", "../v/home")
for home in HOMES:
    target = os.path.join(home, "important.txt")
    for change in (
        lambda: os.link(target, "mine"),
        lambda: os.chmod(target, 0o777),
        lambda: os.utime(target, (1, 1)),
        lambda: os.truncate(target, 0),
        lambda: os.setxattr(target, "user.mine", b"1"),
        lambda: os.rename(target, target + ".gone"),
        lambda: open(os.path.join(home, ".bashrc"), "a").write("echo mine"),
        lambda: os.symlink("/etc/passwd", os.path.join(home, "link")),
        lambda: os.mkfifo(os.path.join(home, "fifo")),
    ):
        try:
            change()
        except OSError:
            pass
