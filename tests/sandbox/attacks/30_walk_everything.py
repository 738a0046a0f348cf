# CLASS: files   SEVERITY: must
# EXPECT: no data of the host is readable anywhere in the file system.
import os

SKIPPED = ("/proc", "/sys", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/dev")
looked = 0
for folder, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(SKIPPED)]
    if "site-packages" in folder or "/lib/python" in folder:
        folders.clear()
    for name in names:
        path = os.path.join(folder, name)
        looked += 1
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 10_000:
                text = open(path, errors="ignore").read()
                if "CANARY_" in text and "CLASS:" not in text and not path.endswith((".py", ".md")):
                    print(path, text)
        except OSError:
            pass
print("looked at", looked)
