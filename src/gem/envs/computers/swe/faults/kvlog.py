"""Faults of kvlog, written by hand.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from gem.envs.computers.swe.repository import Defect, Edit

RECORDS, LOG, STORE = "kvlog/records.py", "kvlog/log.py", "kvlog/store.py"
FAULTS = (
    Defect(
        "After deleting a key and setting it again, its version is 1. It should go on from the last version, so that "
        "the new value is not taken for an old one.",
        (
            Edit(
                STORE,
                "            self.versions[fields[0]] = int(fields[1])\n",
                "            self.versions.pop(fields[0], None)\n",
            ),
            Edit(
                STORE,
                '        self._change("delete", [key, self.versions[key]])\n',
                '        self._change("delete", [key, self.version(key)])\n',
            ),
        ),
    ),
    Defect(
        "Windows paths do not survive closing and opening the store: a value with a backslash followed by an n comes "
        "back with a line break.",
        (
            Edit(RECORDS, r'''_ESCAPES = {"\\": "\\\\", "\t"''', r'''_ESCAPES = {"\t"'''),
            Edit(
                RECORDS,
                '        result.append(_PLAIN[next(chars)] if char == "\\\\" else char)\n',
                '        following = next(chars, "") if char == "\\\\" else ""\n'
                "        result.append(_PLAIN.get(following, char + following))\n",
            ),
        ),
    ),
    Defect(
        "A value with a carriage return at its end makes the log unreadable: after opening, the store says that the "
        "log is damaged, or the value is gone.",
        (
            Edit(RECORDS, r""", "\n": "\\n", "\r": "\\r"}""", r""", "\n": "\\n"}"""),
            Edit(RECORDS, r""""n": "\n", "r": "\r"}""", r""""n": "\n"}"""),
            Edit(
                RECORDS,
                '    if not line.endswith("\\n"):\n',
                '    line = line.replace("\\r", "")\n    if not line.endswith("\\n"):\n',
            ),
        ),
    ),
    Defect(
        "If an inner transaction fails and I catch the exception in the outer one, the store looks right, but after "
        "opening it again the changes of the inner one are there.",
        (Edit(STORE, "            del self.pending[self.marks.pop() :]\n", "            self.marks.pop()\n"),),
    ),
    Defect(
        "Transactions are written too early: the changes of an inner transaction are in the log even if the outer one "
        "fails afterwards, and they are back after opening.",
        (
            Edit(
                STORE,
                "        self.saved.pop()\n        self.marks.pop()\n        if not self.saved:\n"
                "            records, self.pending = self.pending, []\n",
                "        self.saved.pop()\n        self.marks.pop()\n        if self.pending:\n"
                "            records, self.pending = self.pending, []\n",
            ),
        ),
    ),
    Defect(
        "A transaction that failed leaves traces: the values are as before, but the next set of a key gives a version "
        "that is too high.",
        (
            Edit(
                STORE,
                "self.saved.append((dict(self.entries), dict(self.versions)))",
                "self.saved.append(dict(self.entries))",
            ),
            Edit(
                STORE,
                "            self.entries, self.versions = self.saved.pop()\n",
                "            self.entries = self.saved.pop()\n",
            ),
        ),
    ),
    Defect(
        "A value expires one moment too late. If I set it for five seconds at time 100, it should be gone at 105, but "
        "it is still there exactly then.",
        (
            Edit(
                STORE,
                "        if entry is None or (entry.expires is not None and entry.expires <= self.clock()):\n"
                "            return None\n        return entry\n",
                "        if entry is not None and entry.expires is not None and self.clock() > entry.expires:\n"
                "            return None\n        return entry\n",
            ),
        ),
    ),
    Defect(
        "Counters that should expire live for ever once something is added to them.",
        (
            Edit(
                STORE,
                "        expires = entry.expires if entry is not None else None\n"
                '        self._change("set", [key, str(total), self.versions.get(key, 0) + 1, expires])\n',
                "        self.set(key, str(total))\n",
            ),
        ),
    ),
    Defect(
        "Moving a value to another name loses its time of expiry, and if the program is killed in between, the value "
        "can be there under both names. It used to be one transaction.",
        (
            Edit(
                STORE,
                "        with self.transaction():\n"
                '            self._change("set", [new, entry.value, self.versions.get(new, 0) + 1, entry.expires])\n'
                '            self._change("delete", [old, entry.version])\n',
                "        self.set(new, entry.value)\n        self.delete(old)\n",
            ),
        ),
    ),
    Defect(
        "Renaming a key to itself deletes it.",
        (
            Edit(
                STORE,
                "        if old == new:\n            return\n        with self.transaction():\n",
                "        with self.transaction():\n",
            ),
        ),
    ),
    Defect(
        "After a crash in the middle of a transaction the first half of it is there when the store is opened. It "
        "should be all or nothing.",
        (
            Edit(
                LOG,
                "            elif pending is not None:\n                pending.append((operation, fields))\n"
                "            else:\n",
                "            else:\n",
            ),
        ),
    ),
    Defect(
        "After a crash that leaves half a line at the end of the log, everything works until the next change. When the "
        "store is opened after that, the log is damaged.",
        (
            Edit(
                LOG,
                "        self.file.truncate(size)\n        self.file.seek(0, os.SEEK_END)\n",
                "        self.file.seek(0, os.SEEK_END)\n",
            ),
        ),
    ),
    Defect(
        "A log with letters like ü or Japanese text is cut too short on opening if its last line is damaged: the line "
        "before is lost as well.",
        (Edit(LOG, '            position += len(line.encode("utf-8"))\n', "            position += len(line)\n"),),
    ),
    Defect(
        "A damaged line in the middle of the log goes unnoticed: the store opens, and everything after the damaged "
        "line has silently gone. It used to raise DamagedLog.",
        (
            Edit(
                LOG,
                "                if any(_is_whole(later) for later in lines[number:]):\n",
                "                if lines[number:] and not found:\n",
            ),
        ),
    ),
    Defect(
        "The log is rewritten after every change once it has been long. With compact_after=3 and a single "
        "key it should "
        "be rewritten at every fourth change or so.",
        (
            Edit(
                LOG,
                '        self.file = open(self.path, "a+", encoding="utf-8", newline="\\n")\n'
                "        self.records = len(records)\n",
                '        self.file = open(self.path, "a+", encoding="utf-8", newline="\\n")\n'
                "        self.records += len(records)\n",
            ),
        ),
    ),
    Defect(
        "Values that have expired come back in the log: after compact() they still take space, in memory too.",
        (Edit(STORE, "        live = self.keys()\n", "        live = sorted(self.entries)\n"),),
    ),
    Defect(
        "Reading keys page by page repeats keys: I pass the last key of a page as start for the next page, and it is "
        "there again as the first one.",
        (
            Edit(
                STORE,
                "            found = [key for key in found if key > start]\n",
                "            found = found[next((i for i, key in enumerate(found) if key >= start), len(found)) :]\n",
            ),
        ),
    ),
)
