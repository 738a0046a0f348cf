# CLASS: freeze   SEVERITY: must
# EXPECT: looking for the reason of a failure in stderr takes no time, so that no thread of the host waits.
import sys

sys.stderr.write("MemoryError." * 4000 + "\nx\n")
sys.exit(1)
