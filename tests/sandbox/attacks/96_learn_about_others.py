# CLASS: proc   SEVERITY: must
# EXPECT: no process of the host is visible in any file of /proc.
import os

for pid in range(1, 400):
    for name in ("cmdline", "environ", "maps", "stack", "mountinfo", "cwd/important.txt"):
        try:
            text = open(f"/proc/{pid}/{name}", "rb").read(20000)
        except OSError:
            continue
        if b"CANARY" in text or b"envelope.trial" in text:
            print(f"PWNED /proc/{pid}/{name}", text[:300])
