# CLASS: output   SEVERITY: must
# EXPECT: standard error is capped like standard output, also if children write it.
import os

for _ in range(3):
    os.fork()
line = b"E" * 65536
while True:
    os.write(2, line)
