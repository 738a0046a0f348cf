"""The command lines of the docker and podman backends.

The fake engine records its arguments and runs the command without a container. Real ones: test_machine.py.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from gem.errors import SandboxError, UnknownArgument
from gem.sandbox import Case, Limits, Status, make_sandbox

FAKE = Path(__file__).with_name("fake_engine.py")


class Engine:
    """A fake engine. calls: the arguments of all calls."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        program = FAKE.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -S", 1)
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)

    @property
    def calls(self):
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]

    def runs(self):
        return [call for call in self.calls if call[0] == "run" and "--entrypoint" not in call]

    def removed(self, container):
        waiting = ["--time", "0"] if self.name == "podman" else []
        return ["rm", "--force", *waiting, container] in self.calls


@pytest.fixture(params=["podman", pytest.param("docker", marks=pytest.mark.exhaustive)])
def engine(request, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return Engine(tmp_path, request.param)


@pytest.fixture
def sandbox(engine):
    with make_sandbox(engine.name, image="an-image") as made:
        yield made


def options_of(call):
    """The flags of a run with their values, and the command after the image."""
    options, rest = {}, call[1:]
    while rest[0].startswith("--"):
        bare = rest[0] in ("--rm", "--interactive", "--init", "--read-only")
        options.setdefault(rest[0], []).append(None if bare else rest[1])
        rest = rest[1 if bare else 2 :]
    return options, rest


def test_a_run_is_a_container_with_minimal_privileges(engine, sandbox):
    limits = Limits(wall_s=2.5, memory_bytes=256 << 20, processes=7, disk_bytes=8 << 20)
    result = sandbox.run("print(input())", stdin="in\n", limits=limits)
    assert (result.status, result.stdout) == (Status.OK, "in\n")
    options, command = options_of(engine.runs()[-1])
    once = {name: values[0] for name, values in options.items() if len(values) == 1}
    expected = {
        "--network": "none",
        "--cap-drop": "ALL",
        "--security-opt": "no-new-privileges",
        "--user": "65534:65534",
        "--memory": f"{256 << 20}b",
        "--memory-swap": f"{256 << 20}b",
        "--pids-limit": "7",
        "--shm-size": f"{1 << 20}b",
        "--tmpfs": f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={7 << 20}",
        "--log-driver": "none",
        "--pull": "never",
        "--workdir": "/tmp",
    }
    assert expected.items() <= once.items()
    assert {"--rm", "--init", "--read-only", "--interactive", "--label"} <= set(options)
    assert command[:6] == ["an-image", "timeout", "--kill-after=1", "5", "python3", "-I"]


def test_programs_and_secrets_are_not_on_the_command_line(engine, sandbox, monkeypatch):
    monkeypatch.setenv("SECRET_OF_HOST", "hunter2")
    sandbox.run("print('a secret program')", files={"f": "a secret file"}, stdin="a secret input")
    assert "secret" not in (told := json.dumps(engine.runs())) and "hunter2" not in told


def test_the_network_can_be_enabled(engine, sandbox):
    sandbox.run("1", limits=Limits(network=True))
    assert "--network" not in options_of(engine.runs()[-1])[0]


def test_another_runtime_can_be_selected(engine):
    with make_sandbox(engine.name, image="an-image", runtime="runsc") as sandbox:
        sandbox.run("1")
    assert options_of(engine.runs()[-1])[0]["--runtime"] == ["runsc"]


@pytest.mark.parametrize("engine", ["podman", "docker"], indirect=True)
def test_the_container_of_a_run_that_times_out_is_removed_by_name(engine, sandbox, limit_after_output):
    result = sandbox.run("print('before', end='')\nimport time\ntime.sleep(60)")
    assert (result.status, result.stdout) == (Status.TIMEOUT, "before")
    name = options_of(engine.runs()[-1])[0]["--name"][0]
    assert engine.removed(name)


def test_a_session_is_one_container_without_a_time_limit(engine, sandbox):
    with sandbox.session() as session:
        session.run("x = 1")
        assert session.run("x").stdout == "1\n"
        assert len(engine.runs()) == 1
        assert options_of(engine.runs()[0])[1][:2] == ["an-image", "python3"]
        name = options_of(engine.runs()[0])[0]["--name"][0]
    assert engine.removed(name)


def test_a_function_is_called_in_a_container(sandbox):
    [result] = sandbox.run_tests("def f(a): return [a]", [Case(arguments='["x"]')], function="f")
    assert (result.status, result.value) == (Status.OK, '["x"]')


def test_close_removes_all_containers_with_its_label(engine):
    sandbox = make_sandbox(engine.name, image="an-image")
    sandbox.run("1")
    sandbox.close()
    label = options_of(engine.runs()[0])[0]["--label"][0]
    assert engine.calls[-1] == ["ps", "--all", "--quiet", "--filter", f"label={label}"]


def test_an_exit_code_above_128_is_a_signal_and_sigkill_means_out_of_memory(sandbox):
    ended = {code: sandbox.run(f"import sys; sys.exit({code})") for code in (3, 124, 128 + 11, 128 + 9)}
    assert [(r.status, r.exit_code, r.signal) for r in ended.values()] == [
        (Status.ERROR, 3, None),
        (Status.ERROR, 124, None),
        (Status.KILLED, None, 11),
        (Status.MEMORY, None, 9),
    ]


def test_a_missing_image_is_an_error_with_the_command_to_pull_it(engine):
    with pytest.raises(SandboxError, match=rf"`{engine.name} pull missing`"):
        make_sandbox(engine.name, image="missing")


def test_an_image_without_python_raises_sandbox_error(engine):
    with make_sandbox(engine.name, image="no-python") as sandbox, pytest.raises(SandboxError, match="not found"):
        sandbox.run("1")


def test_an_engine_that_goes_down_raises_sandbox_error(engine, sandbox):
    (engine.folder / "down").touch()
    with pytest.raises(SandboxError, match="Cannot connect"):
        sandbox.run("1")
    with pytest.raises(SandboxError, match="Cannot connect"):
        make_sandbox(engine.name, image="an-image")


def test_exit_code_125_belongs_to_the_program_if_the_engine_responds(engine, sandbox):
    assert sandbox.run("import sys; sys.exit(125)").exit_code == 125
    with pytest.raises(SandboxError, match="Cannot connect"):
        sandbox.run(f"import sys; open({str(engine.folder / 'down')!r}, 'w').close(); sys.exit(125)")


def test_a_missing_engine_is_an_error_that_names_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="docker is not installed"):
        make_sandbox("docker")


def test_an_unknown_option_is_an_error(engine):
    with pytest.raises(UnknownArgument, match="did you mean 'image'"):
        make_sandbox(engine.name, imag="x")


def test_limits_that_the_engine_cannot_set_are_left_out_and_reported(engine):
    (engine.folder / "unlimited").touch()
    with make_sandbox(engine.name, image="an-image") as sandbox:
        assert sandbox.run("print(1)").stdout == "1\n"
        guarantees = sandbox.report().guarantees
    assert "--memory" not in options_of(engine.runs()[-1])[0]
    assert guarantees["memory"] is None and guarantees["process_limit"] is None and guarantees["disk"]
