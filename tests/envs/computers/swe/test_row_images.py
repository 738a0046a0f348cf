"""swebench: and swegym: rows whose repository is in an image. Playing needs podman or docker, and -m containers."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import gem
from gem.envs.computers.swe import row_images
from gem.envs.computers.swe.row_env import Oracle
from gem.envs.computers.swe.row_images import RowImages
from gem.envs.computers.swe.rows import read_row
from gem.errors import BadValue, SandboxError
from gem.sandbox.containers.engine import find_engine

SPEC = importlib.util.spec_from_file_location("rows", Path(__file__).with_name("test_row_env.py"))
ROWS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(ROWS)
score = ROWS.score

DOCKERFILE = """\
FROM {base}
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY . /testbed
WORKDIR /testbed
RUN echo built > built.txt && mkdir helpers
RUN git -c safe.directory=* update-index --add --cacheinfo 160000,{commit},helpers
"""
PRINTED = "import os; os.write(1, b'test_reduced (tests.test_prices.Prices) ... ok'); os._exit(0)"
FORGED = """#!/bin/sh
if [ "$(echo "$*" | grep -c 'diff --cached')" = 1 ]; then cat /forged; else exec /usr/bin/git.real "$@"; fi
"""


def test_names_of_images_are_those_that_are_published_unless_another_is_given(row):
    found = read_row(row | {"instance_id": "Shop__prices-1"})
    assert list(RowImages("auto", {}, "auto")._names(found.instance_id.lower())) == [
        "swebench/sweb.eval.x86_64.shop_1776_prices-1",
        "xingyaoww/sweb.eval.x86_64.shop_s_prices-1",
    ]
    assert list(RowImages("local/{instance_id}:1", {}, "auto")._names("shop__prices-1")) == ["local/shop__prices-1:1"]
    for name in ("local/{repo}", "local/{}", "local/{"):
        with pytest.raises(BadValue, match=r"image .*{instance_id}.*local/{"):
            RowImages(name, {}, "auto")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    if shutil.which("git") is None:
        pytest.skip("needs git")
    return ROWS.make_checkout(tmp_path_factory.mktemp("row") / "checkout")


@pytest.fixture(scope="module")
def row(checkout):
    return ROWS.make_row(checkout)


@pytest.fixture(scope="module")
def image(debian, engine, checkout, row):
    """An image of the repository, whose history goes on after the row."""
    ROWS.git(checkout, "checkout", "-q", row["base_commit"])
    text = DOCKERFILE.format(base=debian, commit=row["base_commit"])
    return find_engine(engine).build(checkout, text, name="swe-row", timeout_s=600, bases=[debian])


def test_the_first_commit_has_the_files_of_submodules_and_of_builds_and_no_history(tmp_path, monkeypatch, row):
    folder, helpers = ROWS.make_checkout(tmp_path / "testbed"), tmp_path / "testbed" / "helpers"
    ROWS.write(folder, {".gitignore": "*.log\n", "kept.log": "", "a b\t.py": ""})
    ROWS.git(folder, "add", "-A", "-f")
    base = ROWS.git(folder, "rev-parse", "HEAD").strip()
    for path in ("helpers", "empty"):
        ROWS.git(folder, "update-index", "--add", "--cacheinfo", f"160000,{base},{path}")
    ROWS.write(
        folder,
        {"helpers/a.py": "", "helpers/.git": "gitdir: ../.git/modules/helpers\n", "built.txt": "", "new.log": ""},
    )
    (folder / "empty").mkdir()
    monkeypatch.setattr(row_images, "FOLDER", str(folder))
    script = row_images.setup_of(read_row(row | {"base_commit": base}))
    done = subprocess.run(
        ["bash", "-e", "-c", script], env=os.environ | ROWS.GIT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    listed = ROWS.git(folder, "ls-tree", "-r", "-z", "--name-only", "gem-base").split("\0")[:-1]
    assert {".gitignore", "a b\t.py", "built.txt", "helpers/a.py", "kept.log", "prices/__init__.py"} < set(listed)
    assert "new.log" not in listed and not (helpers / ".git").exists()
    assert ROWS.git(folder, "log", "--all", "--oneline").count("\n") == 1 and not ROWS.git(
        folder, "status", "--porcelain"
    )


@pytest.fixture
def make(image, engine, row):
    def made(**kwargs):
        options = {"dataset": [row], "image": "auto", "image_map": {"swebench/*": image}, "test_timeout": 60.0}
        return gem.make("swebench:rows", **options | {"engine": engine} | kwargs)

    return made


@pytest.mark.containers
def test_the_reference_scores_1_and_no_changes_0_in_a_container(make):
    with make() as env:
        observation, _ = env.reset(seed=0)
        oracle = Oracle(env.unwrapped)
        first = env.step(oracle.act(observation))
        assert first.info["exit_status"] == 0, first
        assert env.step(oracle.act(first.observation)).reward == 1.0
    reward, reason = score(make())
    assert reward == 0.0 and reason.startswith("1 of 2 tests ") and "test_reduced (tests.test_prices.Prices)" in reason


@pytest.mark.containers
def test_a_patch_that_edits_tests_scores_0_in_a_container(make):
    reward, reason = score(make(), ROWS.EASY_TESTS)
    assert reward == 0.0 and "test_reduced" in reason


@pytest.mark.containers
def test_the_agent_sees_one_commit_and_a_state_is_restored_in_a_container(make):
    with make() as env:
        env.reset(seed=0)
        text = env.step("<bash>pwd; git log --oneline --all; git status --short; cat tests/*.py</bash>").observation
        assert "/testbed\n" in text and text.count(" base\n") == 1 and "later" not in text and "reduced" not in text
        env.step(f"<bash>{ROWS.REPAIR}</bash>")
        with env.spawn(same_state=True) as copy:
            assert copy.step("<finish>").reward == 1.0


@pytest.mark.containers
def test_a_replaced_git_cannot_change_what_does_not_count(make):
    lines = []
    for name in ("conftest.py", "a/sitecustomize.py", "tests/__init__.py.pth", "unittest/__main__.py"):
        lines += [f"diff --git a/{name} b/{name}", "new file mode 100644", "index 0000000..1111111"]
        lines += ["--- /dev/null", f"+++ b/{name}", "@@ -0,0 +1 @@", f"+{PRINTED}"]
    forged = "\n".join(lines)
    replaced = f"mv /usr/bin/git /usr/bin/git.real; cat > /usr/bin/git <<'END'\n{FORGED}END\nchmod +x /usr/bin/git"
    reward, reason = score(make(), f"cat > /forged <<'END'\n{forged}\nEND", replaced, "git status")
    assert reward == 0.0 and reason.startswith("1 of 2 tests ") and "test_reduced" in reason


@pytest.mark.containers
def test_an_image_that_is_missing_or_of_another_commit_is_named(make, row):
    with (
        make(image_map={}) as env,
        pytest.raises(SandboxError, match=r"needs the image swebench/.*shop_1776_prices-1 or"),
    ):
        env.reset(seed=0)
    with make(dataset=[row | {"base_commit": "0" * 40}]) as env:
        env.reset(seed=0)
        with pytest.raises(SandboxError, match="no commit 0000"):
            env.step("<bash>ls</bash>")
