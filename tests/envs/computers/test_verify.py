"""The verifier of terminal tasks: checks in fresh machines, services, and what a failure of the verifier means."""

from dataclasses import replace

import pytest

from gem.envs.computers.task import HiddenCheck, RequiredService, TerminalTask
from gem.envs.computers.verify import verify
from gem.errors import SandboxError
from gem.sandbox import Limits, get_sandbox

LIMITS = Limits(wall_s=20, output_bytes=8_000)


pytestmark = pytest.mark.usefixtures("machines")


class Starts:
    """Starts machines and counts them."""

    def __init__(self, limits=LIMITS):
        self.limits, self.count = limits, 0

    def __call__(self, files):
        self.count += 1
        return get_sandbox().machine(files=files, limits=self.limits)


def fault(task, *commands, starts=None):
    starts = starts or Starts()
    with starts(task.entries()) as machine:
        for command in commands:
            machine.exec(command)
        return verify(task, machine, starts)


def task(**options):
    return TerminalTask(
        **{"instruction": "", "files": {}, "expected": {}, "solution": (), "near_misses": (), **options}
    )


SUM = HiddenCheck(
    name="sum.sh",
    arguments=("/bin/bash", "sum.sh"),
    files={"numbers.txt": "3\n4\n"},
    stdout="7\n",
    expected={"sum.txt": "7\n"},
)
RIGHT = "n=0; while read -r a; do n=$((n + a)); done < numbers.txt; echo $n | tee sum.txt"


def test_a_check_runs_what_the_agent_wrote_on_hidden_input():
    assert fault(task(checks=(SUM,)), f"echo '{RIGHT}' > sum.sh") == ""
    assert fault(task(checks=(SUM,)), f"echo '{RIGHT}' > sum.sh; echo 1 > numbers.txt; . ./sum.sh") == ""


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 8", "the output is wrong"),
        ("echo 7", "sum.txt is missing"),
        ("echo 7; echo 8 > sum.txt", "content of sum.txt"),
        ("echo 7; exit 1", "the output is wrong"),
        ("echo 7; echo 7 > sum.txt; (while :; do echo 9 > sum.txt; done) & sleep 0.1", "content of sum.txt"),
    ],
)
def test_a_wrong_result_of_a_check_names_it(script, reason):
    found = fault(task(checks=(SUM,)), f"echo '{script}' > sum.sh")
    assert found.startswith("sum.sh: ") and reason in found


def test_only_the_named_files_are_copied_for_a_check():
    check = HiddenCheck(name="ls", arguments=("/bin/ls", "-A"), stdout="a\n", only=("a",))
    assert fault(task(checks=(check,)), "touch a ab .gitconfig /etc/ld.so.preload") == ""


def test_a_check_without_a_result_is_repeated_and_then_the_files_are_the_cause():
    starts = Starts(Limits(wall_s=60, cpu_s=0.5, output_bytes=8_000))
    found = fault(task(checks=(SUM,)), "echo 'while :; do :; done' > sum.sh", starts=starts)
    assert found.startswith("sum.sh: timeout limit exceeded, twice") and "control check" in found
    assert starts.count == 4  # the agent, two attempts, the control check


def test_files_that_cannot_be_copied_are_the_cause():
    check = HiddenCheck(name="c", arguments=("/bin/true",), files={"folder/hidden": "x"})
    assert "twice" in fault(task(checks=(check,)), "echo > folder")


def test_a_failure_of_the_sandbox_is_no_verdict():
    starts = Starts()
    with starts({"sum.sh": RIGHT}) as machine, pytest.raises(SandboxError, match="no machine"):

        def broken(files):
            raise SandboxError("no machine")

        verify(task(checks=(SUM,)), machine, broken)


SERVICE = RequiredService(
    pid_file="run/pid", requests={"in/a": "hello\n", "in/b": "you\n"}, replies={"out/a": "HELLO\n", "out/b": "YOU\n"}
)
PATIENT = replace(SERVICE, seconds=3600.0)  # waits end when what they wait for has happened
LOOP = (
    "mkdir -p in out run; (while :; do for f in in/*; do "
    '[ -f "$f" ] && tr a-z A-Z < "$f" > "out/${f#in/}" && rm "$f"; done; sleep 0.02; done) & echo $! > run/pid'
)


def test_a_service_keeps_running_and_must_answer():
    assert fault(task(service=PATIENT), LOOP) == ""


@pytest.mark.parametrize("pid", ["", "abc", "1", "-1", "99999"])
def test_a_service_without_a_process_does_not_count(pid):
    impatient = replace(SERVICE, seconds=0.2)
    assert fault(task(service=impatient), f"{LOOP}; echo {pid} > run/pid") != ""


def test_a_service_that_has_ended_is_not_waited_for():
    assert "out/a is missing" in fault(task(service=PATIENT), "mkdir -p in run; echo 99999 > run/pid")
    assert "out/a is missing" in fault(task(service=PATIENT), "mkdir -p in run; sleep 0.1 & echo $! > run/pid; wait")
    assert "out/a is missing" in fault(task(service=PATIENT), "mkdir -p in run; sleep 0.3 & echo $! > run/pid")


def test_wrong_replies_that_stay_the_same_are_not_waited_for():
    assert "content of out/a " in fault(task(service=PATIENT), LOOP.replace("A-Z", "b-zb"))


def test_a_service_must_remove_its_requests():
    once = LOOP.replace('-f "$f" ]', '-f "$f" -a ! -e "out/${f#in/}" ]').replace(' && rm "$f"', "")
    assert "in/a still exists" in fault(task(service=PATIENT), once)


def test_a_service_must_answer_more_than_once():
    assert "out/b is missing" in fault(task(service=PATIENT), LOOP.replace('rm "$f"', 'rm "$f" && exit'))


def test_the_shell_is_no_service():
    assert fault(task(service=replace(SERVICE, seconds=0.5)), f"{LOOP}; echo $$ > run/pid") != ""


def test_only_the_service_survives():
    other = LOOP.replace("run/pid", "run/other").replace("A-Z", "x-x")
    assert fault(task(service=PATIENT), other, LOOP) == ""
