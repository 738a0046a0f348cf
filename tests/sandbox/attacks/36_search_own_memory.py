# CLASS: grader   SEVERITY: must   GRADE: CANARY_EXPECTED_51cc   FUNC: solve
# EXPECT: the expected value is nowhere in the process: not in frames, objects, modules or its memory.
import gc
import re
import sys

PATTERN = re.compile("CANARY_" + r"EXPECTED_\w+")


def find(text):
    match = PATTERN.search(text)
    return match and match.group(0)


def frames():
    frame = sys._getframe()
    while frame:
        yield from map(repr, (frame.f_locals.values()))
        frame = frame.f_back


def memory():
    try:
        regions = open("/proc/self/maps").read().splitlines()
        with open("/proc/self/mem", "rb", 0) as mem:
            for region in regions:
                first, last = (int(part, 16) for part in region.split()[0].split("-"))
                if " rw" in region and last - first < 64 << 20:
                    try:
                        mem.seek(first)
                        yield mem.read(last - first).decode("latin-1")
                    except OSError:
                        pass
    except OSError:
        pass


def solve(*_):
    strings = (thing for thing in gc.get_objects() if isinstance(thing, (str, dict, list, tuple)) and len(thing) < 100)
    for text in (*frames(), *map(repr, strings), *memory()):
        if found := find(text):
            return found
    return None


print(solve() or "")
