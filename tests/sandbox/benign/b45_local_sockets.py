# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: ping_pong_ready
import os
import select
import selectors
import socket

mine, theirs = socket.socketpair()
if os.fork() == 0:
    theirs.sendall(theirs.recv(10).replace(b"i", b"o"))
    os._exit(0)
mine.sendall(b"ping")
answer = mine.recv(10).decode()
os.wait()
selector = selectors.DefaultSelector()
read, write = os.pipe()
selector.register(read, selectors.EVENT_READ)
os.write(write, b"x")
assert select.select([read], [], [], 1)[0] == [read] and len(selector.select(1)) == 1
poll = select.epoll()
poll.register(read, select.EPOLLIN)
print("ping", answer, "ready" if poll.poll(1) else "")
