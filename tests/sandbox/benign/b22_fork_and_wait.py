# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: child_said_hi_and_left_with_3
import os

read, write = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(write, b"hi")
    os._exit(3)
os.close(write)
said = os.read(read, 10).decode()
print("child said", said, "and left with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
