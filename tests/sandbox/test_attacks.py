"""Run every attack program at every level of the zygote, each in a disposable container: `pytest -m attack`.

If a level is not available on this machine its tests fail, or are skipped with GEM_ATTACK_MAY_SKIP=1. GEM_ATTACK_LEVELS
selects levels or other backends by name; the default is "ns,lsm,basic". Known escapes from level basic are listed in
envelope/basic_misses.json; a new escape fails, and so does a listed one that no longer occurs, unless its entry begins
with "sometimes".
"""

import json
import os

import pytest
from envelope import programs, runner, trial
from envelope.availability import fail_or_skip

LEVELS = os.environ.get("GEM_ATTACK_LEVELS", "ns,lsm,basic").split(",")
KNOWN_MISSES = {"basic": json.loads((runner.HERE / "basic_misses.json").read_text())}
# Each harms a different part of the host if there is no sandbox.
SURELY_HARMFUL = ("14_sysv_ipc", "22_daemon_acts_later", "31_proc_snoop", "35_read_expected_files", "42_local_services")
SURELY_HARMFUL += ("33_symlink_escape", "44_type_into_the_terminal", "66_limits_of_others", "76_other_interpreters")
pytestmark = pytest.mark.attack


@pytest.fixture(scope="session")
def futures(request):
    """Run all selected programs, several at a time. Maps (path, level) to a future."""
    if reason := runner.cannot_run():
        fail_or_skip(reason)
    envelopes = runner.Runner()
    calls = [item.callspec.params for item in request.session.items if "futures" in getattr(item, "fixturenames", ())]
    pairs = sorted(((call["path"], call["level"]) for call in calls), key=expected_s, reverse=True)
    yield {pair: envelopes.start(*pair) for pair in pairs}  # longest first, to finish early
    envelopes.close()


def expected_s(pair):
    """Estimated duration of a program at a level, in seconds."""
    path, level = pair
    if "hung" in KNOWN_MISSES.get(level, {}).get(path.stem, ""):
        return runner.HUNG_S
    program = programs.load(path)
    return program.wall_s(trial.WALL_S) + float(program.fields.get("AFTER", trial.SETTLE_S))


@pytest.mark.parametrize("path", programs.paths(), ids=lambda path: path.stem)
@pytest.mark.parametrize("level", LEVELS)
def test_an_attack_program_does_not_escape(level, path, futures, outcomes):
    outcome = futures[path, level].result()
    outcomes.append(outcome)
    if outcome.unavailable:
        fail_or_skip(f"level {level} is not available here: {outcome.unavailable}")
    known = KNOWN_MISSES.get(level, {}).get(path.stem, "")
    if known and not known.startswith("sometimes") and not outcome.misses:
        pytest.fail(f"level {level} now contains {path.stem}: remove it from basic_misses.json", pytrace=False)
    if outcome.misses and not known:
        pytest.fail(f"{path.name} at level {level}: " + "; ".join(outcome.misses), pytrace=False)


@pytest.mark.parametrize(
    "path", [runner.HERE.parent / f"attacks/{name}.py" for name in SURELY_HARMFUL], ids=lambda p: p.stem
)
@pytest.mark.parametrize("level", ["subprocess"])
def test_the_harness_detects_harm_without_isolation(level, path, futures):
    assert futures[path, level].result().misses
