# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: lines_3
import subprocess

print("lines", subprocess.check_output("printf 'a\\nb\\nc\\n' | wc -l", shell=True, text=True).strip())
