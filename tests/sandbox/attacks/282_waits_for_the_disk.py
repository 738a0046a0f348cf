# CLASS: starvation   SEVERITY: should   TIMEOUT: 4   COPIES: 4
# EXPECT: sync() of the whole system, called all the time by many, leaves others their share.
import os

for _ in range(20):
    if not os.fork():
        break
data = bytes(1 << 16)
with open(f"f{os.getpid()}", "wb") as file:
    while True:
        file.seek(0)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        os.sync()
