# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""The store: text values by text key, with versions, expiry and transactions."""

from contextlib import contextmanager

from kvlog.log import Log


class Conflict(Exception):
    """A value has another version than expected. version: the present one; 0 stands for a missing key."""

    def __init__(self, key, version):
        super().__init__(f"{key!r} has version {version}")
        self.version = version


class _Entry:
    def __init__(self, value, version, expires):
        self.value = value
        self.version = version
        self.expires = expires


class Store:
    """Values by key.

    path: the log file, or None for a store in memory only. clock: returns the present time in seconds.
    compact_after: the log is rewritten when it has more than this many records that no longer count.
    """

    def __init__(self, path=None, clock=lambda: 0, compact_after=100):
        self.clock = clock
        self.compact_after = compact_after
        self.entries = {}
        self.versions = {}  # last version of each key, of deleted ones too
        self.saved = []  # entries and versions before each open transaction
        self.pending = []  # records of the open transactions
        self.marks = []  # length of pending at the start of each open transaction
        self.log = Log(path) if path is not None else None
        if self.log is not None:
            for operation, fields in self.log.read():
                self._apply(operation, fields)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        if self.log is not None:
            self.log.close()

    def get(self, key, default=None):
        """Return a value, or the default if the key is missing or has expired."""
        entry = self._live(key)
        return default if entry is None else entry.value

    def version(self, key):
        """Return how often a key was set since it was first there; 0 if it is missing or has expired."""
        entry = self._live(key)
        return 0 if entry is None else entry.version

    def set(self, key, value, seconds=None, expected=None):
        """Set a value. Returns its version.

        seconds: time after which it expires; None means never. expected: version that the key must have now.
        Raises Conflict.
        """
        self._expect(key, expected)
        if seconds is not None and seconds <= 0:
            raise ValueError(f"seconds must be above 0, got {seconds}")
        expires = None if seconds is None else self.clock() + seconds
        version = self.versions.get(key, 0) + 1
        self._change("set", [key, value, version, expires])
        return version

    def delete(self, key, expected=None):
        """Remove a key. Returns whether it was there. Raises Conflict."""
        self._expect(key, expected)
        if self._live(key) is None:
            return False
        self._change("delete", [key, self.versions[key]])
        return True

    def add(self, key, amount=1):
        """Add to a value that is an integer; a missing one is 0. Returns the sum. Its expiry stays as it is."""
        entry = self._live(key)
        total = int(entry.value if entry is not None else 0) + amount
        expires = entry.expires if entry is not None else None
        self._change("set", [key, str(total), self.versions.get(key, 0) + 1, expires])
        return total

    def rename(self, old, new):
        """Move a value with its expiry to another key, whose value is replaced. Raises KeyError."""
        entry = self._live(old)
        if entry is None:
            raise KeyError(old)
        if old == new:
            return
        with self.transaction():
            self._change("set", [new, entry.value, self.versions.get(new, 0) + 1, entry.expires])
            self._change("delete", [old, entry.version])

    def keys(self, prefix="", start=None, limit=None):
        """Return sorted keys: those with a prefix, after start, and at most limit of them."""
        found = sorted(key for key in self.entries if key.startswith(prefix) and self._live(key) is not None)
        if start is not None:
            found = [key for key in found if key > start]
        return found if limit is None else found[:limit]

    def __len__(self):
        return len(self.keys())

    def __contains__(self, key):
        return self._live(key) is not None

    @contextmanager
    def transaction(self):
        """Write the changes of a block at once, or none of them if it raises. Blocks may be nested.

        An inner block that raises takes back its own changes only, if the exception is caught in the outer one.
        """
        self.saved.append((dict(self.entries), dict(self.versions)))
        self.marks.append(len(self.pending))
        try:
            yield self
        except BaseException:
            self.entries, self.versions = self.saved.pop()
            del self.pending[self.marks.pop() :]
            raise
        self.saved.pop()
        self.marks.pop()
        if not self.saved:
            records, self.pending = self.pending, []
            self._write(records)

    def compact(self):
        """Rewrite the log so that it has one record per key. Versions of deleted keys are forgotten."""
        if self.saved:
            raise RuntimeError("a transaction is open")
        live = self.keys()
        self.entries = {key: self.entries[key] for key in live}
        self.versions = {key: self.entries[key].version for key in live}
        if self.log is not None:
            self.log.rewrite([("set", self._fields(key)) for key in live])

    def _fields(self, key):
        entry = self.entries[key]
        return [key, entry.value, entry.version, entry.expires]

    def _live(self, key):
        """Return the entry of a key that is there and has not expired, or None."""
        entry = self.entries.get(key)
        if entry is None or (entry.expires is not None and entry.expires <= self.clock()):
            return None
        return entry

    def _expect(self, key, expected):
        if expected is not None and self.version(key) != expected:
            raise Conflict(key, self.version(key))

    def _change(self, operation, fields):
        self._apply(operation, fields)
        self.pending.append((operation, fields))
        if not self.saved:
            records, self.pending = self.pending, []
            self._write(records)

    def _write(self, records):
        if self.log is None or not records:
            return
        self.log.append(records)
        if self.log.records - len(self.keys()) > self.compact_after:
            self.compact()

    def _apply(self, operation, fields):
        if operation == "set":
            key, value, version, expires = fields
            self.entries[key] = _Entry(value, int(version), None if expires is None else float(expires))
            self.versions[key] = int(version)
        else:
            self.entries.pop(fields[0], None)
            self.versions[fields[0]] = int(fields[1])
