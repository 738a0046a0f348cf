# CLASS: starvation   SEVERITY: must   TIMEOUT: 4   COPIES: 4
# EXPECT: threads that compute without the interpreter's lock, and processes of such threads, leave others their share.
import hashlib
import os
import threading

block = bytes(1 << 22)


def spin():
    while True:
        hashlib.sha256(block)


for _ in range(7):
    if not os.fork():
        break
for _ in range(7):
    threading.Thread(target=spin).start()
