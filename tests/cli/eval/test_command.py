"""gem eval."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from gem.cli import main
from gem.cli.eval.command import Config
from gem.cli.flags import parse
from gem.evaluation import Price, load_suite
from gem.evaluation.cost import read_price
from gem.trajectory import read_jsonl

GAME = "game:GuessTheNumber-v0-easy"
MODEL = ["--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--env", GAME]


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_a_policy_is_scored_and_the_records_and_reports_are_written(capsys, tmp_path):
    flags = ["--policy", "oracle", "--env", GAME, "qa:Facts", "--limit", "5", "--detect", "0.05"]
    assert main(["eval", *flags]) == 0
    out = capsys.readouterr().out
    assert "2 environments, 10 tasks (8 different), 1 rollout" in out and "95 % interval" in out
    assert "1,178 tasks" in out and "10/10 done" in out
    folder = tmp_path / "evals" / "oracle"
    if importlib.util.find_spec("matplotlib"):
        assert (folder / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert {p.name for p in folder.iterdir()} - {"scores.png"} == {
        "eval.json",
        "failures.jsonl",
        "report.json",
        "report.md",
        "report.tex",
        "trajectories.jsonl",
    }
    assert len(list(read_jsonl(folder / "trajectories.jsonl"))) == 10
    assert json.loads((folder / "report.json").read_text())["envs"][0]["solved"]["value"] == 1.0
    assert main(["eval", *flags, "--json"]) == 0  # in the next free folder
    assert json.loads(capsys.readouterr().out)["folder"] == "evals/oracle-2"


def test_two_evaluations_are_compared(capsys):
    for policy in ("oracle", "random"):
        assert main(["eval", "--policy", policy, "--env", GAME, "--limit", "5", "--out", policy]) == 0
    capsys.readouterr()
    assert main(["eval", "compare", "oracle", "random"]) == 0
    assert "random − oracle" in " ".join(capsys.readouterr().out.split())
    assert main(["eval", "compare", "oracle", "random", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["envs"][0]["shared"] == [3]


def test_a_run_is_graded_again_in_a_new_folder(capsys, tmp_path):
    assert main(["eval", "--policy", "oracle", "--env", GAME, "--limit", "5", "--out", "run"]) == 0
    records = Path("run/trajectories.jsonl")
    records.write_text(records.read_text().replace('"stop_reason": "solved"', '"stop_reason": "lost"', 1))
    capsys.readouterr()
    assert main(["eval", "rescore", "run"]) == 0
    out = capsys.readouterr().out
    assert "1 sample of 5 changed." in out and "(lost → solved)" in out and "run-rescored" in out
    assert main(["eval", "rescore", "run", "--json", "--out", "b"]) == 0
    assert len(json.loads(capsys.readouterr().out)["changes"]) == 1
    assert main(["eval", "rescore", "run"]) == 2
    assert re.search("run-rescored exists.*--out", capsys.readouterr().err)


def test_a_run_is_resumed_with_its_own_flags_and_may_change_its_concurrency(capsys):
    flags = ["--policy", "constant:\\boxed{5}", "--env", GAME, "--limit", "6", "--out", "run"]
    assert main(["eval", *flags]) == 0
    records = Path("run/trajectories.jsonl")
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:4]) + lines[4][:50])
    assert main(["eval", "--resume", "run", "--concurrency", "2"]) == 0
    assert "6/6" in capsys.readouterr().out
    assert sorted(t.episode for t in read_jsonl(records)) == list(range(6))
    assert main(["eval", "--resume", "run", "--limit", "7"]) == 2
    assert "tasks was 6, now 7" in capsys.readouterr().err


def test_a_name_is_text_and_not_markup(capsys):
    policy = "constant:[/b] [red]\x1b[31m日本\n$"
    assert main(["eval", "--policy", policy, "--env", GAME, "--limit", "2", "--out", "run"]) == 0
    shown = capsys.readouterr()
    assert "[/b] [red]\\x1b[31m日本; $" in shown.out and shown.err == ""
    assert main(["eval", "compare", "run", "run"]) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--model and --base-url, or --policy"),
        (["--model", "m"], "--model needs --base-url"),
        (["--checkpoint", "nothing"], "nothing is .*training run"),
        (["--checkpoint", "nothing", "--policy", "oracle"], "--policy or --checkpoint, not both"),
        (["--policy", "oracle", "--seeds", "run"], "--seeds .*no effect.*--policy"),
        ([*MODEL, "--device", "cuda"], "--device .*no effect"),
        (["--model", "m", "--base-url", "nonsense"], "http://127.0.0.1:8000/v1, .*'nonsense'"),
        (["--policy", "orcale", "--env", GAME], "got 'orcale'"),
        (["--policy", "oracle", "--env", "game:GuessTheNumber-v0-esy"], f"did you mean '{GAME}'"),
        (["--policy", "oracle", "--env", GAME, "--wrappers", "concatt"], "did you mean 'concat'"),
        (["--policy", "oracle", "--env", GAME, "--env-kwargs", "max_turn=3"], "did you mean 'max_turns'"),
        (["--policy", "oracle", "--env", GAME, "--limit", "0"], " limit .*at least 1.*got 0"),
        (["--policy", "oracle", "--env", GAME, "--suite", "games"], "--env or --suite, not both"),
        (["--policy", "oracle", "--env", GAME, "--detect", "5"], "got 5"),
        (["--resume", "nothing"], "nothing is .*evaluation"),
        (["--resume", "run", "--out", "other"], "--out .*no effect.*--resume"),
        (["--policy", "oracle", "--env", GAME, "--temperature", "1"], "--temperature .*no effect.*--policy"),
        (["--policy", "oracle", "--env", GAME, "--base-url", "http://x/v1"], "--base-url .*no effect.*--policy"),
        (["--policy", "oracle", "--env-kwargs", "max_turns=3"], "--env-kwargs .*no effect without --env"),
        ([*MODEL, "--temperature", "nan"], "--temperature .*>= 0.*got nan"),
        ([*MODEL, "--temperature", "-3"], "--temperature .*>= 0.*got -3"),
        ([*MODEL, "--max-tokens", "0"], "--max-tokens .*at least 1.*got 0"),
        ([*MODEL, "--top-p", "3"], r"--top-p .*\(0, 1\].*got 3"),
        ([*MODEL, "--token-limit", "0"], "--token-limit .*at least 1.*got 0"),
        ([*MODEL, "--prompt-template", "qwen3_gam"], "'qwen3_gam'.*'qwen3_game'"),
        ([*MODEL, "--native-tools"], "no environment .*tool"),
        (["--policy", "oracle", "--env", GAME, "--native-tools"], "--native-tools .*no effect.*--policy"),
        ([*MODEL, "--mcp", "no.json"], "MCP .*no.json"),
        ([*MODEL, "--timeout", "0"], "--timeout .*above 0.*got 0"),
        ([*MODEL, "--env-timeout", "nan"], "--env-timeout .*above 0.*got nan"),
        (
            [*MODEL, "--extra-body", "temperature=1", "--temperature", "0.5"],
            "--temperature .*--extra-body temperature=",
        ),
        (["--policy", "oracle", "--env", GAME, "--env-kwargs", "foo"], "--env-kwargs .*KEY=VALUE.*'foo'"),
        (["compare", "a", "b", "--limit", "3"], "--limit .*no effect.*compare"),
        (["compare", "nothing"], "at least two evaluations"),
        (["compare", "nothing", "no"], r"report nothing .No such file or directory.$"),
        (["compaer", "a", "b"], "'compaer'.*'compare'"),
        (["rescore", "nothing"], "nothing is .*evaluation"),
        (["rescore", "a", "b"], "rescore .*one evaluation.*got 2"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, usage_error, tmp_path):
    assert re.search(message, usage_error("eval", *flags))
    assert list(tmp_path.iterdir()) == []


def test_a_suite_with_a_misspelt_key_is_one_line(usage_error):
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    Path("suite.toml").write_text('[[env]]\nid = "qa:Facts"\nlimti = 3\n')
    assert re.search("'limti'.*'limit'", usage_error("eval", "--policy", "oracle", "--suite", "suite.toml"))


@pytest.mark.parametrize(("suite", "dataset"), [("math", "axon-rl/math-eval"), ("qa", "axon-rl/search-eval")])
def test_a_suite_whose_data_is_missing_is_one_line(suite, dataset, usage_error, monkeypatch, tmp_path):
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    for module in ("datasets", "sympy"):
        pytest.importorskip(module)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.delenv("GEM_DATA", raising=False)
    error = usage_error("eval", "--policy", "oracle", "--suite", suite)
    assert f"dataset '{dataset}'" in error and "put a copy in $GEM_DATA" in error and list(tmp_path.iterdir()) == []


def test_an_occupied_folder_is_one_line(usage_error, capsys):
    Path("other").mkdir()
    Path("other/notes.txt").touch()
    assert "not an empty folder" in usage_error("eval", "--policy", "oracle", "--env", GAME, "--out", "other")
    flags = ["eval", "--env", GAME, "--limit", "2", "--out", "run"]
    assert main([*flags, "--policy", "oracle"]) == 0
    capsys.readouterr()
    error = usage_error(*flags, "--policy", "random")
    assert re.search("run holds .*--resume run", error)


def test_the_commands_and_the_suite_of_the_page_are_valid(tmp_path):
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    page = (Path(__file__).parents[3] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    commands = re.findall(r"^gem eval (.*)$", page, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        parse(Config, shlex.split(command), prog="gem eval")
    prices, suite = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "prices.toml").write_text(prices)
    assert read_price(str(tmp_path / "prices.toml"), "my-model") == Price(input=2.0, output=8.0, cached_input=0.5)
    (tmp_path / "suite.toml").write_text(suite)
    assert len(load_suite(str(tmp_path / "suite.toml"))) == 4


@pytest.mark.train
class TestLocalModels:
    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls, tmp_path_factory):
        """A short training run with an evaluation after its last update."""
        pytest.importorskip("torch")
        from gem.rl.config import TrainConfig
        from gem.rl.run.trainer import Trainer

        out = str(tmp_path_factory.mktemp("runs"))
        sizes = {"steps": 1, "batch": 16, "minibatch": 8, "imitation_steps": 30, "eval_episodes": 24}
        sizes["env_kwargs"] = {"max_number": 2}  # one guess is right half of the time
        with Trainer.start(TrainConfig(env=GAME, out=out, name="short", **sizes)) as trainer:
            trainer.run()
        return trainer.folder

    def test_a_checkpoint_plays_the_evaluation_of_its_run_with_the_recorded_outcomes(self, trained, capsys):
        assert main(["eval", "--checkpoint", str(trained.path), "--seeds", "run", "--out", "e"]) == 0
        out = capsys.readouterr().out
        assert re.search("24 of 24 episodes .*update-000001", out)
        recorded = trained.read_evaluation(1, "greedy")
        played = {t.episode: t for t in read_jsonl("e/trajectories.jsonl")}
        assert [(o["seed"], o["reward"], o["turns"]) for o in recorded] == [
            (played[i].seed, played[i].total_reward, len(played[i].turns)) for i in range(24)
        ]
        assert len({(o["reward"], o["turns"]) for o in recorded}) > 1  # the outcomes differ

    def test_a_checkpoint_plays_each_set_of_its_run_with_the_limits_of_that_set(self, tmp_path, capsys):
        from gem.rl.config import TrainConfig
        from gem.rl.run.trainer import Trainer

        small = {"kwargs": {"max_number": 2}, "episodes": 12}
        sets = [
            {"id": GAME, "name": "sampled", "temperature": 1.0, **small},
            {"id": GAME, "name": "greedy", **small},
            {"id": GAME, "name": "one token", "max_new_tokens": 1, **small},
            {"id": "qa:Facts", "episodes": 8},
        ]
        sizes = {"steps": 1, "batch": 16, "minibatch": 8, "imitation_steps": 5, "env_kwargs": {"max_number": 2}}
        with Trainer.start(TrainConfig(env=GAME, out=str(tmp_path), name="sets", eval_env=sets, **sizes)) as trainer:
            trainer.run()
        assert main(["eval", "--checkpoint", str(tmp_path / "sets"), "--seeds", "run", "--out", "e"]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert re.search("32 of 32 episodes .*update-000001; .*other sets", out)
        played = list(read_jsonl("e/trajectories.jsonl"))
        assert len(played) == 44
        tokens = [max(len(turn.sampled_ids) for turn in t.turns) for t in sorted(played, key=lambda t: t.episode)]
        assert max(tokens[24:36]) == 1 < max(tokens[12:24])

    def test_outcomes_that_differ_from_those_of_the_run_are_counted(self, trained, capsys):
        text = trained.evaluations.read_text()
        try:
            trained.evaluations.write_text(text.replace('"turns": 4', '"turns": 5'))
            assert main(["eval", "--checkpoint", str(trained.path), "--seeds", "run", "--out", "e"]) == 0
        finally:
            trained.evaluations.write_text(text)
        assert re.search(r"\b\d+ of 24 episodes", out := capsys.readouterr().out) and "24 of 24 ep" not in out

    def test_a_model_in_a_folder_is_sampled_as_in_training(self, trained, capsys):
        folder = str(trained.checkpoints / "update-000001")
        flags = ["--env", GAME, "--limit", "4", "--rollouts", "2", "--temperature", "1", "--seed", "3"]
        for out in ("a", "b"):
            assert main(["eval", "--model", folder, *flags, "--out", out]) == 0
        a, b = ({t.episode: t for t in read_jsonl(f"{out}/trajectories.jsonl")} for out in "ab")
        assert len(a) == 8 and [a[i].turns[0].sampled_ids for i in a] == [b[i].turns[0].sampled_ids for i in a]
        assert all(turn.logprobs and turn.context for t in a.values() for turn in t.turns)
        assert main(["eval", "--resume", "a"]) == 0
        assert main(["eval", "--resume", "a", "--temperature", "0.5"]) == 2
        assert "policy.sampling.temperature was 1.0, now 0.5" in capsys.readouterr().err

    def test_a_checkpoint_is_evaluated_in_its_own_environment_by_default(self, trained):
        assert main(["eval", "--checkpoint", str(trained.path), "--limit", "3", "--out", "e"]) == 0
        assert [env["id"] for env in json.loads(Path("e/report.json").read_text())["envs"]] == [GAME]

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            (["--base-url", "http://x/v1"], "--base-url .*no effect.*--checkpoint"),
            (["--seeds", "run", "--env", GAME], "--env .*no effect.*--seeds run"),
            (["--rollouts", "2"], "--rollouts above 1 .*--temperature above 0"),
            (["--device", "abacus"], "cannot use the device 'abacus'"),
            (["--max-tokens", "100000"], "leaves no room for a prompt"),
        ],
    )
    def test_flags_without_a_meaning_for_a_checkpoint_are_one_line(self, flags, message, trained, usage_error):
        assert re.search(message, usage_error("eval", "--checkpoint", str(trained.path), *flags))


class TestEndpoints:
    @pytest.fixture(autouse=True)
    def _needs_aiohttp(self):
        pytest.importorskip("aiohttp")

    def serve(self, script):
        from gem.testing.fakes.endpoint import FakeEndpoint

        return FakeEndpoint(script)

    def test_a_model_is_scored_and_its_key_is_in_no_file(self, monkeypatch, capsys, tmp_path):
        monkeypatch.setenv("MY_KEY", "sesame-1234")
        with self.serve(lambda request: "\\boxed{5}") as server:
            flags = [
                "--model",
                "m/1",
                "--base-url",
                server.url,
                "--api-key-env",
                "MY_KEY",
                "--env",
                GAME,
                "--limit",
                "4",
            ]
            assert main(["eval", *flags, "--temperature", "0.5", "--extra-body", "top_k=3", "--system", "Hi"]) == 0
            body, headers = server.requests[0].body, server.requests[0].headers
        assert (body["temperature"], body["top_k"], body["messages"][0]["content"]) == (0.5, 3, "Hi")
        assert headers["authorization"] == "Bearer sesame-1234"
        written = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert written and not any(b"sesame" in file.read_bytes() for file in written)
        assert "sesame" not in capsys.readouterr().out
        settings = json.loads((tmp_path / "evals/m-1/eval.json").read_text())
        assert settings["policy"]["sampling"]["temperature"] == 0.5

    @pytest.mark.parametrize(
        ("answer", "path", "message"),
        [
            ({"status": 404, "body": "no model 'm'"}, "", "no model 'm'"),
            ({"status": 401, "body": "wrong key"}, "", "wrong key"),
            ({}, "/..", "a base URL usually ends with /v1"),
            ({"status": 301, "headers": {"Location": "https://a.com/v1"}}, "", "redirects to https://a.com/v1"),
        ],
    )
    def test_an_endpoint_that_refuses_access_is_one_line_and_nothing_is_written(
        self, answer, path, message, capsys, tmp_path
    ):
        from gem.testing.fakes.endpoint import Answer

        with self.serve([Answer(**answer)]) as server:
            url = server.url.removesuffix("/v1") if path else server.url
            assert main(["eval", "--model", "m", "--base-url", url, "--env", GAME]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1 and list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("body", ["<html><body>Welcome</body></html>", '{"status": "ok"}', "[]"])
    def test_a_server_whose_first_reply_is_no_completion_is_one_line_and_nothing_is_written(
        self, body, capsys, tmp_path, monkeypatch
    ):
        from gem._internal import http_client
        from gem.testing.fakes.endpoint import Answer

        monkeypatch.setattr(http_client, "MAX_PAUSE_S", 0.0)
        with self.serve(lambda request: Answer(body=body)) as server:
            url = f"{server.url}/."
            assert main(["eval", "--model", "m", "--base-url", url, "--env", GAME, "--concurrency", "1"]) == 2
        error = capsys.readouterr().err
        assert "is not a completion" in error and "a base URL usually ends with /v1" in error
        assert error.count("\n") == 1 and list(tmp_path.iterdir()) == []

    def test_a_server_that_only_fails_is_one_line_that_names_the_url_to_check(self, capsys, tmp_path, monkeypatch):
        from gem._internal import http_client
        from gem.testing.fakes.endpoint import Answer

        monkeypatch.setattr(http_client, "MAX_PAUSE_S", 0.0)
        with self.serve(lambda request: Answer(status=500)) as server:
            assert main(["eval", "--model", "m", "--base-url", f"{server.url}/.", "--env", GAME]) == 1
        error = capsys.readouterr().err
        assert "first 3 samples" in error and "a base URL usually ends with /v1" in error
        assert error.count("\n") == 1 and list(tmp_path.iterdir()) == []

    def test_a_server_that_is_not_there_is_one_line_at_once_and_nothing_is_written(self, capsys, tmp_path):
        with self.serve(["x"]) as server:
            url = server.url
        assert main(["eval", "--model", "m", "--base-url", url, "--env", GAME]) == 2
        error = capsys.readouterr().err
        assert "2 attempts; check the URL" in error and error.count("\n") == 1 and list(tmp_path.iterdir()) == []

    @pytest.mark.slow
    def test_over_two_percent_of_failures_exit_with_1_unless_they_are_allowed(self, capsys):
        from gem.testing.fakes.endpoint import Answer

        count = itertools.count(1)

        def answer(request):
            return Answer(status=400, body="bad request") if next(count) % 20 == 0 else "\\boxed{5}"

        with self.serve(answer) as server:
            flags = ["--model", "m", "--base-url", server.url, "--env", GAME, "--limit", "40", "--retries", "0"]
            assert main(["eval", *flags]) == 1
            captured = capsys.readouterr()
            assert "more than 2%" in captured.err and "scored 0 or 1" in captured.out
            assert main(["eval", *flags, "--allow-failures"]) == 0
