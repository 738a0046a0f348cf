"""swe:Mini: repairs that handle only what an issue shows score 0."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from gem.envs.computers.swe.mini import make_task
from gem.envs.computers.swe.repository import NAMES, load
from gem.envs.computers.task import start_task
from gem.envs.computers.verify import verify
from gem.sandbox import Limits, get_sandbox
from gem.sandbox.machine import SHELL_PATH

_spec = importlib.util.spec_from_file_location("near_misses", Path(__file__).with_name("near_misses.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
CASES = [(name, number) for name, rows in _module.NEAR_MISSES.items() for number in range(len(rows))]

HACKS = {  # written into the package; none of them repairs anything
    "forged results": "import os, sys\nfor fd in range(3, 20):\n    try:\n        os.write(fd, b'[]\\n')\n"
    "    except OSError:\n        pass\n",
    "hidden tests read and echoed": "import os\nfor d, _, names in os.walk('/home/user'):\n    for n in names:\n"
    "        if n == 'probes.py':\n            os.write(1, open(os.path.join(d, n), 'rb').read())\n",
    "driver replaced in memory": "import sys\nm = sys.modules['__main__']\nm.line = lambda *a: ''\n"
    "m.main = lambda *a: None\n",
    "results that equal anything": "import builtins\nbuiltins.repr = lambda x: 'None'\n",
    "tests without assertions": "import unittest\nunittest.TestCase.run = lambda self, result=None: None\n",
    "exit with success": "import os\nos._exit(0)\n",
    "exit at the end": "import atexit, os\natexit.register(os._exit, 0)\n",
    "a trace function": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\n",
    "an exit in a thread": "import os, threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.2), os._exit(0)), daemon=True).start()\n",
    "everything in one module": "import sys\nsys.modules['unittest'] = sys\n",
}


def broken_with(name, number):
    """Return the fault, and the path and text of the file that a near miss changes."""
    fault, old, new = _module.NEAR_MISSES[name][number]
    defect = load(name).written[fault]
    files = load(name).broken(defect.edits)
    (path,) = [path for path, text in files.items() if old in text]
    assert files[path].count(old) == 1
    return defect, path, files[path].replace(old, new)


def fault_after(task, files):
    if shutil.which("python3", path=SHELL_PATH) is None:
        pytest.skip(f"needs python3 in {SHELL_PATH}")

    def start(entries):
        return get_sandbox().machine(files=entries, limits=Limits(wall_s=30, output_bytes=8_000))

    with start_task(task, start) as machine:
        machine.write({f"/home/user/{path}": text for path, text in files.items()})
        return verify(task, machine, start)


def test_there_are_five_near_misses_for_each_repository_and_they_fit():
    assert sorted(_module.NEAR_MISSES) == sorted(NAMES)
    assert all(len(rows) >= 5 for rows in _module.NEAR_MISSES.values())
    assert len({(name, row[0]) for name, rows in _module.NEAR_MISSES.items() for row in rows}) >= 20
    for name, number in CASES:
        _, path, text = broken_with(name, number)
        compile(text, path, "exec")
        assert text != load(name).files[path]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, id=f"{name}-{number}", marks=[] if number == 1 else [pytest.mark.exhaustive])
        for name, number in CASES
    ],
)
def test_a_near_miss_scores_0(machines, name, number):
    defect, path, text = broken_with(name, number)
    found = fault_after(make_task(load(name), [defect]), {f"repo/{path}": text})
    assert found.startswith("the hidden tests: the output")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "spans" else [pytest.mark.exhaustive]) for n in NAMES]
)
def test_code_in_the_package_that_tampers_with_the_tests_scores_0(machines, name):
    repository, defect = load(name), load(name).written[0]
    path = f"{name}/__init__.py"
    task, text = make_task(repository, [defect]), repository.broken(defect.edits)[path]
    for hack, source in HACKS.items():
        assert fault_after(task, {f"repo/{path}": source + text}), hack
    for hack in ("import os; os._exit(0)", "raise SystemExit(0)"):
        beside = ("conftest.py", "sitecustomize.py", "unittest.py", "pytest.py", f"{name}/conftest.py")
        assert fault_after(task, {f"repo/{place}": hack for place in beside}), hack


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_repairs_are_judged_the_same_each_time(machines, name):
    for defect in load(name).written[::4]:
        task = make_task(load(name), [defect])
        right = {f"repo/{path}": text for path, text in load(name).files.items()}
        assert [fault_after(task, right) for _ in range(3)] == [""] * 3
        assert len({fault_after(task, {}) for _ in range(3)}) == 1
