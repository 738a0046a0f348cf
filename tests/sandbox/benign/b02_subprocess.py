# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: from_a_child_7
import subprocess
import sys

done = subprocess.run([sys.executable, "-c", "print('from a child', 3 + 4)"], capture_output=True, text=True)
print(done.stdout, done.stderr)
