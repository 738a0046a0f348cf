import importlib
import json
import math
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import gem
from gem.errors import BadValue, UnknownEnv
from gem.registry import EnvSpec
from gem.testing import check_env
from gem.testing.check import CheckFailed, Unchecked, run_checks
from gem.testing.env import construction as env_construction
from gem.testing.env import interface as env_interface
from gem.testing.env import process as env_process
from gem.testing.env import secrets as env_secrets
from gem.testing.env.check_env import CHECKS
from gem.testing.env.harness import Harness, Rollout
from gem.testing.env.target import env_target
from gem.wrappers import EpisodeTrackingWrapper, ObservationWrapper

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that other processes can import it
broken = importlib.import_module("broken_envs")
broken_process = importlib.import_module("broken_process_envs")

BASELINES = dict.fromkeys(["silent", "echo", "repeat-last", "constant", "injection"], 0.25)


@pytest.fixture(autouse=True)
def _short_texts(monkeypatch):
    monkeypatch.setattr(env_interface, "LONG_TEXT_SIZES", (2**10, 2**12))
    monkeypatch.setattr(env_process, "SECONDS_TO_CLEAN_UP", 0)


def spec_of(env, oracle="StateOracle", sees="state", **declared):
    declared = {"reward_range": (-0.1, 1.0), "baseline_scores": BASELINES, **declared}
    module = "broken_envs" if hasattr(broken, env) or not hasattr(broken_process, env) else "broken_process_envs"
    return EnvSpec(f"test:{env}", f"{module}:{env}", oracle=f"broken_envs:{oracle}", oracle_sees=sees, **declared)


