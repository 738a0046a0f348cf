"""Backend "process": pickling, hanging and dying workers, and the end of worker processes."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clock import WorkerClock
from fixture_envs import Counting, Echo, Faulty
from leftovers import eventually
from worker_envs import Obedient, Unbuildable

from gem.errors import BadAction, BadValue, EnvFailed, MissingDependency, UnknownArgument, install_command
from gem.vector import VectorEnv, make_vec, process, worker_engine
from gem.vector.slots import CallTimeout
from gem.vector.worker import CallTimer
from gem.vector.worker_engine import split_slots

process_env = partial(VectorEnv.of, backend="process")

HANG_S = 60.0  # seconds after which a test counts as hanging
LIMIT = 1000.0  # seconds that a call may take, which pass at once in a call that hangs
SCRIPTS = Path(__file__).parent


def vector(slots: int = 4, num_workers: int = 1, **options: Any) -> VectorEnv:
    """A vector of Obedient environments, which execute the method that an action names."""
    env = options.pop("env", Obedient)
    names = ("timeout", "on_failure", "autoreset")
    own = {name: options.pop(name) for name in names if name in options}
    return process_env([partial(env, **options)] * slots, num_workers=num_workers, **own)


def pids(vec: VectorEnv) -> list[int]:
    """Process ids of the workers of each slot. Resets all slots."""
    return [info["pid"] for info in vec.reset(seed=0)[1]]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def all_gone(*gone: int) -> bool:
    until = time.monotonic() + HANG_S
    while any(map(is_alive, gone)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_alive, gone))


def failures(step: Any) -> list[str | None]:
    return [info.get("final_info", info).get("failure") for info in step.infos_B]


# Shards


@pytest.mark.slow
def test_slots_are_divided_into_contiguous_shards():
    with vector(5, num_workers=2, env=Echo) as vec:
        vec.reset()
        first, *others = [info["pid"] for info in vec.step(["a"] * 5).infos_B]
    assert others[0] == first
    assert len(set(others[1:])) == 1 and others[1] != first


@pytest.mark.parametrize(
    ("slots", "count", "sizes"), [(5, 2, [2, 3]), (3, 8, [1, 1, 1]), (7, 3, [2, 2, 3]), (4, 1, [4])]
)
def test_every_worker_has_a_slot(slots, count, sizes):
    shares = split_slots(dict.fromkeys(range(slots), Echo), count)
    assert [len(share) for share in shares] == sizes
    assert [slot for share in shares for slot in share] == list(range(slots))


@pytest.mark.parametrize("num_workers", [0, -1])
def test_there_is_at_least_one_worker(num_workers):
    with pytest.raises(BadValue, match="num_workers must be an integer of at least 1"):
        process_env([Echo], num_workers=num_workers)


def test_one_worker_starts_per_usable_cpu():
    with process_env([Echo] * 64) as vec:
        assert len(vec.engine.workers) == min(64, len(os.sched_getaffinity(0)))


# Pickling


def test_megabytes_are_sent_in_both_directions_at_once():
    action = os.urandom(5_000_000)
    with vector(4, num_workers=2) as vec:
        vec.reset()
        assert vec.step([action] * 4).observations_B == [action] * 4
        for _ in range(2):
            vec.send(["megabytes"] * 2, ids=[0, 2])
            vec.send([action] * 2, ids=[1, 3])
            received = {}
            while vec.pending:
                ids, step = vec.recv()
                received.update(zip(ids, step.observations_B, strict=True))
            assert received == {0: b"x" * 5_000_000, 1: action, 2: b"x" * 5_000_000, 3: action}


def test_calls_to_a_busy_worker_wait(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    with vector(3) as vec:
        vec.reset()
        vec.send({0: pipe})
        vec.send({1: "", 2: ""})
        pipe.write_text("")
        assert sorted(vec.recv(min_envs=3).ids_B) == [0, 1, 2]


def test_a_long_call_does_not_delay_earlier_outcomes(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    with vector(3) as vec:
        vec.reset()
        vec.send(["", "", pipe])
        assert vec.recv(min_envs=2).ids_B == [0, 1]
        pipe.write_text("")
        assert vec.recv().ids_B == [2]


def test_slots_and_actions_may_be_numpy():
    with vector(2, env=Echo) as vec:
        vec.reset()
        assert vec.step({np.int64(1): np.str_("a")}).observations_B == ["a"]
        assert vec.step(np.array(["a", "b"])).observations_B == ["a", "b"]


def test_a_result_that_cannot_be_pickled_fails_its_slot_alone():
    with vector(2) as vec:
        before = pids(vec)
        with pytest.raises(EnvFailed, match=r"slot 1: .*result of step .*pickled: .*lock"):
            vec.step(["", "lock"])
        assert vec.recv().ids_B == [0]
        with pytest.raises(EnvFailed, match=r"slot 1 .*not reset since"):
            vec.step({1: ""})
        vec.reset(ids=[1])
        assert [info["pid"] for info in vec.step(["", ""]).infos_B] == before


def test_an_action_that_cannot_be_pickled_is_refused():
    with vector(2) as vec:
        vec.reset()
        with pytest.raises(BadAction, match=r"slot 0: .*argument of step .*pickled: .*generator"):
            vec.step({0: (i for i in range(3)), 1: ""})
        assert vec.recv().ids_B == [1]
        assert vec.step({0: "", 1: ""}).rewards_B.tolist() == [1.0, 1.0]


def test_an_error_that_cannot_be_pickled_arrives_as_its_gem_base_class():
    with vector(1) as vec:
        vec.reset()
        with pytest.raises(BadAction, match="refused for a reason"):
            vec.step(["refuse"])
        assert vec.step([""]).rewards_B.tolist() == [1.0]


def test_a_factory_may_be_a_lambda_or_a_local_class():
    pytest.importorskip("cloudpickle")

    class Local(Echo):
        pass

    with process_env([lambda: Local()] * 2, num_workers=1) as vec:
        vec.reset()
        assert vec.step(["a", "b"]).observations_B == ["a", "b"]


def test_without_cloudpickle_a_lambda_is_refused_with_an_install_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(MissingDependency, match="lambda.*" + re.escape(install_command("process"))):
        process_env([lambda: Echo()])


def test_a_factory_that_cannot_be_pickled_is_reported_with_its_slot():
    with pytest.raises(BadValue, match=r"slot 1: functools.partial\(.*generator.* cannot be sent to a worker"):
        process_env([Echo, partial(Counting, fails_at=(i for i in range(3)))])


# Building


@pytest.mark.slow
def test_an_exception_while_building_is_raised_unchanged():
    with pytest.raises(UnknownArgument, match="did you mean 'max_turns'") as caught:
        make_vec("game:GuessTheNumber-v0", num_envs=4, backend="process", max_turn=3)
    assert "in construct" in str(caught.value.__cause__)
    with pytest.raises(BadValue, match="got 'refuse'"):
        vector(env=Unbuildable, how="refuse")


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("awkward", BadAction, "refused for a reason"),
        ("leave", EnvFailed, "SystemExit: leaving"),
        ("die", EnvFailed, "slots 0 to 3: .*building .*exit status 9"),
    ],
)
def test_a_worker_that_dies_while_building_fails_the_constructor(how, error, message):
    with pytest.raises(error, match=message):
        vector(env=Unbuildable, how=how)


# Hanging


def test_a_hang_fails_only_its_slot():
    with vector(3, timeout=LIMIT, on_failure="restart") as vec:
        before = pids(vec)
        step = vec.step(["", "hang", ""])
        assert failures(step) == [None, "timed out after 1000 s", None]
        assert np.isnan(step.rewards_B).tolist() == [False, True, False]
        assert step.observations_B[1] == "episode 1 of seed 1"
        assert [info["pid"] for info in vec.step([""] * 3).infos_B] == before


def test_with_raise_a_hang_is_raised():
    with vector(2, timeout=LIMIT) as vec:
        vec.reset()
        with pytest.raises(EnvFailed, match=r"slot 1 failed: timed out after 1000 s"):
            vec.step(["", "hang"])
        assert vec.recv().ids_B == [0]


def test_the_time_limit_is_measured_from_the_start_of_the_call():
    with vector(4, timeout=LIMIT) as vec:
        vec.reset()
        assert all(0.9 * LIMIT < left_s <= LIMIT for left_s in vec.step(["use_time"] * 4).observations_B)


def test_an_environment_that_swallows_the_timeout_is_interrupted_again():
    with vector(2, timeout=LIMIT, on_failure="restart") as vec:
        before = pids(vec)
        step = vec.step(["swallow_twice", ""])
        assert step.observations_B[0] == 2
        assert [info["pid"] for info in vec.step(["", ""]).infos_B] == before


@pytest.mark.parametrize("how", ["hang_stubbornly", "hang_unreachably", "hang_with_all_threads"])
def test_a_worker_that_cannot_be_interrupted_is_killed(how, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_engine, "POLL_INTERVAL", 0.01)
    notes = tmp_path / "notes"
    with vector(3, timeout=LIMIT, on_failure="restart", notes=str(notes)) as vec:
        monkeypatch.setattr(worker_engine, "time", WorkerClock(vec, notes))
        before = pids(vec)
        step = vec.step(["", how, ""])
        _, *told = failures(step)
        assert [why and "worker died" in why and "after 1000 s" in why for why in told] == [True, True]
        assert step.observations_B[1:] == ["episode 1 of seed 1", "episode 1 of seed 2"]
        assert all_gone(*before)
        assert failures(vec.step({1: "", 2: ""})) == [None, None]


def test_a_call_is_interrupted_when_its_time_limit_ends():
    with pytest.raises(CallTimeout, match=r"timed out after 0\.01 s"):
        CallTimer(0.01, lambda: None).limit(time.sleep, HANG_S)


def test_a_call_that_swallows_its_timeouts_counts_as_alive_once():
    """So that the parent kills its worker after about twice the limit."""
    reports: list[str] = []
    timer = CallTimer(LIMIT, lambda: reports.append("alive"))
    timer.begin()
    for _ in range(2):
        assert timer.limit(Obedient().swallow_twice) == 2
    assert len(reports) == 1


def test_a_call_that_cannot_be_interrupted_is_noticed_when_its_limit_ends(monkeypatch):
    monkeypatch.setattr(process, "CLOSE_TIMEOUT", 0.1)
    assert worker_engine.KILL_DELAY <= 1.0  # so that a new worker has a second to start within twice the limit + 2 s
    with vector(2, timeout=HANG_S, on_failure="restart") as vec:
        vec.send(["hang_stubbornly", ""])
        limit = HANG_S + worker_engine.KILL_DELAY
        assert 0 < vec.engine.poll_timeout() <= min(limit, worker_engine.POLL_INTERVAL)
        silent = time.monotonic() - vec.engine._shards[0].last_active
        assert vec.engine.poll_timeout() <= max(0.0, limit - silent)


# Dying


def test_a_killed_worker_fails_the_running_episodes_of_its_slots():
    with vector(4, num_workers=2, on_failure="restart") as vec:
        before = pids(vec)
        vec.step([""] * 4)
        os.kill(before[0], signal.SIGKILL)
        step = vec.step([""] * 4)
        assert [why and "worker died: killed by signal 9" in why for why in failures(step)] == [True, True, None, None]
        assert step.observations_B[:2] == ["episode 1 of seed 0", "episode 1 of seed 1"]
        assert step.truncated_B.tolist() == [True, True, False, False]
        step = vec.step([""] * 4)
        assert [info["episode"] for info in step.infos_B] == [1, 1, 0, 0]
        assert vec.stats()[None].failed == 2


def test_with_raise_a_killed_worker_is_raised_for_its_slots():
    with vector(4, num_workers=2) as vec:
        before = pids(vec)
        os.kill(before[0], signal.SIGKILL)
        assert all_gone(before[0])
        with pytest.raises(EnvFailed, match=r"worker died: killed by signal 9 .*; and 1 more slots"):
            vec.step([""] * 4)
        assert sorted(vec.recv(min_envs=2).ids_B) == [2, 3]
        assert vec.reset(ids=[0, 1])[0] == ["episode 1 of seed 0", "episode 1 of seed 1"]
        assert vec.step([""] * 4).rewards_B.tolist() == [1.0] * 4


@pytest.mark.slow
def test_a_death_is_detected_while_a_child_holds_the_connection_open():
    with vector(2, on_failure="restart") as vec:
        vec.reset(seed=0)
        assert failures(vec.step({1: "die_beside_a_child"})) == ["its worker died: exit status 5"]


def test_after_a_restore_a_lost_episode_is_the_restored_one():
    with vector(1, on_failure="restart") as vec:
        vec.reset(seed=3)
        for _ in range(4):
            vec.step(["finish"])
        state = vec.get_state()
        vec.reset(seed=8)
        vec.set_state(state)
        assert vec.step(["die"]).observations_B == ["episode 5 of seed 3"]


@pytest.mark.slow
def test_a_slot_that_always_kills_its_worker_is_given_up_alone():
    with vector(3, on_failure="restart") as vec:
        vec.reset(seed=0)
        with pytest.raises(EnvFailed, match=r"slot 1 .*5 workers .*killed by signal 9"):
            for _ in range(20):
                vec.step({1: "die"})
        for _ in range(2):
            with pytest.raises(EnvFailed, match="slot 1 was given up"):
                vec.step({1: ""})
        assert {0, 2} == set(vec.send({0: "", 2: ""}))
        vec.recv(min_envs=2)  # lost with the last worker
        assert failures(vec.step({0: "", 2: ""})) == [None, None]


@pytest.mark.slow
def test_occasional_deaths_give_up_no_slot(monkeypatch):
    monkeypatch.setattr(worker_engine, "MAX_DEATHS", 2)
    with vector(2, on_failure="restart") as vec:
        vec.reset(seed=0)
        for _ in range(2 * worker_engine.MAX_DEATHS):
            vec.step(["die", ""])
            assert failures(vec.step(["", ""])) == [None, None]


@pytest.mark.parametrize("mode", ["raise", "restart"])
def test_slots_that_cannot_be_rebuilt_are_given_up(mode, tmp_path):
    notes = str(tmp_path / "notes")
    with vector(2, on_failure=mode, notes=notes, dies_from=3) as vec:
        vec.reset(seed=0)
        what = r"slots 0 to 1 given up: 3 workers .*exit status 7"
        with pytest.raises(EnvFailed, match="killed by signal 9" if mode == "raise" else what):
            vec.step(["die", ""])
        until = time.monotonic() + HANG_S
        with pytest.raises(EnvFailed, match=what):
            while time.monotonic() < until:
                vec.reset(ids=[0])
        with pytest.raises(EnvFailed, match=what):
            vec.step({1: ""})


@pytest.mark.slow
def test_dead_workers_leave_no_file_open():
    with vector(2, on_failure="restart") as vec:
        vec.reset(seed=0)
        vec.step(["die", ""])
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(3):
            vec.step(["", ""])
            vec.step(["die", ""])
        assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.slow
def test_random_faults_lose_no_slot_and_change_no_other_episode():
    faults = partial(Faulty, rate=0.03, kinds=("raise", "die", "late"), longest=3)
    with process_env([faults] * 6, num_workers=2, timeout=LIMIT, on_failure="restart") as vec:
        vec.reset(seed=0)
        for _ in range(30):
            step = vec.step([""] * 6)
            assert all(f" of seed {slot}" in observation for slot, observation in enumerate(step.observations_B))
        assert vec.stats()[None].failed > 0


# Closing


def test_closing_lets_the_environments_close(tmp_path):
    notes = tmp_path / "notes"
    vec = vector(4, num_workers=2, notes=str(notes))
    before = pids(vec)
    vec.close()
    vec.close()
    assert notes.read_text().split().count("closed") == 4
    assert all_gone(*before)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", "hang_unreachably", "hang_with_all_threads"])
def test_closing_ends_hanging_calls(how, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "CLOSE_TIMEOUT", 0.5)
    notes = tmp_path / "notes"
    vec = vector(2, notes=str(notes))
    before = pids(vec)
    vec.send([how, ""])
    eventually(lambda: "hanging" in notes.read_text())
    vec.close()
    assert "woken" not in notes.read_text()
    children = [int(number) for number in re.findall(r"\d+", notes.read_text())]
    assert all_gone(*before, *children)


def test_an_unreferenced_vector_ends_its_workers():
    vec = vector(2)
    before = pids(vec)
    del vec
    gc.collect()
    assert all_gone(*before)


# Programs


def run(code: str, tmp_path: Path, **options: Any) -> subprocess.Popen[str]:
    """Run a script in a folder with the fixture environments."""
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nsys.path.append({str(SCRIPTS)!r})\n{code}")
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, str(script)], stdout=pipe, stderr=pipe, text=True, **options)


@pytest.mark.slow
def test_a_script_needs_no_main_guard(tmp_path):
    pytest.importorskip("cloudpickle")
    (tmp_path / "beside.py").write_text("GREETING = 'hello'\n")
    code = """
