# KIND: benign SEVERITY: must CLASS: benign STDIN: abc EXPECT_OUT: one_two_ABC
import os
import sys

sys.stdout.write("one ")
sys.stdout.flush()
os.write(1, b"two ")
sys.stdout.buffer.write(os.read(0, 100).upper())
