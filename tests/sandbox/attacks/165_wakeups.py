# CLASS: starvation   SEVERITY: must   COPIES: 2
# EXPECT: processes that wake each other all the time, which a scheduler favours, delay no other run.
import os

for _ in range(28):
    first, second = os.pipe(), os.pipe()
    try:
        if os.fork() == 0:
            while True:
                os.write(first[1], b"x")
                os.read(second[0], 1)
        if os.fork() == 0:
            while True:
                os.read(first[0], 1)
                os.write(second[1], b"x")
    except OSError:
        break
while True:
    os.sched_yield()
