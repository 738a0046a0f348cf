"""Every program of the corpus, at every level of the zygote, each in an envelope: run by `pytest -m attack`.

A level that cannot hold on this machine fails its tests; GEM_ATTACK_MAY_SKIP=1 skips them instead. GEM_ATTACK_LEVELS
chooses levels, or other backends by name: "ns,lsm,basic" unless it is set. The level basic contains less: what it lets
through is listed in envelope/basic_misses.json, and both a new miss and one that is none any more fail. Misses that
begin with "sometimes" may go either way.
"""

import json
import os

import pytest
from envelope import programs, runner, victim
from envelope.switch import cannot

LEVELS = os.environ.get("GEM_ATTACK_LEVELS", "ns,lsm,basic").split(",")
KNOWN_MISSES = {"basic": json.loads((runner.HERE / "basic_misses.json").read_text())}
# Each harms another part of the host, and nothing stops it where there is no sandbox at all.
SURELY_HARMFUL = ("14_sysv_ipc", "22_daemon_acts_later", "31_proc_snoop", "35_read_expected_files", "42_local_services")
SURELY_HARMFUL += ("33_symlink_escape", "44_type_into_the_terminal", "66_limits_of_others", "76_other_interpreters")
pytestmark = pytest.mark.attack


@pytest.fixture(scope="session")
def futures(request):
    """All that was selected, running several at a time: (path, level) → future."""
    if reason := runner.cannot_run():
        cannot(reason)
    envelopes = runner.Runner()
    calls = [item.callspec.params for item in request.session.items if "futures" in getattr(item, "fixturenames", ())]
    pairs = sorted(((call["path"], call["level"]) for call in calls), key=expected_s, reverse=True)
    yield {pair: envelopes.start(*pair) for pair in pairs}  # the longest first, so that nothing waits for a last one
    envelopes.close()


def expected_s(pair):
    """About how long a program takes at a level, in seconds."""
    path, level = pair
    if "hung" in KNOWN_MISSES.get(level, {}).get(path.stem, ""):
        return runner.HUNG_S
    program = programs.load(path)
    return program.wall_s(victim.WALL_S) + float(program.fields.get("AFTER", victim.SETTLE_S))


@pytest.mark.parametrize("path", programs.paths(), ids=lambda path: path.stem)
@pytest.mark.parametrize("level", LEVELS)
def test_a_program_of_the_corpus_stays_within_its_walls(level, path, futures, outcomes):
    outcome = futures[path, level].result()
    outcomes.append(outcome)
    if outcome.unavailable:
        cannot(f"level {level} cannot hold here: {outcome.unavailable}")
    known = KNOWN_MISSES.get(level, {}).get(path.stem, "")
    if known and not known.startswith("sometimes") and not outcome.misses:
        pytest.fail(f"level {level} contains {path.stem} by now: take it off its list of misses", pytrace=False)
    if outcome.misses and not known:
        pytest.fail(f"{path.name} at level {level}: " + "; ".join(outcome.misses), pytrace=False)


@pytest.mark.parametrize(
    "path", [runner.HERE.parent / f"attacks/{name}.py" for name in SURELY_HARMFUL], ids=lambda p: p.stem
)
@pytest.mark.parametrize("level", ["subprocess"])
def test_the_harness_sees_the_harm_that_is_done_where_nothing_is_contained(level, path, futures):
    assert futures[path, level].result().misses
