# CLASS: limits   SEVERITY: must   TIMEOUT: 20
# EXPECT: the buffers of sockets and pipes count as memory of the run, or are few.
import os
import socket
import time

block = bytes(64 << 10)
read, write = os.pipe()


def fill(send):
    held = 0
    try:
        while True:
            held += send(block)
    except OSError:
        return held


for _ in range(40):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        pairs, held = [], 0
        try:
            while len(pairs) < 110:
                pair = socket.socketpair()
                pairs.append(pair)
                for one in pair:
                    one.setblocking(False)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                    held += fill(one.send)
        except OSError:
            pass
        os.write(write, f"{held}\n".encode())
        time.sleep(60)
os.set_blocking(read, False)
text, end = b"", time.monotonic() + 15
while time.monotonic() < end and sum(map(int, text.split())) < 1600 << 20:
    time.sleep(0.1)
    try:
        text += os.read(read, 4096)
    except BlockingIOError:
        pass
held = sum(map(int, text.split()))
print("held", held >> 20, "MiB", flush=True)
time.sleep(0.3)
if held >= 1600 << 20:
    print("PWNED", held >> 20, "MiB in sockets", flush=True)
