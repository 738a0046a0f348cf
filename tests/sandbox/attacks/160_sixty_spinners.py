# CLASS: starvation   SEVERITY: must   COPIES: 4
# EXPECT: programs with many spinning processes do not make an honest one fail by timeout.
import os

for _ in range(60):
    try:
        if os.fork() == 0:
            break
    except OSError:
        break
while True:
    pass
