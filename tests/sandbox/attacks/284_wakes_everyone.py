# CLASS: starvation   SEVERITY: should   TIMEOUT: 4   COPIES: 4
# EXPECT: a storm of barriers, yields and wake-ups between many processes leaves others their share.
import ctypes
import os

libc = ctypes.CDLL(None)
pipes = [os.pipe() for _ in range(24)]
for n in range(24):
    if not os.fork():
        source, sink = pipes[n][0], pipes[(n + 1) % 24][1]
        os.write(sink, b"x")
        while True:
            libc.syscall(324, 1, 0)  # membarrier of all processors
            libc.sched_yield()
            os.write(sink, os.read(source, 16))
os.wait()