from dataclasses import dataclass
import beside
from gem import Env, register, make_vec
from gem.core import Step

@dataclass
class Answer:
    text: str

class Mine(Env):
    def reset(self, seed=None):
        super().reset(seed)
        return beside.GREETING, {}
    def step(self, action):
        return Step("", 1.0, info={"answer": Answer(action.text + beside.GREETING)})

register("mine:Mine-v0", Mine)
vec = make_vec("mine:Mine-v0", num_envs=3, backend="process", num_workers=2)
print(vec.reset()[0])
print(all(isinstance(info["answer"], Answer) for info in vec.step([Answer("a")] * 3).infos_B))
"""
    with run(code, tmp_path) as program:
        out, errors = program.communicate(timeout=HANG_S)
    assert (out, errors) == ("['hello', 'hello', 'hello']\nTrue\n", "")


@pytest.mark.slow
def test_workers_print_to_standard_error_and_read_nothing(tmp_path):
    code = """
from worker_envs import Obedient
from functools import partial
from gem.vector import VectorEnv
process_env = partial(VectorEnv.of, backend="process")
with process_env([Obedient]) as vec:
    vec.reset()
    print(vec.step(["say"]).observations_B)
"""
    with run(code, tmp_path, stdin=subprocess.PIPE) as program:
        out, errors = program.communicate("typed", timeout=HANG_S)
    assert (out, errors) == ("[\"''\"]\n", "something printed\n")


BUSY = """
import time
from functools import partial
from worker_envs import Obedient
from gem.vector import VectorEnv, process
process_env = partial(VectorEnv.of, backend="process")
process.CLOSE_TIMEOUT = 0.5
vec = process_env([partial(Obedient, notes="notes")] * 4, num_workers=2)
print(*{info["pid"] for info in vec.reset()[1]})
vec.send(["ACTION"] * 4)
while open("notes").read().count("hanging") < 2:
    time.sleep(0.05)
