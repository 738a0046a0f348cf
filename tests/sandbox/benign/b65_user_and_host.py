# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: user_and_host_work
import getpass
import os
import pathlib
import shutil
import socket
import sys
import sysconfig
import tempfile
import uuid

assert (
    pathlib.Path.home().is_dir()
    and os.path.expanduser("~")
    and os.getuid() >= 0
    and os.getcwd() == os.path.realpath(".")
)
try:
    assert getpass.getuser()
except (KeyError, OSError):  # the user of the sandbox may have no name
    pass
assert socket.gethostname() and os.uname().sysname and shutil.disk_usage(".").total > 0 and os.statvfs(".").f_bsize
assert (
    sysconfig.get_paths()["stdlib"] in sys.path and os.get_terminal_size.__name__ and shutil.get_terminal_size().columns
)
assert tempfile.gettempdir() and uuid.uuid4() != uuid.uuid4() and len(os.listdir("/proc/self/fd")) >= 3
assert not sys.stdin.isatty() and os.access(".", os.W_OK) and os.path.ismount("/")
print("user and host work")
