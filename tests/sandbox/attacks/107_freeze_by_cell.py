# CLASS: freeze   SEVERITY: must   CELLS: 2
# EXPECT: errors and values of a cell cost the host nothing either.
import sys

sys.stderr.write("MemoryError." * 4000 + "\nx\n" + "MemoryError: " * 4000)
print("x" * 4_000_000)
raise MemoryError("MemoryError." * 8000)
