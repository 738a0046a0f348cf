# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: [0,_1,_2,_3]_held_400
import fcntl
import mmap
import os

shared = mmap.mmap(-1, 4096)
codes = []
for number in range(4):
    pid = os.fork()
    if pid == 0:
        for _ in range(100):
            with open("counter", "a+") as file:
                fcntl.lockf(file, fcntl.LOCK_EX)
                file.seek(0)
                count = int(file.read() or 0)
                file.truncate(0)
                file.write(str(count + 1))
                file.flush()
                fcntl.lockf(file, fcntl.LOCK_UN)
        shared[number] = 1
        os._exit(number)
    codes.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in codes]
assert shared[:4] == b"\1\1\1\1"
with open("lock", "w") as mine, open("lock", "w") as other:
    fcntl.flock(mine, fcntl.LOCK_EX)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(codes, "held", open("counter").read())
