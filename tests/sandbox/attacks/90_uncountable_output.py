# CLASS: output   SEVERITY: must
# EXPECT: truncated output is marked as such and keeps its end.
# REQUIRE: the-last-line
import sys

sys.stdout.write("x" * 1_000_000)
sys.stdout.write("\nthe-last-line\n")
