"""The contract of sandboxes: what backends get without defining it."""

import pytest

from gem.errors import SandboxError
from gem.sandbox import make_sandbox


def test_a_backend_without_machines_says_which_have_them():
    with make_sandbox("subprocess") as sandbox:
        for ask in (sandbox.machine, sandbox.require_machines):
            with pytest.raises(SandboxError, match=r"SubprocessSandbox has no machines.*level 'ns', docker or podman"):
                ask()


def test_a_backend_whose_report_names_machines_has_them(monkeypatch):
    with make_sandbox("subprocess") as sandbox:
        report = sandbox.report()
        monkeypatch.setattr(sandbox, "report", lambda: type(report)(report.backend, "", {}, machines="a container"))
        sandbox.require_machines()
