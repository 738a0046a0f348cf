# CLASS: memory   SEVERITY: must
# EXPECT: memory outside of address spaces is bounded as well: memfd files, pipes and sockets.
import os
import socket

held = 0
block = bytes(1 << 20)
files = []
try:
    while held < 3 << 30:
        fd = os.memfd_create(f"m{len(files)}")
        files.append(fd)
        for _ in range(48):
            os.write(fd, block)
            held += len(block)
except OSError as error:
    print("memfd", held >> 20, error)
pairs = []
try:
    while len(pairs) < 400:
        one, other = socket.socketpair()
        one.setblocking(False)
        pairs.append((one, other))
        try:
            while True:
                held += one.send(block)
        except BlockingIOError:
            pass
except OSError as error:
    print("sockets", len(pairs), error)
print("held", held >> 20, "MiB", flush=True)
if held > 1536 << 20:
    print("PWNED memory beyond the limit")
