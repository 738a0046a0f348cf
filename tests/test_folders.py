"""Folders of runs: whose they are, one writer at a time, and no links to other places."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gem._internal import folders
from gem._internal.folders import LOCK, FolderLock, check_own, is_own, open_to_append, plain, plain_tree, write_text
from gem.errors import BadValue

HELD = "import os, sys, gem._internal.folders as f; from pathlib import Path; lock = f.FolderLock(Path(sys.argv[1])); "


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file of this user outside the folder."""
    (tmp_path / "target").write_text("mine")
    return tmp_path / "target"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of settings of a folder that this user has made."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "run").mkdir()
    write_text(tmp_path / "run" / "settings.json", "{}\n")
    folders.remember(tmp_path / "run" / "settings.json")
    return tmp_path / "run" / "settings.json"


def holds(folder: Path, then: str) -> subprocess.Popen[str]:
    """Start a process that takes the lock of a folder and says so."""
    code = f"{HELD}print('held', flush=True); {then}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("kind", ["link", "dangling link", "link to a folder", "fifo"])
@pytest.mark.parametrize("use", [plain, open_to_append, lambda file: write_text(file, "x"), plain_tree])
def test_a_link_or_a_pipe_is_refused_by_name_and_its_target_untouched(kind: str, use: Callable, target: Path):
    file = target.parent / "folder" / "file"
    file.parent.mkdir()
    if kind == "fifo":
        os.mkfifo(file)
    else:
        file.symlink_to({"link": target, "dangling link": target / "no", "link to a folder": target.parent}[kind])
    with pytest.raises(BadValue, match=r"folder/file is (a symbolic link|neither)"):
        use(file)
    assert target.read_text() == "mine"


def test_a_link_made_as_the_draft_of_a_file_is_refused_and_its_target_untouched(target: Path):
    (target.parent / ".report.json").symlink_to(target)
    with pytest.raises(BadValue, match=r"\.report\.json is a symbolic link"):
        write_text(target.parent / "report.json", "{}")
    assert target.read_text() == "mine"


def test_a_second_name_of_a_file_is_not_appended_to(target: Path):
    os.link(target, target.parent / "metrics.jsonl")
    with pytest.raises(BadValue, match=r"metrics\.jsonl has a second name"):
        open_to_append(target.parent / "metrics.jsonl")


def test_a_link_deep_in_a_folder_is_found(target: Path):
    (target.parent / "checkpoints" / "update-1").mkdir(parents=True)
    (target.parent / "checkpoints" / "update-1" / "weights").symlink_to(target)
    with pytest.raises(BadValue, match="update-1/weights is a symbolic link"):
        plain_tree(target.parent / "checkpoints")


def test_a_folder_that_this_user_made_is_its_own_also_when_it_is_renamed(own: Path, tmp_path: Path):
    assert is_own(own)
    own.parent.rename(tmp_path / "renamed")
    assert is_own(tmp_path / "renamed" / "settings.json")
    assert (tmp_path / "state" / "gem" / "folders").stat().st_mode & 0o777 == 0o700


def test_a_copied_folder_is_not_its_own_whatever_times_the_copy_has(own: Path, tmp_path: Path):
    shutil.copytree(own.parent, tmp_path / "copy")
    copy = tmp_path / "copy" / "settings.json"
    os.utime(copy, ns=(own.stat().st_atime_ns, own.stat().st_mtime_ns))
    assert is_own(own) and not is_own(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own.write_text('{"base_url": "http://other"}'),
        lambda own: own.write_text(own.read_text()),  # by another program
        lambda own: os.link(own, own.parent / "again"),
        lambda own: own.parent.chmod(0o777),
        lambda own: Path(os.environ["XDG_STATE_HOME"], "gem", "folders").chmod(0o777),
        lambda own: os.environ.update(XDG_STATE_HOME="state"),  # in the current folder
    ],
)
def test_a_folder_that_others_may_have_changed_is_not_its_own(own: Path, change: Callable[[Path], object], monkeypatch):
    monkeypatch.chdir(own.parent.parent)
    monkeypatch.setenv("HOME", str(own.parent))
    change(own)
    assert not is_own(own)


def test_a_folder_of_another_user_is_not_its_own(own: Path, monkeypatch: pytest.MonkeyPatch):
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert not is_own(own)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_trust_in_a_folder_of_another_user_is_not_remembered(own: Path):
    os.chown(own, 12345, -1)
    check_own(own, {"env": "x"}, trust=True)
    assert not is_own(own)