def check(env, *, alone=True, **declared):
    """Check an environment; alone: without starting another process, which takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        if alone:
            patch.setattr(env_construction, "_run_probe", _refuse)
        return check_env(spec_of(env, **declared), seeds=4, episodes=20)


def _refuse(harness, growth_seconds):
    raise Unchecked("this test starts no other process")


def failed(report):
    return [result.name for result in report.failed]


def test_a_correct_env_passes_every_check(monkeypatch):
    monkeypatch.setattr(env_process, "GROWTH_SECONDS", 1)
    monkeypatch.setattr(env_process, "SECONDS_TO_CLEAN_UP", 2)
    report = check_env(spec_of("Correct"), seeds=4, episodes=20, thorough=True)
    assert report.ok and not report.unchecked, report.to_text()


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ("PrintsWhenBuilt", "construction"),
        ("DrawsWhenBuilt", "construction"),
        ("DrawsFromNumpyWhenBuilt", "construction"),
        ("ConnectsWhenBuilt", "construction"),
        ("FailsLater", "protocol"),
        ("FailsWhenSolved", "protocol"),
        ("ReturnsTheObservationAlone", "protocol"),
        ("ReturnsFour", "protocol"),
        ("ClosesOnce", "protocol"),
        ("AcceptsAnyArgument", "unknown-argument"),
        ("RewardIsText", "types"),
        ("FlagsAreNumbers", "types"),
        ("ObservationIsNone", "types"),
        ("ReusesInfo", "fresh-info"),
        ("SharesAList", "fresh-info"),
        ("UsesAReservedKey", "reserved-info-keys"),
        ("RewardIsNaN", "rewards"),
        ("PartsDoNotSum", "rewards"),
        ("RewardOutOfRange", "reward-range"),
        ("TruncatesWhenSolved", "endings"),
        ("TerminatesAndTruncates", "endings"),
        ("ExplainsEachStep", "explanation"),
        ("ExplainsWithAList", "explanation"),
        ("ChecksAreScores", "explanation"),
        ("StopReasonWithoutEnd", "endings"),
        ("UnknownStopReason", "endings"),
        ("StepsAfterTheEnd", "episode-over"),
        ("StepsBeforeReset", "episode-over"),
        ("ParsesAnyDigit", "any-text"),
        ("EncodesStrictly", "any-text"),
        ("SamplesIllegalActions", "sampled-legal"),
        ("SamplesFromEnvStream", "sampling-isolation"),
        ("SamplesUnseeded", "sampling-isolation"),
        ("StepsAtRandom", "step-determinism"),
        ("IgnoresTheSeed", "seed-determinism"),
        ("UsesGlobalRandom", "global-streams"),
        ("UsesGlobalNumpy", "global-streams"),
        ("SeedsTheGlobals", "global-streams"),
        ("StoresStateOnTheClass", "isolation"),
        ("CarriesRandomStreamOver", "episode-sequence"),
        ("DependsOnSetOrder", "other-process"),
        ("OmitsAField", "json-state"),
        ("StateIsNotJson", "json-state"),
        ("StateIsMutable", "json-state"),
        ("ForksShareAList", "fork"),
        ("HoldsALambda", "pickle"),
        ("RewardsSilence", "baseline-silent"),
        ("RewardsEcho", "baseline-echo"),
        ("RewardsRepetition", "baseline-repeat-last"),
        ("RewardsOneNumber", "baseline-constant"),
        ("AcceptsInjection", "baseline-injection"),
        ("LeaksInTheObservation", "secrets"),
        ("LeaksInInfo", "secrets"),
        ("LeaksSometimes", "secrets"),
        ("SecretsAreNotText", "secrets"),
        ("EndsBothWays", "endings"),
    ],
)
def test_each_broken_env_fails_its_check_and_no_other(env, name):
    report = check(env, alone=name != "other-process")
    assert failed(report) == [name], report.to_text(only_failed=True)


@pytest.mark.parametrize(
    ("env", "name", "says"),
    [
        ("EndsWithoutAReason", "stop-reason", "ends without info['stop_reason']"),
        ("StatesTooManyTurns", "turn-limit", "after turn 8 … limit of 9"),
        ("SpellsTooManyTurns", "turn-limit", "states a limit of 12"),
        ("StatesTooManyTimes", "turn-limit", "states a limit of 9"),
        ("StatesTooManyMoves", "turn-limit", "states a limit of 9"),
        ("PlaysMoreTurnsThanStated", "turn-limit", "states a limit of 7"),
        ("ReplacesTheSeed", "seed-diversity", "reset(seed=40) … seed 7"),
        ("HasOneSecret", "seed-diversity", "40 seeds … '17'"),
        ("HasItsOwnGenerator", "seed-diversity", "generator of its own"),
        ("RepeatsItsSeeds", "seed-diversity", "seeds that differ by 9 "),
        ("CutsItsSeeds", "seed-diversity", "seeds that differ by 16,777,216 "),
        ("SharesASeedAmongNeighbours", "seed-diversity", "seeds that differ by 1 "),
        ("RepeatsItsFirstEpisode", "seed-diversity", "reset() without a seed … 40 times"),
        ("PaysLessThanDeclared", "reachable-maximum", "scores 0.9 … maximum of 1"),
        ("LeaksInBase64", "secrets", "in base64"),
        ("LeaksANumberInBase64", "secrets", "in base64"),
        ("LeaksInBase64InItsRepr", "secrets", "in base64 in repr(env), str(env) or an attribute"),
        ("LeaksInBase64InItsText", "secrets", "in base64 in repr(env), str(env) or an attribute"),
        ("KeepsBase64", "secrets", "in base64 in repr(env), str(env) or an attribute"),
        ("LeaksInHexadecimal", "secrets", "in hexadecimal"),
        ("LeaksReversed", "secrets", "backwards"),
        ("LeaksSpaced", "secrets", "separators"),
        ("LeaksShifted", "secrets", "shifted by one"),
        ("LeaksTheNextNumber", "secrets", "shifted by one"),
        ("LeaksInItsRepr", "secrets", "in repr(env)"),
        ("LeaksInItsText", "secrets", "in repr(env) or str(env)"),
        ("ChangesTheFolder", "process-state", "the working directory"),
        ("ChangesTheFolderWhenClosed", "process-state", "env.close() changes the working directory"),
        ("SetsAVariable", "process-state", "environment variables (LAST_GUESS)"),
        ("HandlesSignals", "process-state", "signal handlers (SIGUSR1)"),
        ("RaisesTheRecursionLimit", "process-state", "the recursion limit"),
        ("RaisesTheRecursionLimitOnce", "process-state", "first use … the recursion"),
        ("IgnoresNumpyErrors", "process-state", "numpy's error state"),
        ("ShortensNumpyText", "process-state", "numpy's print options (precision)"),
        ("IgnoresWarnings", "process-state", "warnings filters"),
        ("ConfiguresLogging", "process-state", "the root logger (level)"),
        ("ReplacesStdout", "process-state", "env.reset(seed=0) changes sys.stdout"),
        ("HidesWarnings", "process-state", "changes warnings.showwarning"),
        ("HidesWarningsOnce", "process-state", "the first use … warnings.showwarning"),
        ("Prints", "stdout", "prints 'guessed"),
        ("WritesToTheDescriptor", "stdout", "another process … prints 'a new game"),
        ("WritesToStderr", "stdout", "writes 'guessed"),
        ("WritesToTheErrorDescriptor", "stdout", "another process … writes 'a new game"),
        ("LeavesFiles", "files", "broken_process_envs_"),
        ("LeavesAFolder", "files", "broken_process_envs_"),
        ("LeavesAFolderOnce", "files", "broken_process_envs_"),
        ("WritesALog", "files", "broken_process_envs_log"),
        ("ShowsTheDate", "wall-clock", "info is"),
        ("ShowsTheTime", "wall-clock", "info is"),
        ("GreetsByTheHour", "wall-clock", "observation is"),
    ],
)
def test_a_careless_env_fails_one_check_which_names_the_cause(env, name, says, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    alone = name != "files" and "another process" not in says
    report = check(env, alone=alone, oracle="SearchingOracle", sees="observation")
    assert failed(report) == [name], report.to_text(only_failed=True)
    assert all(part in report[name].detail for part in says.split(" … ")), report[name].detail


@pytest.mark.parametrize(
    ("env", "name", "says"),
    [
        ("KeepsEveryEpisode", "growth-memory", "bytes per episode"),
        ("GrowsInTheEpisode", "growth-memory", "bytes per step"),
        ("KeepsFilesOpen", "growth-descriptors", "open file descriptors"),
        ("StartsThreads", "growth-threads", "number of threads grows"),
        ("StartsProcesses", "growth-processes", "child processes"),
        ("SlowsDown", "growth-seconds", "more episodes"),
        ("SlowsDownInTheEpisode", "growth-seconds", "more steps"),
    ],
)
@pytest.mark.slow
def test_an_env_that_grows_fails_a_thorough_check(env, name, says, monkeypatch, request):
    request.addfinalizer(broken_process.release)
    monkeypatch.setattr(env_process, "GROWTH_SECONDS", 0.5)
    monkeypatch.setattr(time, "process_time", time.process_time)  # some of them replace it
    harness = Harness(env_target(spec_of(env)), range(4), 20)
    results = run_checks((env_interface.protocol, *env_process.GROWTH), harness, case=harness.case)
    details = {result.name: result.detail for result in results if result.status == "failed"}
    assert name in details and says in details[name]


def test_episodes_that_got_slower_beside_other_programs_are_measured_again(monkeypatch):
    monkeypatch.setattr(env_process, "GROWTH_SECONDS", 0.5)
    harness = Harness(env_target(spec_of("Correct")), range(4), 20)
    harness.probes[0.5] = {"episodes": {"seconds": [1.0, 1.0, 2.0, 3.0]}, "steps": None, "count": [70, 0]}
    checks = (env_interface.protocol, *(check for check in env_process.GROWTH if check.name == "growth-seconds"))
    assert [result.status for result in run_checks(checks, harness, case=harness.case)] == ["passed", "passed"]


@pytest.mark.filterwarnings("default")
def test_logs_and_warnings_are_no_output():
    report = check("LogsAndWarns", alone=False)
    assert report.ok, report.to_text(only_failed=True)


def test_steps_that_get_slower_and_slower_fail_at_once(monkeypatch):
    for name in ("process_time", "perf_counter"):
        monkeypatch.setattr(time, name, getattr(time, name))  # the environment replaces them
    start = broken_process.Clock.seconds
    report = check_env(spec_of("GetsSlower"), seeds=4, episodes=20, thorough=True)
    assert failed(report) == ["protocol"] and broken_process.Clock.seconds - start < 200
    assert "the steps take longer" in report["protocol"].detail
    assert report["growth-seconds"].detail == "needs 'protocol' to pass first"


def test_a_measurement_of_growth_stops_if_episodes_get_slower_and_slower(monkeypatch):
    for name in ("process_time", "perf_counter"):
        monkeypatch.setattr(time, name, getattr(time, name))
    harness = Harness(env_target(spec_of("EveryEpisodeGetsSlower")), range(4), 20)
    checks = (env_interface.protocol, *env_process.GROWTH)
    results = {result.name: result for result in run_checks(checks, harness, case=harness.case)}
    assert "the episodes take longer" in results["growth-seconds"].detail
    assert [name for name, result in results.items() if result.status == "failed"] == ["growth-seconds"]
    assert results["growth-memory"].status == "unchecked"


def test_another_process_that_fails_is_started_once(monkeypatch):
    starts = []
    real = env_construction.subprocess.run

    def run(*args, **kwargs):
        starts.append(args)
        return real(*args, **{**kwargs, "timeout": 1e-3})

    monkeypatch.setattr(env_construction.subprocess, "run", run)
    report = check_env(spec_of("Correct"), seeds=4, episodes=20, thorough=True)
    assert len(starts) == 2 and "timed out after 120 s" in report["other-process"].detail
    assert "timed out" in report["growth-memory"].detail


def test_every_check_can_fail():
    tests = (
        test_each_broken_env_fails_its_check_and_no_other,
        test_a_careless_env_fails_one_check_which_names_the_cause,
        test_an_env_that_grows_fails_a_thorough_check,
    )
    caught = {case[1] for test in tests for case in test.pytestmark[-1].args[1]}
    assert caught | {"import", "oracle"} == {check.name for check in (*CHECKS, *env_process.GROWTH)}


# The shortest reproduction


def test_a_reproduction_is_a_program_that_raises_the_same_error():
    program = check("FailsLater")["protocol"].reproduction
    with pytest.raises(KeyError, match="board"):
        exec(program, {})
    assert program.count("env.step(") == 3


def test_a_reproduction_omits_irrelevant_actions():
    program = check("ParsesAnyDigit")["any-text"].reproduction
    assert program.split("\n")[1:] == ["env = ParsesAnyDigit()", "env.reset(seed=0)", "env.step('²')"]


def test_a_reproduction_of_a_mean_prints_it():
    result = check("RewardsSilence")["baseline-silent"]
    printed = []
    exec(result.reproduction, {"print": lambda mean, returns: printed.append(mean)})
    assert "mean reward 0.400" in result.detail and printed == pytest.approx([0.4])


def test_a_reproduction_builds_an_instance_with_its_arguments():
    program = check_env(EpisodeTrackingWrapper(broken.AcceptsAnyArgument(size=3)), seeds=1, episodes=1)
    assert "env = EpisodeTrackingWrapper(AcceptsAnyArgument(size=3))" in program["unknown-argument"].reproduction


# What can be checked


def test_checks_without_a_declaration_are_unchecked():
    report = check_env(broken.Bare, seeds=2, episodes=10)
    assert report.ok, report.to_text()
    names = [result.name for result in report.unchecked]
    expected = "reward-range sampled-legal sampling-isolation json-state fork oracle baseline-silent baseline-echo "
    expected += "baseline-repeat-last baseline-constant baseline-injection reachable-maximum secrets"
    assert names == expected.split()
    assert "EnvSpec(reward_range=…)" in report["reward-range"].detail


def test_a_given_instance_is_not_modified():
    env = broken.Correct()
    env.reset(seed=5)
    env.step("1")
    before = env.get_state()
    assert check_env(env, seeds=2, episodes=5).ok
    assert env.get_state() == before


def test_checks_in_another_process_are_unchecked_for_a_local_class():
    class Local(broken.Correct):
        pass

    report = check_env(Local, seeds=2, episodes=5)
    assert report.ok
    assert [report[name].status for name in ("import", "other-process", "pickle")] == ["unchecked"] * 3


def test_check_env_takes_a_factory():
    assert check_env(lambda: broken.Correct(), seeds=2, episodes=5).ok


def test_a_factory_of_another_type_fails_the_protocol_check():
    report = check_env(lambda: object(), seeds=1, episodes=1)
    assert failed(report) == ["protocol"] and "not a gem.Env" in report["protocol"].detail


@pytest.mark.parametrize("wrapper", [EpisodeTrackingWrapper, ObservationWrapper])
def test_an_oracle_that_reads_observations_is_not_used_with_a_wrapper(wrapper):
    report = check_env(wrapper(gem.make("game:GuessTheNumber-v0")), seeds=3, episodes=10)
    assert report.ok, report.to_text(only_failed=True)
    assert report["oracle"].status == "unchecked"


def test_both_endings_are_allowed_with_end_on_truncation():
    report = check_env(gem.make("game:GuessTheNumber-v0", end_on_truncation=True), seeds=3, episodes=10)
    assert report["endings"].status == "passed", report["endings"].detail


def test_an_env_with_a_single_task_declares_it():
    assert check("HasOneTask")["seed-diversity"].status == "unchecked"
    assert check("DeclaresOneTask")["seed-diversity"].status == "passed"


def test_check_env_takes_an_id():
    report = check_env("game:GuessTheNumber-v0-hard", seeds=3, episodes=20)
    assert report.ok and report.target == "game:GuessTheNumber-v0-hard"


def test_an_infra_error_makes_a_check_unchecked():
    report = check("ServerIsDown")
    assert report.ok and "no answer from the server" in report["secrets"].detail


def test_an_infra_error_in_the_constructor_makes_every_check_unchecked():
    report = check("NeedsAServer")
    assert {result.status for result in report.results} == {"unchecked"}
    assert "no answer" in report["protocol"].detail and "'protocol'" in report["secrets"].detail


def test_a_missing_entry_point_fails_the_protocol_check():
    report = check("NoSuchEnv")
    assert failed(report) == ["protocol"] and "NoSuchEnv" in report["protocol"].detail


def test_a_missing_extra_makes_every_check_unchecked():
    report = check_env(EnvSpec("test:extra", "no_such_module_at_all:Env", extra="nothing"))
    assert report.ok and {result.status for result in report.results} == {"unchecked"}
    assert "pip install 'gem-gym[nothing]'" in report.results[0].detail


def test_a_check_that_cannot_run_names_the_check_it_needs():
    report = check("StepsAtRandom")
    assert report["fork"].detail == "needs 'step-determinism' to pass first"


def test_the_global_random_streams_are_restored():
    random.seed(1)
    np.random.seed(1)
    expected = (random.Random(1).random(), np.random.RandomState(1).random())
    check("UsesGlobalNumpy")
    assert (random.random(), np.random.random()) == expected


@pytest.mark.parametrize("env", ["no:such-env", broken.Sized, 7, None, object])
def test_check_env_rejects_what_is_not_an_env(env):
    with pytest.raises((BadValue, UnknownEnv)):
        check_env(env)


@pytest.mark.parametrize("numbers", [{"seeds": 0}, {"seeds": [-1]}, {"episodes": 0}])
def test_numbers_out_of_range_raise_bad_value(numbers):
    with pytest.raises(BadValue):
        check_env(broken.Correct, **numbers)


# Single checks


def test_time_that_grows_faster_than_the_text_fails_any_text(monkeypatch):
    monkeypatch.setattr(env_interface, "LONG_TEXT_SIZES", (2**12, 2**16, 2**20))
    monkeypatch.setattr(env_interface.time, "process_time", lambda: broken.QuadraticReader.clock)
    report = check("QuadraticReader")
    assert failed(report) == ["any-text"]
    assert report["any-text"].reproduction.endswith("env.step('a' * 65536)")


def test_a_module_that_prints_on_import_fails_import(tmp_path, monkeypatch, capsys):
    (tmp_path / "loud_env.py").write_text(
        "from broken_envs import Correct\nprint('hello')\nclass Loud(Correct): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    report = check_env(importlib.import_module("loud_env").Loud, seeds=1, episodes=5)
    assert failed(report) == ["import"] and "'hello" in report["import"].detail


def test_a_third_party_package_loaded_by_import_gem_is_a_failure():
    nothing = {"modules": 1, "third_party": [], "seconds": 0.0}
    assert "no third-party package" in env_construction.describe_import_cost({"gem": nothing, "env": nothing})
    with pytest.raises(CheckFailed, match="numpy"):
        env_construction.describe_import_cost({"gem": {**nothing, "third_party": ["numpy"]}, "env": nothing})


@pytest.mark.parametrize(
    ("env", "oracle", "sees", "says"),
    [
        ("Correct", "HastyOracle", "state", "the maximum is 1.0; it fails on 17 of 20 seeds: [0, 1, 2"),
        ("Correct", "LosingOracle", "observation", "any of 20 episodes"),
        ("DeclaresTooMuch", "HastyOracle", "observation", "optimum() declares 100%"),
        ("Correct", "NoSuchOracle", "observation", "NoSuchOracle"),
    ],
)
def test_an_oracle_below_its_maximum_is_a_failure(env, oracle, sees, says):
    report = check(env, oracle=oracle, sees=sees)
    assert failed(report) == ["oracle"] and says in report["oracle"].detail


def test_an_oracle_that_reads_observations_reports_its_success_rate():
    assert "100% solved" in check("Correct", oracle="SearchingOracle", sees="observation")["oracle"].detail


def test_a_baseline_for_an_unknown_policy_is_unchecked():
    report = check("Correct", baseline_scores={**BASELINES, "middle": 0.1})
    assert report["baseline-middle"].status == "unchecked"


def test_a_chance_occurrence_of_a_secret_is_not_a_leak():
    for env_id in ("game:GuessTheNumber-v0-easy", "game:GuessTheNumber-v0-random"):
        harness = Harness(env_target(env_id), range(2), 200)
        *_, found = run_checks((env_interface.protocol, env_interface.types, env_secrets.secrets), harness)
        assert found.status == "passed", (env_id, found.detail)


def test_a_leak_names_the_secret_and_the_fraction_of_episodes():
    detail = check("LeaksInTheObservation")["secrets"].detail
    assert "before the end, which secrets() names" in detail
    assert re.search(r"\b(1\d|20) of 20 episodes", detail)  # some episodes end at the first guess


# The report


def test_a_report_converts_to_json_and_text():
    report = check("StepsAfterTheEnd")
    data = json.loads(json.dumps(report.to_json()))
    assert not data["ok"] and data["results"][0]["name"] == "construction"
    text = report.to_text()
    assert all(result.name in text and result.description in text for result in report.results)
    assert "FAILED     episode-over" in text and "env.step(" in text
    assert "passed" not in report.to_text(only_failed=True).split("\n", 1)[1]


def test_checks_play_fewer_rollouts_when_their_time_is_used_up():
    rollouts = [Rollout(seed, ("1",)) for seed in range(4)]
    for seconds, count in ((0.0, 1), (math.inf, 4)):
        harness, played = Harness(env_target(spec_of("Correct")), range(4), 20, seconds=seconds), []
        with harness.case(env_interface.protocol):
            assert harness.for_each_rollout(lambda seed, _, played=played: played.append(seed), rollouts) == count
        assert played == list(range(count))


def test_a_correct_env_passes_without_time_and_says_what_it_left_out():
    report = check_env(spec_of("Correct"), seeds=4, episodes=20, seconds=0.001)
    assert not report.failed
    assert "for lack of time" in {result.name: result.detail for result in report.results}["any-text"]
