# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: flock_worked
import fcntl

with open("own.lock", "w") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError:  # refused to every program, because a lock on a library would block others
        pass
print("flock worked")
