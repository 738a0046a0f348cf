# CLASS: memory   SEVERITY: must   TIMEOUT: 6
# EXPECT: memfd files whose only reference lies unread in a socket count as memory.
import os
import socket
import time

block, held = bytes(8 << 20), 0
pairs = []
try:
    while held < 2600 << 20:
        fd = os.memfd_create("m")
        for _ in range(6):
            os.write(fd, block)
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        socket.send_fds(mine, [b"x"], [fd])
        os.close(fd)
        held += 6 * len(block)
        socket_of_all = pairs[-1] if pairs else None
        if socket_of_all:  # nested: the socket with the file lies in another one
            socket.send_fds(mine, [b"y"], [socket_of_all[1].fileno(), socket_of_all[0].fileno()])
            for one in socket_of_all:
                one.close()
        pairs = [(mine, theirs)]
except OSError as error:
    print(error)

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
