"""swebench: and swegym: rows on local checkouts: the reference scores 1; no changes, and changes of tests, score 0."""

import json
import os
import pickle
import shutil
import subprocess

import pytest

import gem
from gem.envs.computers.swe.row_env import Oracle
from gem.errors import BadValue, MissingDependency
from gem.sandbox import Limits
from gem.sandbox.forkserver.host.probe import SHELL_PATH

WRONG, RIGHT = "return price - percent", "return price * (100 - percent) / 100"
FILES = {
    "README.md": "Prices.\n",
    "prices/__init__.py": f"def reduced(price, percent):\n    {WRONG}\n\n\n"
    "def total(prices):\n    return sum(prices)\n",
    "tests/__init__.py": "",
    "tests/test_prices.py": "import unittest\n\nfrom prices import total\n\n\nclass Prices(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n",
    "tests/run.sh": "#!/bin/sh\nexec python3 -m unittest -v tests.test_prices\n",
}
NEW_TEST = "    def test_reduced(self):\n        self.assertEqual(reduced(200, 10), 180)\n"
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
GIT |= {
    f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "a"), ("EMAIL", "b@c"))
}
GIT |= {"GIT_AUTHOR_DATE": "1735689600 +0000", "GIT_COMMITTER_DATE": "1735689600 +0000"}


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, env=os.environ | GIT, check=True, capture_output=True)
    return done.stdout.decode()


def diff(folder, path, old, new):
    """Return the diff of one change, which is taken back."""
    before = (folder / path).read_text()
    (folder / path).write_text(before.replace(old, new))
    changes = git(folder, "diff")
    (folder / path).write_text(before)
    return changes


