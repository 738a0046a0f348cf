# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: rows_1000_and_locked
import fcntl
import os
import sqlite3
import tempfile

with tempfile.TemporaryDirectory() as folder:
    with sqlite3.connect(os.path.join(folder, "a.db")) as base:
        base.execute("pragma journal_mode=wal")
        base.execute("create table t (n integer)")
        base.executemany("insert into t values (?)", [(n,) for n in range(1000)])
    rows = sqlite3.connect(os.path.join(folder, "a.db")).execute("select count(*) from t").fetchone()[0]
    with open(os.path.join(folder, "lock"), "w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_UN)
print("rows", rows, "and locked")