print("busy", flush=True)
"""


@contextlib.contextmanager
def busy_program(action: str, end: str, tmp_path: Path) -> Any:
    """Yield (program, pids) while both workers hang in an action; the program then runs its last lines."""
    program = run(BUSY.replace("ACTION", action) + end, tmp_path, cwd=tmp_path, start_new_session=True)
    with program:
        workers = program.stdout.readline().split()
        assert program.stdout.readline() == "busy\n", program.stderr.read()
        noted = re.findall(r"\d+", (tmp_path / "notes").read_text())
        try:
            yield program, [int(pid) for pid in {*workers, *noted}]
        finally:
            program.kill()


@pytest.mark.slow
@pytest.mark.parametrize("action", ["hang", "hang_with_all_threads"])
def test_workers_and_their_children_end_with_a_program_that_is_killed(action, tmp_path):
    with busy_program(action, "time.sleep(60)", tmp_path) as (program, workers):
        program.kill()
        assert len(workers) == (2 if action == "hang" else 4)
        assert all_gone(*workers)


@pytest.mark.slow
def test_workers_end_with_a_program_that_does_not_close_them(tmp_path):
    with busy_program("hang", "", tmp_path) as (program, workers):
        assert program.wait(HANG_S) == 0
        assert all_gone(*workers)
        assert program.stderr.read() == ""


@pytest.mark.slow
def test_ctrl_c_interrupts_the_program_and_ends_its_workers(tmp_path):
    with busy_program("hang", "with vec:\n    vec.recv()", tmp_path) as (program, workers):
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(HANG_S) != 0
        assert program.stderr.read().rstrip().endswith("KeyboardInterrupt")
        assert all_gone(*workers)


@pytest.mark.slow
def test_a_forked_process_does_not_touch_the_workers(tmp_path):
    end = """
import os
with vec:
    if os.fork() == 0:
        del vec
        sys.exit()
    os.wait()
    print(vec.engine.collect(), flush=True)
    print(*(worker.process._process.poll() for worker in vec.engine.workers))
"""
    with busy_program("hang", end.replace("with vec:", "if True:"), tmp_path) as (program, _):
        assert program.stdout.read() == "[]\nNone None\n"
