# CLASS: host-confusion   SEVERITY: must
# EXPECT: invalid UTF-8 names, names like options, link loops, locked folders and sockets are removed.
import os
import socket

os.chdir(os.getcwd())
for name in (b"\xff\xfe", b"-rf", b"a\nb", b" ", b"\x1b[2J", b"x" * 255):
    os.mkdir(name)
    open(os.path.join(name, b"\x80"), "w").close()
    os.chmod(name, 0)
os.symlink("loop", "loop")
os.symlink("/tmp/v/home", "home")
os.mkfifo("fifo")
try:
    socket.socket(socket.AF_UNIX).bind("socket")
except OSError as error:
    print(error)
os.chmod(".", 0)
print("done")
