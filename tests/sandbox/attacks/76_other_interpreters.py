# CLASS: isolation   SEVERITY: must
# EXPECT: programs that it starts, such as a shell or a binary from memory, are confined as well.
import os
import subprocess

SCRIPT = """
cat ~/.ssh/id_rsa /tmp/v/home/important.txt /proc/*/environ /proc/*/cmdline /dev/stdin 2>&1
(exec 3<>/dev/tcp/127.0.0.1/8765 && echo x >&3 && cat <&3) 2>&1
echo mine > /tmp/v/home/mine; kill -9 -1
"""
for shell in ("/bin/bash", "/bin/sh"):
    try:
        done = subprocess.run([shell, "-c", SCRIPT], capture_output=True, timeout=2)
        print(done.stdout.decode(errors="replace"))
    except (OSError, subprocess.SubprocessError) as error:
        print(error)
try:
    fd = os.memfd_create("mine")
    os.write(fd, open("/bin/cat", "rb").read())
    if os.fork() == 0:
        os.execve(fd, ["cat", "/tmp/v/home/.ssh/id_rsa"], {})
    os.wait()
except OSError as error:
    print(error)
