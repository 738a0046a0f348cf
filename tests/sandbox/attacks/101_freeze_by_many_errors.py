# CLASS: freeze   SEVERITY: must   TESTS: 2
# EXPECT: the same for lines, blanks and names that almost look like the end of a traceback.
import sys

almost = ["a.b.MemoryError: " * 500, "MemoryError" + "\n" * 30_000 + "x", "Memory" * 6_000, "MemoryError\n" * 2_000, "." * 30_000]
sys.stderr.write("\n".join(almost) + "\nx")
sys.exit(1)
