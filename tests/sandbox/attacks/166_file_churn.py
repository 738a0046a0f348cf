# CLASS: starvation   SEVERITY: must   COPIES: 2
# EXPECT: files that are made, renamed and removed all the time delay no other run.
import os

for _ in range(16):
    try:
        if os.fork() == 0:
            break
    except OSError:
        break
own = f"{os.getpid()}"
while True:
    try:
        os.makedirs(f"{own}/a/b", exist_ok=True)
        with open(f"{own}/a/b/f", "wb") as file:
            file.write(bytes(4096))
        os.rename(f"{own}/a/b/f", f"{own}/f")
        os.unlink(f"{own}/f")
        os.removedirs(f"{own}/a/b")
    except OSError:
        pass
