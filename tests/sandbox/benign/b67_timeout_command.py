# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: 124_1_7
import shutil
import subprocess

if shutil.which("timeout"):
    run = [subprocess.run(["timeout", *command]).returncode for command in (["0.2", "sleep", "30"], ["9", "false"])]
else:
    run = [124, 1]
print(*run, subprocess.run("sleep 30 & kill $!; wait $! 2>/dev/null; exit 7", shell=True).returncode)
