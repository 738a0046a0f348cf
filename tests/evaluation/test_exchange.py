"""Records for inspect-ai and verifiers, and of them: round trips here, and with the real packages where they are.

`make test-exchange` builds the environment with the real packages; GEM_EXCHANGE_PYTHON is its Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import gem
from gem.cli import main
from gem.core import Env, Step
from gem.errors import BadValue
from gem.evaluation import EvalEnv, evaluate
from gem.evaluation.exchange.inspect_logs import export_inspect, read_inspect
from gem.evaluation.exchange.messages import episode_of, messages_of, text_of, writable
from gem.evaluation.exchange.verifiers_traces import export_verifiers, read_verifiers
from gem.evaluation.metrics import pass_at_k, pass_hat_k
from gem.policies import Reply
from gem.registry import ENV_REGISTRY
from gem.trajectory import ScoreCheck, read_jsonl
from gem.viewer.recordings import Recordings

GAME = "game:GuessTheNumber-v0-easy"
HOSTILE = "</script><script>alert(1)</script> \ud800 \x00 attachment://x \u2028"


class Guesser:
    """Guesses 5; fails in the third sample, refuses in the fourth, and is hostile in the fifth."""

    chat, max_prompt_tokens, version = None, None, 0

    def act(self, requests):
        said = {2: Reply("", failure="EndpointError: down"), 3: Reply("no", finish="refusal"), 4: Reply(HOSTILE)}
        guess = Reply("\\boxed{5}", usage={"prompt_tokens": 3, "completion_tokens": 2})
        return [said.get(request.key[1], guess) for request in requests]


class Checked(Env):
    def step(self, action):
        checks = [{"name": "value", "passed": True}, {"name": "units", "passed": False, "detail": "none"}]
        return Step("", 0.0, True, info={"explanation": "The units are missing.", "checks": checks})


@pytest.fixture
def run(tmp_path) -> Path:
    evaluate(Guesser(), [GAME, "qa:Facts"], limit=6, rollouts=2, retries=0, out=str(tmp_path / "run"))
    return tmp_path / "run"


def outcomes(trajectories) -> list[object]:
    return sorted(
        (str(t.group_id), [writable(turn.action) for turn in t.turns], None if t.failure else t.total_reward, t.failure)
        for t in trajectories
    )


def explanations(trajectories) -> list[object]:
    scored = [t for t in trajectories if t.failure is None]
    return sorted((str(t.group_id), writable(t.turns[-1].explanation or t.stop_reason)) for t in scored)


def test_the_checks_of_a_score_are_exported_and_imported(tmp_path):
    gem.register("test:Checked", Checked)
    try:
        evaluate("constant:a", "test:Checked", limit=1, out=str(tmp_path / "run"))
    finally:
        del ENV_REGISTRY["test:Checked"]
    (log,), (traces,) = (write(str(tmp_path / "run"), str(tmp_path)) for write in (export_inspect, export_verifiers))
    scores = json.loads(log.read_text())["samples"][0]["scores"]
    assert {scores[name]["explanation"] for name in ("reward", "solved")} == {"The units are missing."}
    checks = [{"name": "value", "passed": True, "detail": ""}, {"name": "units", "passed": False, "detail": "none"}]
    assert scores["reward"]["metadata"]["checks"] == checks
    (trace,) = json.loads(traces.read_text())["traces"]
    assert trace["info"].items() >= {"explanation": "The units are missing.", "checks": checks}.items()
    for (back,) in (read_inspect(str(log)), read_verifiers(str(traces))):
        assert back.turns[-1].checks == [ScoreCheck("value", True), ScoreCheck("units", False, "none")]


@pytest.mark.parametrize("format", ["inspect", "verifiers"])
def test_what_is_exported_is_imported_with_its_replies_and_rewards(format, run, tmp_path, capsys):
    assert main(["eval", "export", str(run), "--format", format]) == 0
    files = capsys.readouterr().out.split()
    assert main(["eval", "import", *files, "--out", str(tmp_path / "back")]) == 0
    own = [*read_jsonl(run / "trajectories.jsonl"), *read_jsonl(run / "failures.jsonl")]
    back = list(read_jsonl(tmp_path / "back" / "trajectories.jsonl"))
    assert len(back) == 24 and f"24 episodes ({len([t for t in own if t.failure])} failed)" in capsys.readouterr().out
    assert [b[:3] for b in outcomes(back)] == [o[:3] for o in outcomes(own)]
    assert len(Recordings([tmp_path / "back"]).rows) == 24
    assert explanations(back) == explanations(own) != []


def test_tool_calls_and_images_are_exported_as_text_and_calls(tmp_path):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    said = [
        ({"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}]}, {}),
        ({"role": "assistant", "content": None, "tool_calls": [call]}, {}),
        ({"role": "tool", "content": "2", "tool_call_id": "1"}, {}),
    ]
    trajectory = episode_of(said)
    assert trajectory.turns[0].observation == "look\n[image]" and trajectory.turns[0].message["tool_calls"] == [call]
    assert [m["role"] for m, _ in messages_of(trajectory)] == ["user", "assistant", "tool"]
    assert text_of(3) == "3" and text_of(None) == ""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[]", "a.json .*log of inspect-ai: .*no eval"),
        ("a.json", "{", "a.json .*log of inspect-ai"),
        ("a.json", '{"eval": {}, "samples": [3]}', "sample 0 .*inspect-ai"),
        ("a.json", '{"eval": {}, "samples": []}', "no sample in"),
        ("a.jsonl", "3\n", "line 1 .*episode of verifiers"),
        ("a.jsonl", '{"traces": [{"nodes": [{"parent": 0}]}]}\n', "line 1 .*episode of verifiers"),
        ("a.jsonl", "", "no sample in"),
        ("missing.json", None, "No such file"),
        ("missing.jsonl", None, "No such file"),
    ],
)
def test_what_is_no_log_is_one_line(name, content, message, tmp_path, capsys):
    if content is not None:
        (tmp_path / name).write_text(content)
    assert main(["eval", "import", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error) and error.count("\n") == 1 and not (tmp_path / "out").exists()


def test_environments_with_similar_names_have_a_log_each(tmp_path):
    names = ["日本", "中国", "../x", "x", "a b", "a-b"]
    envs = [EvalEnv(id=GAME, name=name, limit=1) for name in names]
    evaluate("oracle", envs, out=str(tmp_path / "run"))
    files = export_inspect(str(tmp_path / "run"), str(tmp_path / "logs"))
    assert [file.name for file in files] == ["日本.json", "中国.json", "x.json", "x-2.json", "a-b.json", "a-b-2.json"]
    assert sum(len(list(read_inspect(file))) for file in files) == len(names) == len(list(tmp_path.glob("logs/*")))


def test_an_evaluation_without_a_report_is_refused(tmp_path):
    with pytest.raises(BadValue, match="is not an evaluation"):
        export_verifiers(str(tmp_path), str(tmp_path / "out"))
    with pytest.raises(BadValue, match="is not an evaluation"):
        export_inspect(str(tmp_path), str(tmp_path / "out"))


class TestRealPackages:
    @pytest.fixture(autouse=True)
    def _peer(self):
        self.python = os.environ.get("GEM_EXCHANGE_PYTHON", "build/exchange/bin/python")
        if not Path(self.python).exists():
            pytest.skip(
                f"no environment with inspect-ai and verifiers at {self.python}; `make test-exchange` builds it"
            )

    def ask(self, *command):
        script = Path(__file__).with_name("exchange_peer.py")
        done = subprocess.run(
            [self.python, str(script), json.dumps(command)], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def test_they_read_what_is_exported(self, run, tmp_path):
        files = [str(file) for file in export_inspect(str(run), str(tmp_path / "inspect"))]
        export_verifiers(str(run), str(tmp_path / "traces"))
        found = self.ask("read", files, str(tmp_path / "traces"))
        own = list(read_jsonl(run / "trajectories.jsonl"))
        for name in (GAME, "qa:Facts"):
            log = found["inspect"][name]
            expected = sorted(
                (str(t.group_id), t.total_reward, [writable(turn.action) for turn in t.turns])
                for t in own
                if t.env_id == name
            )
            assert log["model"] == "Guesser" and len(log["samples"]) == 12
            assert sorted((s[0], s[2], s[3]) for s in log["samples"] if not s[4]) == expected
            assert len({(s[0], s[1]) for s in log["samples"]}) == 12
        assert [e[1:] for e in found["verifiers"] if e[0]] == [
            [t.total_reward, [writable(turn.action) for turn in t.turns], 1]
            for t in sorted(own, key=lambda t: t.episode)
        ]

    def test_what_they_write_is_imported(self, tmp_path):
        self.ask("write", str(tmp_path))
        logs = [list(read_inspect(str(tmp_path / name))) for name in ("log.json", "log.eval")]
        for log in logs:
            assert [(t.group_id, t.total_reward, t.solved, len(t.turns)) for t in log] == [
                ("a", 1.0, True, 2),
                ("a", 0.0, False, 2),
            ]
            assert log[0].turns[0].message["tool_calls"][0]["function"]["name"] == "add"
            assert log[0].turns[1].observation == [{"role": "tool", "content": "3"}]
            assert log[0].turns[1].action == "It is 3."
        (episode,) = read_verifiers(str(tmp_path / "traces.jsonl"))
        assert (episode.total_reward, episode.turns[0].reward_parts) == (1.25, {"right": 1.0, "format": 0.25})
        assert [turn.action for turn in episode.turns] == ["3"]  # the branch of the last message
        assert (episode.turns[0].sampled_ids, episode.turns[0].logprobs) == ([4], [-0.5])

    def test_pass_at_k_and_pass_hat_k_agree_on_the_same_counts(self):
        counts = [[n, c, k] for n in (1, 2, 4, 8, 16) for c in range(n + 1) for k in (1, 2, 3, 4, 8, 16) if k <= n]
        found = self.ask("pass_k", counts)["pass"]
        own = [[pass_at_k(n, c, k), pass_hat_k(n, c, k)] for n, c, k in counts]
        assert len(counts) > 100
        assert found == [pytest.approx(pair, abs=1e-9) for pair in own]


def test_a_row_for_a_leaderboard_has_the_scores_versions_and_hashes_of_a_run(run, tmp_path, capsys):
    evaluate("random", GAME, limit=4, out=str(tmp_path / "other"))
    rows = str(tmp_path / "rows.jsonl")
    assert main(["eval", "export", str(run), str(tmp_path / "other"), "--leaderboard", "--out", rows]) == 0
    first, second = map(json.loads, Path(rows).read_text().splitlines())
    report, settings = (json.loads((run / name).read_text()) for name in ("report.json", "eval.json"))
    assert (first["model"], second["model"], first["gem"]) == ("Guesser", "random", settings["gem"])
    for row, env, planned in zip(first["envs"], report["envs"], settings["envs"], strict=True):
        assert {key: row[key] for key in ("score", "solved", "done", "failed", "tokens_in", "cost")} == {
            key: env[key] for key in ("score", "solved", "done", "failed", "tokens_in", "cost")
        }
        assert (row["hash"], row["versions"]) == (planned["hash"], planned["versions"])
        assert row["tasks"] == env["distinct"]  # equal episodes of the game are one task
    assert first["records"] == hashlib.sha256((run / "trajectories.jsonl").read_bytes()).hexdigest()
    assert main(["eval", "export", str(run), "--leaderboard"]) == 0
    assert json.loads((run / "leaderboard.jsonl").read_text()) == first
    capsys.readouterr()


@pytest.mark.parametrize("flags", [["--leaderboard", "--format", "inspect"], []])
def test_an_export_has_one_format(flags, run, capsys):
    assert main(["eval", "export", str(run), *flags]) == 2
    assert "--leaderboard" in capsys.readouterr().err
