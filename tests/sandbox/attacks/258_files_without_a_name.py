# CLASS: disk   SEVERITY: must   TIMEOUT: 7
# EXPECT: files made without a name (O_TMPFILE) count in every folder that can be written, as do those sent in sockets.
import os
import socket
import tempfile
import time

held, block = 0, bytes(4 << 20)
places = {".", tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", "/run", os.path.expanduser("~"), "/dev/mqueue"}
O_TMPFILE = getattr(os, "O_TMPFILE", 0o20200000)
box, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
for place in sorted(places):
    try:
        for n in range(24):
            fd = os.open(place, O_TMPFILE | os.O_RDWR, 0)
            held += os.write(fd, block)
            socket.send_fds(box, [b"x"], [fd])
            os.close(fd)
            time.sleep(0.01)
        print(place, held >> 20)
    except OSError as error:
        print(place, error)

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
