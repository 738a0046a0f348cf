"""Verifiers of task folders: what they get, and what a failing one means."""

import os
import stat

import pytest

from gem.envs.computers.containers.harbor import HarborEnv, leaves
from gem.envs.computers.containers.rewards import RewardMissing
from gem.envs.computers.containers.verifier import VerifierFolders, end_of, verifier_folders
from gem.errors import BadValue
from gem.sandbox import FileEntry
from gem.sandbox.machine import LINK


@pytest.mark.parametrize(
    ("path", "target", "out"),
    [
        ("/app/out/a", "b", False),
        ("/app/out/x/y/a", "../../b", False),
        ("/app/out/x/a", "./y//z", False),
        ("/app/out/a", "x/link", False),
        ("/app/out/a", "/tests/expected", True),
        ("/app/out/a", "../out/b", True),
        ("/app/out/x/a", "../../b", True),
        ("/app/out/x/a", "y/../../../b", True),
        ("/app/out/a", "x/link/b", True),
        ("/app/out/x/y/z/a", "../../link/../../tests/expected", True),
        ("/app/out/x/link/a", "b", True),
    ],
)
def test_a_link_that_leaves_its_folder_or_leads_through_a_link_is_dropped(path, target, out):
    link = FileEntry(path, target.encode(), LINK)
    assert leaves(link, "/app/out", {path, "/app/out/x/link"}) is out


def test_a_folder_of_logs_that_cannot_be_emptied_gives_no_reward(monkeypatch):
    folders = VerifierFolders()
    (folders.logs / "reward.txt").write_text("1")
    monkeypatch.setattr("pathlib.Path.unlink", lambda self: os.unlink("/proc/self/status"))
    with pytest.raises(RewardMissing, match="cannot be emptied"):
        folders.fill(None)
    monkeypatch.undo()
    folders.remove()


def test_a_verifier_may_run_its_script_whatever_the_modes_of_the_source_are(tmp_path):
    (tmp_path / "test.sh").write_text("echo 1 > /logs/verifier/reward.txt")
    (tmp_path / "test.sh").chmod(0o600)
    tmp_path.chmod(0o700)
    with verifier_folders() as folders:
        folders.fill(tmp_path)
        assert [stat.S_IMODE(path.stat().st_mode) for path in (folders.tests, folders.tests / "test.sh")] == [0o755] * 2


def test_the_end_of_a_missing_output_is_empty(tmp_path):
    assert end_of(tmp_path / "none") == ""


def test_a_folder_of_an_unknown_user_is_an_error():
    with pytest.raises(BadValue, match="harbor:~no-such-user"):
        HarborEnv("~no-such-user/x")
