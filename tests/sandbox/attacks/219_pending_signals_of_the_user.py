# CLASS: resources   SEVERITY: must   TIMEOUT: 6
# EXPECT: the program does not take the queued signals and timers that the kernel allows the user in total.
import ctypes
import os
import resource
import signal

libc = ctypes.CDLL(None, use_errno=True)
allowed = 20_000
signal.pthread_sigmask(signal.SIG_BLOCK, set(range(34, 64)))
queued = 0
while queued < allowed and libc.sigqueue(os.getpid(), 34 + queued % 30, ctypes.c_void_p(0)) == 0:
    queued += 1
timers = 0
place = ctypes.c_void_p()
while timers < allowed and libc.timer_create(1, None, ctypes.byref(place)) == 0:
    timers += 1
print(resource.getrlimit(resource.RLIMIT_SIGPENDING), queued, timers)
if queued + timers >= allowed:
    print("PWNED queued signals of the user:", queued, "and timers:", timers)
