# CLASS: memory   SEVERITY: must
# EXPECT: shared anonymous memory and files in /dev/shm and /tmp count against the limits.
import mmap

held = 0
maps = []
try:
    while held < 2 << 30:
        shared = mmap.mmap(-1, 64 << 20)
        for page in range(0, 64 << 20, 4096):
            shared[page] = 1
        maps.append(shared)
        held += 64 << 20
except (OSError, ValueError, MemoryError) as error:
    print("shared", held >> 20, error)
maps.clear()
for folder in ("/dev/shm", "/tmp", ".", "/run", "/var/tmp"):
    try:
        for index in range(100):
            with open(f"{folder}/page{index}", "wb") as file:
                for _ in range(8):
                    held += file.write(bytes(4 << 20))
    except OSError as error:
        print(folder, error)
print("held", held >> 20, "MiB")
if held >= 2 << 30:
    print("PWNED 2 GiB of shared pages")
