# CLASS: disk   SEVERITY: must   TIMEOUT: 8
# EXPECT: what is stored beside the contents counts: long targets of links, long names, extended attributes.
import itertools
import os
import time

held, start = 0, time.monotonic()
target = "t" * 4000
open("first", "w").close()
for n in itertools.count():
    if time.monotonic() - start > 5 or held > 400 << 20:
        break
    before = held
    try:
        os.symlink(target, f"s{n}" + "n" * 200)
        held += 4096
    except OSError as error:
        print(error)
    try:
        fd = os.open(f"x{n}", os.O_CREAT | os.O_WRONLY)
        os.setxattr(fd, "user.x", bytes(3800))
        held += 4096
        os.close(fd)
    except OSError as error:
        if n == 0:
            print(error)
    if held == before:
        break

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
