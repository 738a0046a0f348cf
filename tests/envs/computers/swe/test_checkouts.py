"""Local checkouts: which folder is used, and the files of a folder. test_row_env.py reads commits."""

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
