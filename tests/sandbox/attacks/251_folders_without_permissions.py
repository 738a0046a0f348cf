# CLASS: disk   SEVERITY: must   TIMEOUT: 8
# EXPECT: what lies in folders that nobody may list or enter counts: modes 0, 0100, 0200, 0400, set before or after.
import os
import time

held, block = 0, bytes(4 << 20)
try:
    for n in range(30):
        mode = (0, 0o100, 0o200, 0o400, 0o311)[n % 5]
        os.makedirs(f"d{n}/e")
        folder = os.open(f"d{n}/e", os.O_RDONLY)
        if n % 2:
            os.chmod(f"d{n}", mode)
        for part in range(4):
            fd = os.open(f"f{part}", os.O_CREAT | os.O_WRONLY, 0, dir_fd=folder)
            held += os.write(fd, block)
            os.close(fd)
        os.chmod(folder, mode)
        os.chmod(f"d{n}", mode)
        os.close(folder)
        time.sleep(0.05)
except OSError as error:
    print(error)

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
