# CLASS: disk   SEVERITY: must   TIMEOUT: 8
# EXPECT: files count that pass from process to process, each of which has them open for a moment only.
import os
import socket
import time

held, block = 0, bytes(4 << 20)
ends = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]


def pass_on(source, sink):
    while True:
        data, fds, *_ = socket.recv_fds(source, 16, 8)
        for fd in fds:
            socket.send_fds(sink, [data], [fd])
            os.close(fd)


for first, second in ((0, 1), (1, 0)):
    if not os.fork():
        pass_on(ends[first][1], ends[second][0])
try:
    for n in range(80):
        fd = os.open(f"f{n}", os.O_CREAT | os.O_WRONLY)
        os.unlink(f"f{n}")
        held += os.write(fd, block)
        socket.send_fds(ends[n % 2][0], [b"x"], [fd])
        os.close(fd)
        time.sleep(0.03)
except OSError as error:
    print(error)

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
