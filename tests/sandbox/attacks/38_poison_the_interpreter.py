# CLASS: python-level   SEVERITY: must
# EXPECT: what a program does to builtins, modules, the environment and its folder is gone with it.
import builtins
import json
import os
import sys

os.environ["EVIL"] = "1"
open("left.txt", "w").write("x")
for module in list(sys.modules.values()):
    try:
        module.EVIL = 1
    except Exception:
        pass
json.loads = json.dumps = lambda *a, **k: "42"
os.path.exists = os.path.lexists = lambda *_: True
sys.setswitchinterval(1000)
builtins.compile = builtins.exec = builtins.print = builtins.open = None
sys.stdout.write("done\n")
