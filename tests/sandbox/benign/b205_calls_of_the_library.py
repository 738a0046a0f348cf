# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: all_20_worked
import fcntl
import mmap
import os
import resource
import select
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time

done = 0


def check(call):
    global done
    call()
    done += 1


folder = tempfile.mkdtemp()
path = os.path.join(folder, "file")
with open(path, "wb") as file:
    file.write(b"x" * 10_000)
check(lambda: shutil.copyfile(path, path + "2"))
check(lambda: os.sendfile(os.open(path + "3", os.O_CREAT | os.O_WRONLY), os.open(path, os.O_RDONLY), 0, 100))
check(lambda: os.copy_file_range(os.open(path, os.O_RDONLY), os.open(path + "4", os.O_CREAT | os.O_WRONLY), 100))
check(lambda: mmap.mmap(os.open(path, os.O_RDWR), 100).flush())
check(lambda: select.epoll().register(os.pipe()[0], select.EPOLLIN))
check(lambda: select.poll().poll(0))
check(lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0) if os.path.exists("/bin/true") else None)
check(lambda: os.sched_getaffinity(0))
check(lambda: os.nice(1))
check(lambda: os.getpriority(os.PRIO_PROCESS, 0))
check(lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
check(lambda: resource.getrusage(resource.RUSAGE_CHILDREN))
check(lambda: fcntl.ioctl(socket.socketpair()[0], 0x541B, struct.pack("i", 0)))
check(lambda: signal.setitimer(signal.ITIMER_REAL, 0))
check(lambda: signal.sigtimedwait({signal.SIGUSR1}, 0.001))
check(lambda: os.kill(os.getpid(), 0))
check(lambda: os.pread(os.open(path, os.O_RDONLY), 10, 5))
check(lambda: os.truncate(path, 5))
check(lambda: os.utime(path, (time.time(), time.time())))
check(lambda: (os.umask(0o22), os.link(path, path + "5"), os.fsync(os.open(path, os.O_RDONLY)), os.getloadavg()))
threading.stack_size(256 << 10)
threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(16)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
shutil.rmtree(folder)
print("all", done, "worked")
