# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: a_b_c_2_main.py_done
import os
import subprocess

subprocess.run("printf 'c\nb\na\nb\n' > words; sort -u words > sorted; grep -c b words > count", shell=True, check=True)
out = subprocess.check_output(
    "cat sorted | tr '\n' ' '; cat count; ls -d main.py 2>/dev/null || echo main.py", shell=True
)
found = subprocess.run(["sh", "-c", "echo done; exit 7"], capture_output=True, text=True)
assert found.returncode == 7 and os.system("true") == 0 and os.popen("echo $((6 * 7))").read() == "42\n"
try:
    subprocess.run(["sleep", "30"], timeout=0.2)
except subprocess.TimeoutExpired:
    print(*out.decode().split(), found.stdout.strip())
