# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 42_Greeting_hello_9
import importlib
import os
import runpy
import subprocess
import sys

os.makedirs("package/inner")
for path, text in {
    "package/__init__.py": "from .inner import value",
    "package/inner/__init__.py": "value = 42",
    "greet.py": "class Greeting: pass\nif __name__ == '__main__': print('hello')",
}.items():
    with open(path, "w") as file:
        file.write(text)
importlib.invalidate_caches()
import greet
import package

said = subprocess.run([sys.executable, "-m", "greet"], capture_output=True, text=True).stdout.strip()
assert runpy.run_path("greet.py")["Greeting"]
scope = {}
exec(compile("def f(x): return x * x", "<made>", "exec"), scope)
print(package.value, greet.Greeting.__name__, said, scope["f"](3))