def test_an_edit_shows_even_if_the_clock_was_set_back(own: Path, monkeypatch: pytest.MonkeyPatch):
    before = own.stat()
    own.write_text('{"base_url": "http://other"}')
    monkeypatch.setattr(folders.os, "fstat", lambda descriptor: before)
    assert not is_own(own)


def test_what_a_folder_would_choose_is_said_and_trust_is_remembered(own: Path):
    chosen = {"base_url": "http://other/v1", "api_key_env": "MY_KEY", "text": "\x1b[2J" * 999}
    check_own(own, chosen, trust=False)
    own.write_text("{}")
    check_own(own, {}, trust=False)
    with pytest.raises(BadValue, match=r'base_url = "http://other/v1"; api_key_env = "MY_KEY".*--trust') as error:
        check_own(own, chosen, trust=False)
    assert str(error.value).isprintable() and len(str(error.value)) < 900
    with pytest.raises(BadValue, match="and 980 more") as error:
        check_own(own, {f"{number}" * 99: "x" * 999 for number in range(1000)}, trust=False)
    assert len(str(error.value)) < 6000
    check_own(own, chosen, trust=True)
    check_own(own, chosen, trust=False)


@pytest.mark.parametrize("home", ["", "relative", "/proc/1/none"])
def test_without_a_home_folder_nothing_fails_and_one_warning_says_what_follows(own, home, monkeypatch, caplog):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", home)
    monkeypatch.chdir(own.parent)
    folders.remember(own)
    (record,) = caplog.records
    assert "--trust" in record.getMessage() and "\n" not in record.getMessage()
    assert not is_own(own) and os.listdir(own.parent) == ["settings.json"]


def test_one_process_has_a_lock_and_the_other_learns_which(tmp_path: Path):
    process = holds(tmp_path, "sys.stdin.read()")
    try:
        with pytest.raises(BadValue, match=rf"{tmp_path} is being written by process {process.pid} on \S+ since 20"):
            FolderLock(tmp_path)
    finally:
        process.communicate()
    lock = FolderLock(tmp_path)
    with pytest.raises(BadValue, match="by this process"):
        FolderLock(tmp_path)
    lock.close()
    FolderLock(tmp_path).close()
    assert os.listdir(tmp_path) == []


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path):
    process = holds(tmp_path, "os.kill(os.getpid(), 9)")
    process.communicate()
    assert process.returncode == -signal.SIGKILL and (tmp_path / LOCK).read_text().startswith(
        f"process {process.pid} on "
    )
    FolderLock(tmp_path).close()


def test_the_lock_of_another_machine_is_kept_until_someone_deletes_it(tmp_path: Path):
    lost = "process 12 on elsewhere since 2026-01-02T03:04:05+00:00 (boot another)\n"
    (tmp_path / LOCK).write_text(lost)
    with pytest.raises(BadValue, match=rf"process 12 on elsewhere since 2026-.*if it has crashed, delete .*{LOCK}"):
        FolderLock(tmp_path)
    assert (tmp_path / LOCK).read_text() == lost
    (tmp_path / LOCK).unlink()
    FolderLock(tmp_path).close()


def test_locks_of_this_machine_are_taken_over_after_a_reboot_and_in_another_container(tmp_path: Path):
    host, boot = folders._machine()
    for of in (f"{host} since then (boot before)", f"other-container since then (boot {boot})"):
        (tmp_path / LOCK).write_text(f"process 1 on {of}\n")
        FolderLock(tmp_path).close()


@pytest.mark.parametrize("text", ["", "\0" * 999, "process 1\x1b[2J on x", "process 99999999999999999999 on"])
def test_a_lock_that_another_program_wrote_does_not_matter(text: str, tmp_path: Path):
    (tmp_path / LOCK).write_text(text)
    FolderLock(tmp_path).close()


def test_without_locks_of_the_file_system_what_the_file_says_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(folders.fcntl, "flock", refuse)
    lock = FolderLock(tmp_path)
    with pytest.raises(BadValue, match="by this process"):
        FolderLock(tmp_path)
    lock.close()
    (tmp_path / LOCK).write_text(f"process 1 on {folders._machine()[0]} since then (boot now)\n")
    with pytest.raises(BadValue, match="if it has crashed, delete"):
        FolderLock(tmp_path)


def test_a_forked_process_does_not_give_the_lock_back(tmp_path: Path):
    lock = FolderLock(tmp_path)
    if (child := os.fork()) == 0:
        lock.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / LOCK).exists()
    with pytest.raises(BadValue, match="being written"):
        FolderLock(tmp_path)
    lock.close()
