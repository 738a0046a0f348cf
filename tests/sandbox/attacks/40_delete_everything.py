# CLASS: files   SEVERITY: must
# EXPECT: only the program's own folder can be deleted, which affects no other run.
import os
import shutil

for place in (os.path.expanduser("~"), "/tmp/v", "/tmp", "/dev/shm", "/run", "/home", "/root", "/var/tmp", "..", "."):
    for name in sorted(os.listdir(place)) if os.path.isdir(place) and os.access(place, os.R_OK) else ():
        path = os.path.join(place, name)
        try:
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        except OSError:
            pass
try:
    os.rmdir(os.getcwd())
except OSError as error:
    print(error)
