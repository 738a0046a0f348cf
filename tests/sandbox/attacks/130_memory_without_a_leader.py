# CLASS: limits   SEVERITY: must   TIMEOUT: 20
# EXPECT: the memory of a process counts although its main thread has exited.
import ctypes
import os
import platform
import threading
import time

EXIT = {"x86_64": 60, "aarch64": 93}[platform.machine()]
read, write = os.pipe()


def hoard():
    block = bytearray(320 << 20)
    block[::4096] = b"x" * len(block[::4096])
    os.write(write, b"x")
    time.sleep(60)


for _ in range(6):
    if os.fork() == 0:
        threading.Thread(target=hoard).start()
        ctypes.CDLL(None).syscall(EXIT, 0)
full = 0
while full < 5:
    full += len(os.read(read, 9))
time.sleep(0.5)
print("PWNED", full * 320, "MiB in processes without a main thread", flush=True)
