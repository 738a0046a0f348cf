"""Right and almost right solutions of terminal tasks, written from the instructions alone, without a look at verifiers.

other_solutions.json has, for each template, a regular expression that takes values from an instruction, and scripts in
which @1@, @2@, … stand for these values.
"""

import importlib
import json
import random
import re
from pathlib import Path

import pytest

from gem.envs.computers.shell_env import require_programs
from gem.envs.computers.task import start_task
from gem.envs.computers.terminal.env import FAMILIES
from gem.envs.computers.verify import verify
from gem.errors import SandboxError
from gem.sandbox import Limits, get_sandbox

SOLUTIONS = json.loads(Path(__file__).with_name("other_solutions.json").read_text(encoding="utf-8"))["solutions"]
TEMPLATES = {
    template.__name__: (template, module)
    for module in map(importlib.import_module, FAMILIES.values())
    for template in module.TEMPLATES
}
LIMITS = Limits(wall_s=30, cpu_s=30, output_bytes=8_000)

pytestmark = pytest.mark.usefixtures("machines")


def start(files):
    return get_sandbox().machine(files=files, limits=LIMITS)


def fault_after(name, script):
    template, module = TEMPLATES[name]
    try:
        require_programs(name, (*module.PROGRAMS, "perl", "python3"))
    except SandboxError as e:
        pytest.skip(str(e))
    task = template(random.Random(1), 2)
    values = re.search(SOLUTIONS[name]["values"], task.instruction).groups()
    for number, value in enumerate(values, start=1):
        script = script.replace(f"@{number}@", value)
    with start_task(task, start) as machine:
        machine.exec(script)
        return verify(task, machine, start)


def test_each_template_has_other_solutions():
    assert sorted(SOLUTIONS) == sorted(TEMPLATES)
    assert all(len(row["right"]) >= 2 and len(row["wrong"]) >= 5 for row in SOLUTIONS.values())


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "label"), [(name, label) for name, row in SOLUTIONS.items() for label in row["right"]]
)
def test_another_right_solution_scores_1(name, label):
    assert fault_after(name, SOLUTIONS[name]["right"][label]) == ""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "label"), [(name, label) for name, row in SOLUTIONS.items() for label in row["wrong"]]
)
def test_an_almost_right_solution_scores_0(name, label):
    assert fault_after(name, SOLUTIONS[name]["wrong"][label]) != ""
