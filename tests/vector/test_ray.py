"""Backend "ray" on a local cluster: hanging and dying actors, and the end of the cluster."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clock import WorkerClock
from fixture_envs import Echo
from test_backends import Player, open_vec
from worker_envs import Obedient, Unbuildable

from gem.errors import BadValue, EnvFailed, MissingDependency, UnknownArgument, install_command
from gem.vector import VectorEnv, make_vec, worker_engine
from gem.vector import ray as vector_ray

ray_env = partial(VectorEnv.of, backend="ray")

HANG_S = 60.0  # seconds that a program may take to start a cluster
LIMIT = 1000.0  # seconds that a call may take, which pass at once in a call that hangs
pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray, connected to a cluster started for this module."""
    ray = pytest.importorskip("ray")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def vector(slots: int = 4, num_workers: int = 1, env: Any = Obedient, **options: Any) -> VectorEnv:
    own = {name: options.pop(name) for name in ("timeout", "on_failure") if name in options}
    return ray_env([partial(env, **options)] * slots, num_workers=num_workers, **own)


def failures(step: Any) -> list[str | None]:
    return [info.get("final_info", info).get("failure") for info in step.infos_B]


def pids(vec: VectorEnv) -> list[int]:
    return [info["pid"] for info in vec.reset(seed=0)[1]]


def ends(pid: int) -> bool:
    until = time.monotonic() + HANG_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return not Path(f"/proc/{pid}").exists()


def test_without_ray_the_error_has_an_install_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=re.escape(install_command("ray"))):
        make_vec("game:GuessTheNumber-v0", backend="ray")


def test_slots_share_actors_and_large_results_are_returned(ray):
    action = os.urandom(5_000_000)
    with vector(3, num_workers=2) as vec:
        first, *others = pids(vec)
        assert len(set(others)) == 1 and first not in others
        assert vec.step([action, "megabytes", action]).observations_B == [action, b"x" * 5_000_000, action]


def test_episodes_and_failures_are_those_of_sync_in_any_order(ray):
    def play(backend: str, order: int) -> Any:
        ids = ["fixture:Faulty-v0", "fixture:Walker-v0", "fixture:Waiting-v0"]
        own = [{"faults": {(1, 1): "raise", (2, 0): "infra"}, "longest": 3}, {}, {}]
        with open_vec(backend, ids, vec_kwargs=own, on_failure="restart") as vec:
            return Player(vec, random.Random(order)).play(20)

    assert play("ray", 1) == play("sync", 0)


def test_an_environment_variable_ends_episodes_in_actors(ray, monkeypatch):
    monkeypatch.setenv("GEM_END_ON_TRUNCATION", "1")
    with make_vec("game:GuessTheNumber-v0-easy", num_envs=2, backend="ray", max_turns=1) as vec:
        vec.reset()
        assert vec.step([r"\boxed{99}"] * 2).terminated_B.tolist() == [True, True]


def test_a_long_call_does_not_delay_earlier_outcomes(ray):
    with vector(3) as vec:
        vec.reset()
        vec.step(["", "nap", "nap"])  # the actor learns which slots are slow
        vec.send(["", "nap", "nap"])
        assert vec.recv().ids_B == [0]
        assert vec.recv().ids_B == [1]
        assert vec.recv().ids_B == [2]


def test_an_exception_while_building_is_raised_unchanged(ray):
    with pytest.raises(UnknownArgument, match="did you mean 'max_turns'"):
        make_vec("game:GuessTheNumber-v0", num_envs=1, backend="ray", max_turn=3)
    with pytest.raises(EnvFailed, match=r"slots 0 to 1: .*building .*: ActorDiedError"):
        vector(2, env=Unbuildable, how="die")


def test_a_hang_fails_only_its_slot(ray):
    with vector(3, timeout=LIMIT, on_failure="restart") as vec:
        before = pids(vec)
        step = vec.step(["", "hang", ""])
        assert failures(step) == [None, "timed out after 1000 s", None]
        assert [info["pid"] for info in vec.step([""] * 3).infos_B] == before


