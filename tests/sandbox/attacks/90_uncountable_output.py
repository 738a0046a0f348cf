# CLASS: output   SEVERITY: must
# EXPECT: a truncated output tells so, keeps its end, and the end of a program within the limits is not lost.
# REQUIRE: the-last-line
import sys

sys.stdout.write("x" * 1_000_000)
sys.stdout.write("\nthe-last-line\n")
