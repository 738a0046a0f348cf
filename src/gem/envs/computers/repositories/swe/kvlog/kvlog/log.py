# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""The log: a file of records that only grows, until it is rewritten."""

import os

from kvlog.records import decode, encode


class DamagedLog(Exception):
    """A record before the last one is damaged. line: its number, from 1."""

    def __init__(self, line, reason):
        super().__init__(f"line {line}: {reason}")
        self.line = line


class Log:
    """A file of records. It is created if it is missing."""

    def __init__(self, path):
        self.path = path
        self.records = 0
        self.file = open(path, "a+", encoding="utf-8", newline="\n")

    def read(self):
        """Return all records. What follows the last whole record or transaction is cut off.

        Raises DamagedLog if a record is damaged and whole ones follow it.
        """
        self.file.seek(0)
        found = []
        pending = None  # records of a transaction without an end
        size = 0
        position = 0
        lines = list(self.file)
        for number, line in enumerate(lines, 1):
            position += len(line.encode("utf-8"))
            try:
                operation, fields = decode(line)
            except (ValueError, KeyError, StopIteration, RuntimeError) as error:
                if any(_is_whole(later) for later in lines[number:]):
                    raise DamagedLog(number, str(error)) from error
                break
            if operation == "begin":
                pending = []
            elif operation == "commit":
                found += pending or []
                pending = None
                size = position
            elif pending is not None:
                pending.append((operation, fields))
            else:
                found.append((operation, fields))
                size = position
        self.file.truncate(size)
        self.file.seek(0, os.SEEK_END)
        self.records = len(found)
        return found

    def append(self, records):
        """Write records, several of them as one transaction."""
        lines = [encode(operation, *fields) for operation, fields in records]
        if len(lines) > 1:
            lines = [encode("begin"), *lines, encode("commit")]
        self.file.write("".join(lines))
        self.file.flush()
        self.records += len(records)

    def rewrite(self, records):
        """Replace the file by one with these records only."""
        other = f"{self.path}.new"
        with open(other, "w", encoding="utf-8", newline="\n") as file:
            for operation, fields in records:
                file.write(encode(operation, *fields))
        self.file.close()
        os.replace(other, self.path)
        self.file = open(self.path, "a+", encoding="utf-8", newline="\n")
        self.records = len(records)

    def close(self):
        self.file.close()


def _is_whole(line):
    try:
        decode(line)
    except (ValueError, KeyError, StopIteration, RuntimeError):
        return False
    return True