def test_an_actor_that_cannot_be_interrupted_is_killed(ray, tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    with vector(2, timeout=LIMIT, on_failure="restart", notes=str(notes)) as vec:
        monkeypatch.setattr(worker_engine, "time", WorkerClock(vec, notes))
        before = pids(vec)
        [why] = failures(vec.step({1: "hang_unreachably"}))
        assert "worker died" in why and "after 1000 s" in why
        assert ends(before[0])
        assert failures(vec.step({1: ""})) == [None]
        assert failures(vec.step({0: ""})) == [why]  # lost with its neighbour


def test_a_killed_actor_fails_the_running_episodes_of_its_slots(ray):
    with vector(4, num_workers=2, on_failure="restart") as vec:
        before = pids(vec)
        os.kill(before[0], signal.SIGKILL)
        step = vec.step([""] * 4)
        assert [why and "its worker died: ActorDiedError" in why for why in failures(step)] == [True, True, None, None]
        assert step.observations_B[:2] == ["episode 1 of seed 0", "episode 1 of seed 1"]
        assert [info["episode"] for info in vec.step([""] * 4).infos_B] == [1, 1, 0, 0]


def test_closing_ends_the_actors_and_lets_environments_close(ray, tmp_path, monkeypatch):
    monkeypatch.setattr(vector_ray, "CLOSE_TIMEOUT", HANG_S)
    notes = tmp_path / "notes"
    vec = vector(2, notes=str(notes))
    before = pids(vec)
    vec.close()
    vec.close()
    assert notes.read_text().split().count("closed") == 2
    assert all(map(ends, before))
    assert ray.is_initialized()  # the connection of ray.init stays open


def test_closing_ends_an_actor_that_hangs(ray, monkeypatch):
    monkeypatch.setattr(vector_ray, "CLOSE_TIMEOUT", 0.2)
    vec = vector(2)
    before = pids(vec)
    vec.send({0: "hang_unreachably"})
    vec.close()
    assert all(map(ends, before))


def test_an_address_is_refused_if_ray_is_already_connected(ray):
    with pytest.raises(BadValue, match=r"already connected.*address='10\.0\.0\.1:6379'"):
        ray_env([Echo], address="10.0.0.1:6379")


def test_an_unreachable_address_is_refused_at_once(ray, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(BadValue, match=r"Ray .*address='127.*refused"):
            ray_env([Echo], address=f"127.0.0.1:{taken.getsockname()[1]}")


SCRIPT = """
import sys
sys.path.append({path!r})
from worker_envs import Obedient
from functools import partial
from gem.vector import VectorEnv
ray_env = partial(VectorEnv.of, backend="ray")
{lines}
"""


def start(lines: str, tmp_path: Path) -> subprocess.Popen[str]:
    """Run a program that starts its own cluster."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(path=str(Path(__file__).parent), lines=lines))
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, str(script)], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def ancestors(pid: int) -> list[int]:
    """A process and its ancestors, up to the process of the test."""
    found = []
    while pid not in (0, 1, os.getpid()):
        found.append(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def test_a_cluster_that_gem_started_ends_with_its_last_vector_or_its_program(ray, tmp_path):
    lines = """
import ray
first = ray_env([lambda: Obedient()] * 3, num_workers=2, address="local")
second = ray_env([Obedient], num_workers=1, address="local")
first.close()
print(second.reset()[1][0]["pid"], flush=True)
second.close()
print(ray.is_initialized(), flush=True)
third = ray_env([Obedient], num_workers=1, address="local")
print(third.reset()[1][0]["pid"], flush=True)
sys.stdin.read()
third.send(["hang_unreachably"])
"""
    with start(lines, tmp_path) as program:
        actor = int(program.stdout.readline())
        assert program.stdout.readline() == "False\n"
        assert ends(actor)
        actor, raylet, script = ancestors(int(program.stdout.readline()))
        assert script == program.pid
        program.stdin.close()
        assert (program.wait(HANG_S), program.stderr.read()) == (0, "")
        assert ends(actor) and ends(raylet)


@pytest.mark.exhaustive
def test_a_cluster_that_gem_started_ends_with_a_program_that_is_killed(ray, tmp_path):
    lines = """
vec = ray_env([Obedient], num_workers=1, address="local")
print(vec.reset()[1][0]["pid"], flush=True)
vec.step(["hang_unreachably"])
"""
    with start(lines, tmp_path) as program:
        actor, raylet, _ = ancestors(int(program.stdout.readline()))
        program.kill()
        assert ends(actor) and ends(raylet)
