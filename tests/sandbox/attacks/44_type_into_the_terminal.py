# CLASS: isolation   SEVERITY: must
# EXPECT: the controlling terminal cannot be opened, typed into, written to or reconfigured.
import fcntl
import os
import termios

ends = [0, 1, 2]
for path in ("/dev/tty", "/dev/pts/0", "/dev/pts/1", "/dev/console", "/proc/1/fd/0", "/proc/self/fd/0"):
    try:
        ends.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        pass
for fd in ends:
    for act in (
        lambda fd=fd: [fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte])) for byte in b"touch mine\n"],
        lambda fd=fd: fcntl.ioctl(fd, termios.TIOCSCTTY, 1),
        lambda fd=fd: fcntl.ioctl(fd, 0x541C, b"\3"),
        lambda fd=fd: os.tcsetpgrp(fd, os.getpgrp()),
        lambda fd=fd: os.isatty(fd) and os.write(fd, b"\033]0;mine\007"),
        lambda fd=fd: fcntl.ioctl(fd, termios.TIOCNOTTY),
    ):
        try:
            act()
        except OSError:
            pass
