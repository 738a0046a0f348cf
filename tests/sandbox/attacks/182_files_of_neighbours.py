# CLASS: neighbours   SEVERITY: must
# EXPECT: no file, variable or source of another run can be read, through no path and no process.
import glob
import os
import time

end = time.monotonic() + 1.5
while time.monotonic() < end:
    patterns = ("/tmp/**/*", "/dev/shm/*", "/var/tmp/**/*", "../**/*", "../../**/*", "/proc/[0-9]*/cwd/*", "/proc/[0-9]*/fd/*")
    for path in {path for pattern in patterns for path in glob.glob(pattern, recursive=True)} - {__file__}:
        try:
            with open(path, "rb") as file:
                os.set_blocking(file.fileno(), False)
                text = file.read(100_000) or b""
        except OSError:
            continue
        for word in (b"CANARY_" + b"SESSION", b"CANARY_" + b"GRADED"):
            if word in text:
                print("PWNED", path, text[:80])
    time.sleep(0.05)
