# CLASS: freeze   SEVERITY: must   TIMEOUT: 2
# EXPECT: stderr full of names of errors amid blanks ends within the limit; looking at it costs the host nothing.
import sys

line = " " * 1500 + "MemoryError" + " " * 1500 + ":" + "\t" * 500 + "x\n"
sys.stderr.write("MemoryError: " * 4000 + "\n" + line * 12 + "Memory" * 2000 + "\nx")
sys.exit(1)
