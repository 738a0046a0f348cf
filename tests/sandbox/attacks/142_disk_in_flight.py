# CLASS: limits   SEVERITY: must   TIMEOUT: 15
# EXPECT: removed files count although no process holds them, because they are in the buffer of a socket.
import array
import os
import socket
import time

block = bytes(1 << 20)
carriers = [socket.socketpair() for _ in range(10)]
for number in range(100):
    with open("f", "wb") as file:
        for _ in range(4):
            file.write(block)
        os.unlink("f")
        rights = array.array("i", [file.fileno()])
        carriers[number % 10][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    time.sleep(0.02)
time.sleep(0.5)
print("PWNED 400 MiB in flight", flush=True)
