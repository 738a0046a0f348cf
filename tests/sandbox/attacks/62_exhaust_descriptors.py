# CLASS: resources   SEVERITY: must
# EXPECT: descriptors are bounded, also if they are sent in messages or used for full pipes.
import array
import os
import socket

held = []
try:
    while len(held) < 100_000:
        held.extend(os.pipe())
except OSError as error:
    print(len(held), error)
for fd in held[:8]:
    os.close(fd)
sent = 0
try:
    while sent < 200_000:
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ends = array.array("i", [one.fileno()] * 200)
        while sent < 200_000:
            one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)], socket.MSG_DONTWAIT)
            sent += 200
except OSError as error:
    print(sent, error)
if len(held) >= 100_000 or sent >= 200_000:
    print("PWNED descriptors without end")
