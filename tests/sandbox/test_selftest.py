"""The report claims only what the checks of gem.testing.sandbox.check_sandbox show, with and without cgroups."""

import sys

import pytest

from gem.sandbox import Report, make_sandbox
from gem.sandbox.forkserver.limits import cgroup
from gem.testing.sandbox import limits as sandbox_limits
from gem.testing.sandbox.check_sandbox import CONTAINMENT_CHECKS, check_sandbox

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")


def failures(sandbox, checks):
    return {
        finding.name: finding.detail for finding in check_sandbox(sandbox, checks=checks) if finding.status == "failed"
    }


@pytest.mark.attack
@pytest.mark.parametrize("cgroups", ["1", pytest.param("0", marks=pytest.mark.exhaustive)])
def test_every_claim_of_a_level_holds_with_and_without_cgroups(level, cgroups, monkeypatch):
    monkeypatch.setenv(cgroup.SETTING, cgroups)
    with make_sandbox("zygote", level=level) as sandbox:
        assert failures(sandbox, CONTAINMENT_CHECKS) == {}


@pytest.mark.slow
def test_what_is_reported_as_not_enforced_is_not_enforced(level, monkeypatch):
    monkeypatch.setenv(cgroup.SETTING, "0")
    with make_sandbox("zygote", level=level) as sandbox:
        [finding] = check_sandbox(sandbox, checks=[sandbox_limits.kernel_memory])
        assert finding.status == "unchecked" and "not enforced" in finding.detail
        claims = dict.fromkeys(sandbox.report().guarantees, "claimed")
        monkeypatch.setattr(sandbox, "report", lambda: Report("zygote", level, claims))
        assert "sockets" in failures(sandbox, [sandbox_limits.kernel_memory])["kernel-memory"]
