"""gem check."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from gem.cli import main
from gem.datasets.load import GEM_DATA


@pytest.mark.slow
def test_gem_check_prints_every_check_of_one_env(capsys):
    assert main(["check", "game:GuessTheNumber-v0-easy", "--episodes", "10"]) == 0
    assert "passed     seed-determinism" in capsys.readouterr().out


@pytest.mark.slow
def test_gem_check_prints_one_line_per_env_for_several_with_the_share_of_distinct_rows(capsys):
    assert main(["check", "[ql]*:[FR]*s", "--seeds", "1", "--episodes", "3", "--rows", "7"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("ok      logic:Rules") and "\nok      qa:Facts" in out
    assert "\n        7 of 1,000,000 rows, 7 distinct (100.0%)\n" in out
    assert "\n2 environments, 0 with failed checks" in out and err == ""


@pytest.mark.slow
def test_gem_check_of_a_broken_class_exits_with_1(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "testing"))
    assert main(["check", "broken_envs:StepsAfterTheEnd", "--json", "--seeds", "1", "--episodes", "5"]) == 1
    [report] = json.loads(capsys.readouterr().out)
    assert [result["name"] for result in report["results"] if result["status"] == "failed"] == ["episode-over"]


@pytest.mark.parametrize("flags", [["gmae:*"], ["no_such_module:Env"], ["game:*", "--episodes", "0"]])
def test_a_command_line_error_exits_with_2(flags, usage_error):
    usage_error("check", *flags)


@pytest.mark.slow
def test_a_slow_environment_is_checked_with_fewer_episodes_and_reported_as_slow(capsys):
    assert main(["check", "game:GuessTheNumber-v0-easy", "--seconds", "0.00001", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (len(report["seeds"]), report["episodes"]) == (1, 1)
    assert any(r["name"] == "speed" and "1 seed and 1 episode" in r["detail"] for r in report["results"])


@pytest.mark.parametrize("flag", [("--rows", "0"), ("--rows", "some"), ("--seconds", "0")])
def test_invalid_numbers_are_rejected(flag, usage_error):
    assert flag[0] in usage_error("check", "game:GuessTheNumber-v0-easy", *flag)


@pytest.mark.slow
def test_a_missing_dataset_is_unchecked(capsys, monkeypatch):
    monkeypatch.delenv(GEM_DATA, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if importlib.util.find_spec("huggingface_hub") is not None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert main(["check", "qa:HotpotQA"]) == 0
    out = capsys.readouterr().out
    assert "dataset 'axon-rl/HotpotQA'" in out and out.startswith("unchecked  qa:HotpotQA")


@pytest.mark.parametrize("arguments", [["judge", "--model", "m"], ["judge"], ["game:*", "--model", "m"]])
def test_model_and_url_are_required_for_a_judge_and_for_nothing_else(arguments, usage_error):
    assert "--model and --base-url" in usage_error("check", *arguments)


@pytest.mark.slow
def test_the_report_fits_the_width_of_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["check", "game:GuessTheNumber-v0-easy", "--seeds", "1", "--episodes", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60 and any(line.startswith("  passed     seed-determinism") for line in lines)