@pytest.fixture
def checkout(tmp_path):
    """A git repository with a fault at its first commit; row adds a later commit."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    return make_checkout(tmp_path / "checkout")


def make_checkout(folder):
    write(folder, FILES)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def row(checkout):
    return make_row(checkout)


def make_row(checkout):
    base = git(checkout, "rev-parse", "HEAD").strip()
    patch = diff(checkout, "prices/__init__.py", WRONG, RIGHT)
    before = (checkout / "tests/test_prices.py").read_text()
    (checkout / "tests/test_prices.py").write_text(before.replace("import total", "import reduced, total") + NEW_TEST)
    tests = git(checkout, "diff")
    write(checkout, {"prices/__init__.py": "a later state\n"})
    git(checkout, "commit", "-q", "-a", "-m", "later")
    return {
        "instance_id": "shop__prices-1",
        "repo": "shop/prices",
        "base_commit": base,
        "problem_statement": "A reduction of 10 percent of 200 gives 190, not 180.",
        "hints_text": "Look at reduced().",
        "patch": patch,
        "test_patch": tests,
        "FAIL_TO_PASS": json.dumps(["test_reduced (tests.test_prices.Prices)"]),
        "PASS_TO_PASS": ["test_total (tests.test_prices.Prices)"],
        "version": "1.0",
        "environment_setup_commit": base,
        "test_cmd": "sh tests/run.sh",
    }


@pytest.fixture
def make(checkout, row, machines):
    for program in ("git", "python3"):
        if shutil.which(program, path=SHELL_PATH) is None:
            pytest.skip(f"needs {program} in {SHELL_PATH}")

    def made(family="swebench", **kwargs):
        options = {"dataset": [row], "repositories": {"shop/prices": checkout}, "test_timeout": 30.0} | kwargs
        return gem.make(f"{family}:rows", **options)

    return made


def score(env, *commands):
    """Return the reward after these commands, and what the verifier says."""
    with env:
        env.reset(seed=0)
        for command in commands:
            step = env.step(f"<bash>{command}</bash>")
            assert not step.terminated, step
        step = env.step("<finish>")
        assert step.terminated
        return step.reward, step.info.get("verifier", "")


REPAIR = "sed -i 's/price - percent/price * (100 - percent) \\/ 100/' prices/__init__.py"


@pytest.mark.parametrize("family", ["swebench", "swegym"])
def test_the_reference_scores_1_and_no_changes_0(make, family):
    with make(family) as env:
        observation, info = env.reset(seed=0)
        assert "10 percent" in observation and "Look at" not in observation
        assert info == {"idx": 0, "instance_id": "shop__prices-1", "repo": "shop/prices"}
        oracle = Oracle(env.unwrapped)
        first = env.step(oracle.act(observation))
        assert first.info["exit_status"] == 0, first
        step = env.step(oracle.act(first.observation))
        assert (step.reward, step.terminated, str(step.info["stop_reason"])) == (1.0, True, "solved"), step
    reward, reason = score(make(family))
    assert reward == 0.0
    assert reason.startswith("1 of 2 tests ") and "test_reduced (tests.test_prices.Prices)" in reason


EASY_TESTS = "printf 'import unittest\\nclass Prices(unittest.TestCase):\\n def test_reduced(self): pass\\n"
EASY_TESTS += " def test_total(self): pass\\n' > tests/test_prices.py"


@pytest.mark.parametrize(
    "command",
    [
        EASY_TESTS,
        "rm -r tests",
        "rm -rf .git",
        "sed -i 's/return price.*/return 180 if price == 200 else 1 \\/ 0/; s/sum(prices)/0/' prices/__init__.py",
        "echo 'import os; os._exit(0)' > prices/__init__.py",
        "echo 'import os; os._exit(0)' | tee sitecustomize.py conftest.py > usercustomize.py",
        "rm -r tests; ln -s /tmp tests; cp prices/__init__.py /tmp/test_prices.py",
        "git commit -q --allow-empty -m x; git tag -f gem-base; git checkout -q --orphan other; git rm -rfq .",
        "echo 'test_reduced (tests.test_prices.Prices) ... ok' > README.md; ln -sf README.md tests/test_prices.py",
        "echo 'raise SystemExit' >> prices/__init__.py",
        "echo 'while True: pass' >> prices/__init__.py",
        "mkdir unittest; echo 'print(\"test_total (tests.test_prices.Prices) ... ok\\ntest_reduced "
        "(tests.test_prices.Prices) ... ok\")' | tee unittest/__main__.py > unittest/__init__.py",
    ],
)
def test_changes_of_tests_and_partial_repairs_score_0(make, command):
    reward, reason = score(make(test_timeout=1.0 if "while" in command else 30.0), command)
    assert reward == 0.0 and reason


def test_a_repair_counts_whatever_the_agent_does_to_tests_and_to_git(make):
    mess = f"{EASY_TESTS}; echo 'import os; os._exit(1)' | tee conftest.py > sitecustomize.py"
    assert score(make(), REPAIR, mess, "git add -A; touch .git/index.lock") == (1.0, "")


def test_a_repair_counts_if_it_is_committed(make):
    assert score(make(), REPAIR, "git commit -q -a -m repair && git gc -q") == (1.0, "")


def test_a_repair_that_breaks_another_test_scores_0(make):
    reward, reason = score(make(), REPAIR, "sed -i 's/sum(prices)/0/' prices/__init__.py")
    assert reward == 0.0 and "test_total" in reason


def test_the_agent_sees_one_commit_and_not_the_tests(make):
    with make(hints=True) as env:
        observation, _ = env.reset(seed=0)
        assert "Look at reduced()." in observation
        text = env.step("<bash>pwd; git log --oneline --all; git status --short; cat tests/*.py</bash>").observation
        assert "/testbed\n" in text and text.count(" base\n") == 1
        assert "later" not in text and "reduced" not in text
        for copied in (env.spawn(same_state=True), pickle.loads(pickle.dumps(env))):
            with copied:
                assert "README" in copied.step("<bash>ls</bash>").observation


def test_rows_are_read_from_a_file_and_one_can_be_chosen(make, row, tmp_path, checkout, monkeypatch):
    rows = [row | {"instance_id": f"shop__prices-{number}"} for number in range(1, 5)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    (tmp_path / "repositories/shop").mkdir(parents=True)
    (tmp_path / "repositories/shop/prices").symlink_to(checkout)
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    with gem.make(f"swegym:{tmp_path}/rows.jsonl") as env:
        assert env.instances() == 4
        numbers = [env.reset(seed=3)[1]["idx"], *(env.reset()[1]["idx"] for _ in range(3))]
        assert sorted(numbers) == [0, 1, 2, 3]
        env.unwrapped.ask_only([2, 1], shuffle=False)
        assert [env.reset(seed=seed)[1]["idx"] for seed in (0, 1)] == [2, 1]
        assert env.reset(idx=3)[1]["instance_id"] == "shop__prices-4"
    with gem.make(f"swebench:{tmp_path}/rows.jsonl#shop__prices-3") as env:
        assert {env.reset(seed=seed)[1]["idx"] for seed in range(5)} == {2}
    with pytest.raises(BadValue, match=r"'shop__price-3'.*'shop__prices-\d'"):
        gem.make(f"swebench:{tmp_path}/rows.jsonl#shop__price-3")


def test_a_folder_without_git_is_used_as_it_is(make, tmp_path):
    write(tmp_path / "plain", FILES)
    assert score(make(repositories={"shop/prices": tmp_path / "plain"}), REPAIR) == (1.0, "")


def test_what_a_caller_got_wrong_is_an_error(make, row, checkout):
    for kwargs, message in (
        ({"dataset": None}, "'rows' .*dataset file"),
        ({"test_timeout": 0}, "test_timeout must be above 0"),
        ({"max_turns": 0}, "max_turns .*at least 1"),
        ({"limits": Limits(), "dataset": []}, "no rows"),
    ):
        with pytest.raises(BadValue, match=message):
            make(**kwargs)
    for kwargs, message in (
        ({"repositories": {}}, "checkout of 'shop/prices'.*repositories="),
        ({"repositories": {"shop/prices": "/no/such"}}, "is no folder"),
        ({"dataset": [row | {"base_commit": "0" * 40}]}, "has no commit 0000"),
        ({"dataset": [{**row, "repo": 3}]}, "row 0: .*'repo'.*got 3"),
    ):
        with make(**kwargs) as env, pytest.raises(BadValue, match=message):
            env.reset(seed=0)
    with make(dataset=[row | {"log_parser": "none"}]) as env, pytest.raises((BadValue, MissingDependency)):
        env.reset(seed=0)  # not only at the end of the episode
    broken = row | {"test_patch": row["test_patch"].replace("import total", "import nothing")}
    with make(dataset=[broken]) as env:
        env.reset(seed=0)
        with pytest.raises(BadValue, match=r"test_patch .*shop__prices-1 .*shop/prices"):
            env.step("<finish>")
