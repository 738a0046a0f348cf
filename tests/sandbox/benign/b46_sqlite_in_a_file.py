# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 5000_12497500_ok
import sqlite3

with sqlite3.connect("data.db") as database:
    database.execute("pragma journal_mode=wal")
    database.execute("create table squares (n integer primary key, word text)")
    database.executemany("insert into squares values (?, ?)", ((n, f"w{n}") for n in range(5000)))
database.close()
again, other = sqlite3.connect("data.db"), sqlite3.connect("data.db")
count, total = again.execute("select count(*), sum(n) from squares").fetchone()
other.execute("create index words on squares (word)")
other.execute("vacuum")
print(count, total, again.execute("pragma integrity_check").fetchone()[0])
