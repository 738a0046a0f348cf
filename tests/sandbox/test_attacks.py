"""Run the attack programs against the sandbox, each in a disposable container.

`pytest -m attack` runs one program of each class, a tenth of them; `pytest -m "attack or exhaustive"` all. In both, the
settings are "ns-root-cgroup,lsm", the strongest and the weakest; GEM_ATTACK_SETTINGS selects others (see
envelope/setting.py), and `make attack-all` runs every program in every setting. Honest neighbours run beside the
programs of the classes that may starve them. If a setting is not available on this machine its tests fail, or are
skipped with GEM_ATTACK_MAY_SKIP=1. Known misses are listed in envelope/known_misses.json; a new miss fails, and so does
a listed one that no longer occurs, unless its entry begins with "sometimes".
"""

import os

import pytest
from envelope import known, programs, runner, trial
from envelope.availability import fail_or_skip
from envelope.setting import GATE, Setting

CHOSEN = os.environ.get("GEM_ATTACK_SETTINGS")
SETTINGS = [Setting.parse(text) for text in CHOSEN.split(",")] if CHOSEN else GATE
PATHS = programs.paths()
# Each harms a different part of the host if there is no sandbox.
SURELY_HARMFUL = ("14_sysv_ipc", "22_daemon_acts_later", "31_proc_snoop", "35_read_expected_files", "42_local_services")
SURELY_HARMFUL += ("33_symlink_escape", "44_type_into_the_terminal", "66_limits_of_others", "76_other_interpreters")
BY_ANSWERS = ("freeze", "grader", "host-confusion", "output", "python-level", "quality")
pytestmark = pytest.mark.attack


def chosen(setting, path):
    """To take half the time, the default runs two kinds of programs at level ns only; `make attack-all` runs them all.

    They are the variants of other programs, and those that attack the host through its answers, at any level alike.
    """
    if CHOSEN or setting.level == "ns":
        return True
    return int(path.name.strip("b").partition("_")[0]) < 200 and programs.load(path).kind not in BY_ANSWERS


def one_of_each_class():
    """The first program of each class that must be held."""
    first = {}
    for path in PATHS:
        program = programs.load(path)
        if program.benign or program.fields["SEVERITY"] == "must":
            first.setdefault(program.kind, path)
    return set(first.values())


def case(setting, path):
    marks = () if path in SAMPLE else pytest.mark.exhaustive
    return pytest.param(runner.in_setting(setting, path), path, marks=marks)


SAMPLE = one_of_each_class()
CASES = [case(setting, path) for setting in SETTINGS for path in PATHS if chosen(setting, path)]
HARMED = [case(Setting("subprocess"), path) for path in PATHS if path.stem in SURELY_HARMFUL]


def name(value):
    return str(value) if isinstance(value, Setting) else value.stem


@pytest.fixture(scope="session")
def futures(request):
    """Run all selected programs, several at a time. Maps (setting, path) to a future."""
    if reason := runner.cannot_run():
        fail_or_skip(reason)
    envelopes = runner.Runner()
    calls = [item.callspec.params for item in request.session.items if "futures" in getattr(item, "fixturenames", ())]
    pairs = [(call["setting"], call["path"]) for call in calls]
    # Those that need several slots first, so that no slots stay empty until there are enough; and the longest first.
    pairs.sort(key=lambda pair: (runner.weight(*reversed(pair)), expected_s(pair)), reverse=True)
    yield {pair: envelopes.start(*reversed(pair)) for pair in pairs}
    envelopes.close()


def expected_s(pair):
    """Longest duration of a program in a setting, in seconds."""
    setting, path = pair
    if "hung" in known.miss(path.stem, setting):
        return runner.HUNG_S
    program = programs.load(path)
    repeats = 1 + sum(int(program.fields.get(what, 0)) for what in ("TESTS", "CELLS"))
    return repeats * program.wall_s(trial.WALL_S) + float(program.fields.get("AFTER", trial.SETTLE_S))


@pytest.mark.parametrize(("setting", "path"), CASES, ids=name)
def test_an_attack_program_violates_no_invariant(setting, path, futures, outcomes):
    outcome = futures[setting, path].result()
    outcomes.append(outcome)
    if outcome.unavailable:
        fail_or_skip(f"setting {setting} is not available here: {outcome.unavailable}")
    expected = known.miss(path.stem, setting)
    if expected and not expected.startswith("sometimes") and not outcome.misses:
        pytest.fail(f"{setting} now contains {path.stem}: remove it from known_misses.json", pytrace=False)
    if outcome.misses and not expected:
        pytest.fail(f"{path.name} in setting {setting}: " + "; ".join(outcome.misses), pytrace=False)


@pytest.mark.parametrize(("setting", "path"), HARMED, ids=name)
def test_the_harness_detects_harm_without_isolation(setting, path, futures):
    assert futures[setting, path].result().misses
