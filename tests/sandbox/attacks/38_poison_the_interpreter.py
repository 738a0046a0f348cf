# CLASS: python-level   SEVERITY: must
# EXPECT: changes to builtins, modules, the environment and the folder do not outlive the program.
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
