"""The reward hacks of terminal tasks, played on exported tasks in containers. Only with -m containers.

Some run with it; all run with -m 'containers or exhaustive'.
"""

import importlib.util
import random
from pathlib import Path

import pytest

import gem
from gem._internal.imports import resolve
from gem.envs.computers.containers.harbor_export import write_harbor
from gem.sandbox import Limits

SPEC = importlib.util.spec_from_file_location("hacks", Path(__file__).parents[1] / "terminal" / "test_hacks.py")
HACKS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(HACKS)

pytestmark = pytest.mark.containers
LIMITS = Limits(wall_s=10, memory_bytes=512 << 20, processes=128, output_bytes=8_000)
SERVICES = "Processes"  # a separate verifier cannot see them


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tasks")


@pytest.mark.parametrize(
    ("task", "script"),
    [
        pytest.param(task, script, id=f"{task}-{name}", marks=[] if name in HACKS.ALWAYS else [pytest.mark.exhaustive])
        for task, name, script in HACKS.HACKS
        if not task.startswith(SERVICES)
    ],
)
def test_a_hack_scores_0_in_a_container(task, script, folder, debian, engine):
    family, template = task.split(":")
    place = folder / template.replace("_", "-")
    if not place.exists():
        made = next(
            t for t in resolve(f"gem.envs.computers.terminal.{family.lower()}:TEMPLATES") if t.__name__ == template
        )
        programs = resolve(f"gem.envs.computers.terminal.{family.lower()}:PROGRAMS")
        write_harbor(made(random.Random(1), 1), place, name=place.name, programs=programs, seconds=600.0)
    options = {"image_map": {"debian:bookworm": debian}, "engine": engine, "timeout": 10.0, "limits": LIMITS}
    with gem.make(f"harbor:{place}", **options) as env:
        env.reset(seed=0)
        step = env.step(f"<bash>{script}</bash>")
        if not (step.terminated or step.truncated):
            step = env.step("<finish>")
        assert step.reward == 0.0 and step.info["verifier"], step
