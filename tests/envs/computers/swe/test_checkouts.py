"""Local checkouts: which folder is used, and the files of a folder. test_row_env.py reads commits."""

import subprocess

import pytest

from gem.envs.computers.swe.checkouts import files_at, find_checkout
from gem.errors import BadValue


def test_a_named_folder_is_preferred_to_that_in_gem_data(tmp_path, monkeypatch):
    monkeypatch.delenv("GEM_DATA", raising=False)
    with pytest.raises(BadValue, match=r"checkout of 'o/n'.*repositories={'o/n': "):
        find_checkout("o/n", None)
    (tmp_path / "repositories/o/n").mkdir(parents=True)
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    assert find_checkout("o/n", {}) == tmp_path / "repositories/o/n"
    assert find_checkout("o/n", {"o/n": tmp_path}) == tmp_path
    with pytest.raises(BadValue, match="is no folder"):
        find_checkout("o/n", {"o/n": tmp_path / "missing"})


def test_a_folder_keeps_its_links_and_executable_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/run").write_text("x")
    (tmp_path / "a/run").chmod(0o700)
    (tmp_path / "b").symlink_to("a/run")
    found = [(entry.path, entry.kind, oct(entry.mode)) for entry in files_at(tmp_path, "0" * 40, "/r")]
    assert found == [
        ("/r", "folder", "0o755"),
        ("/r/a", "folder", "0o755"),
        ("/r/a/run", "file", "0o755"),
        ("/r/b", "link", "0o644"),
    ]


def test_the_settings_of_a_repository_run_nothing(tmp_path):
    repository, ran = tmp_path / "repository", tmp_path / "ran"

    def git(*command):
        return subprocess.run(["git", "-C", repository, *command], check=True, capture_output=True, text=True).stdout

    repository.mkdir()
    git("init", "-q")
    (repository / "a.txt").write_text("text\n")
    (repository / "a.bin").symlink_to("a.txt")
    (repository / ".gitattributes").write_text("*.txt filter=own export-subst\nhidden export-ignore\n")
    (repository / "hidden").write_text("$Format:%H$\n")
    (repository / "run").write_text("x")
    (repository / "run").chmod(0o755)
    git("add", ".")
    git("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first")
    for name in ("smudge", "clean", "process"):
        git("config", f"filter.own.{name}", f"touch {ran}; cat")
    git("config", "core.fsmonitor", f"touch {ran}")
    git("config", "core.sshCommand", f"touch {ran}")
    found = files_at(repository, git("rev-parse", "HEAD").strip(), "/r")
    assert not ran.exists()
    assert [(entry.path, bytes(entry.content), oct(entry.mode)) for entry in found if entry.kind != "folder"] == [
        ("/r/.gitattributes", b"*.txt filter=own export-subst\nhidden export-ignore\n", "0o644"),
        ("/r/a.bin", b"a.txt", "0o644"),
        ("/r/a.txt", b"text\n", "0o644"),
        ("/r/hidden", b"$Format:%H$\n", "0o644"),
        ("/r/run", b"x", "0o755"),
    ]
