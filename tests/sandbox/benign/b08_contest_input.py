# KIND: benign SEVERITY: must CLASS: benign STDIN: big EXPECT_OUT: 9000000_18000000
import sys

numbers = sys.stdin.buffer.read().split()
print(len(numbers), sum(map(int, numbers)))
