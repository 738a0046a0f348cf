"""Missing and unsupported frameworks are one line with the command that installs them."""

from __future__ import annotations

import runpy
import sys
from importlib import metadata
from pathlib import Path

import pytest

from gem.errors import MissingDependency

pytest.importorskip("tomllib")
from gem.integrations.shared.versions import check_framework, frameworks

ROOT = Path(__file__).parents[3]
NAMES = sorted(frameworks())
PACKAGES = [name for name in NAMES if "supported" in frameworks()[name] and "install" not in frameworks()[name]]


@pytest.fixture
def installed(monkeypatch):
    """Pretend that a version is installed; None for a missing framework."""

    def pretend(version):
        def found(package):
            if version is None:
                raise metadata.PackageNotFoundError(package)
            return version

        monkeypatch.setattr("gem.integrations.shared.versions.version", found)

    return pretend


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_framework_is_one_line_with_the_pip_command(name, installed):
    installed(None)
    with pytest.raises(MissingDependency, match="is not installed; pip install '") as error:
        check_framework(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name in NAMES if "install" in frameworks()[name]])
def test_a_missing_repository_is_one_line_with_its_command(name, monkeypatch):
    monkeypatch.setitem(sys.modules, frameworks()[name]["module"], None)
    with pytest.raises(MissingDependency, match="is required but could not be imported") as error:
        check_framework(name)
    assert str(error.value).endswith(f"; {frameworks()[name]['install']}") and "\n" not in str(error.value)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_tested_version_is_supported(name, installed):
    installed(frameworks()[name]["tested"])
    check_framework(name)


@pytest.mark.parametrize("version", ["0.1", "999.0"])
def test_an_unsupported_version_says_which_are_supported(version, installed):
    installed(version)
    with pytest.raises(MissingDependency, match=r"1\.16 .*pip install 'trl>=1\.16,<2'"):
        check_framework("trl")


def test_the_table_of_the_document_is_that_of_the_recorded_results():
    scripts = runpy.run_path(str(ROOT / "scripts/integrations.py"))
    page = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
    assert scripts["document"]() == page.partition(scripts["BEGIN"])[2].partition(scripts["END"])[0]


def test_every_framework_has_an_adapter_and_a_contract_test():
    for name in NAMES:
        assert (ROOT / f"src/gem/integrations/{name}.py").is_file()
        assert (ROOT / f"tests/integrations/test_{name}.py").is_file()
