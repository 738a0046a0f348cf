# CLASS: memory   SEVERITY: must   TIMEOUT: 8
# EXPECT: what waits in packet sockets of forty processes counts as memory of the run, though no process has it mapped.
import mmap
import os
import socket
import time

counts = mmap.mmap(-1, 4096)
children = []
packet = bytes(100_000)
LIMIT = 2600 << 20
for n in range(40):
    try:
        pid = os.fork()
    except OSError as error:
        print(error)
        break
    children.append(pid)
    if not pid:
        pairs, sent = [], 0
        try:
            while len(pairs) < 480 and sent < LIMIT // 40:
                pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                pairs.append(pair)
                for one in pair:
                    one.setblocking(False)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                    try:
                        while True:
                            sent += one.send(packet)
                    except BlockingIOError:
                        counts[8 * n : 8 * n + 8] = sent.to_bytes(8, "little")
        except OSError:
            pass
        time.sleep(60)
end = time.monotonic() + 5
held = 0
while held < LIMIT - (200 << 20) and time.monotonic() < end:
    time.sleep(0.05)
    held = sum(int.from_bytes(counts[8 * n : 8 * n + 8], "little") for n in range(40))

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
