"""Folders of someone else: what they hold is shown, and what they say about code, servers and keys is not done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gem
from gem import evaluate
from gem._internal.folders import LOCK, FolderLock
from gem.cli import main
from gem.envs.games.guess_the_number import GuessTheNumberEnv
from gem.errors import BadValue
from gem.evaluation import play_tournament, rescore
from gem.evaluation.tournament import sparring_player
from gem.registry import ENV_REGISTRY

GAME, NIM = "game:GuessTheNumber-v0-easy", "board:Nim-v0"
FILES = ("eval.json", "trajectories.jsonl", "failures.jsonl", "report.json", "report.md", "report.tex", ".report.json")


class Marked(GuessTheNumberEnv):
    """Writes a file when it is made, as the code of an environment could, and may get a signal in a step."""

    def __init__(self, *, marker: str, signals: tuple[int, ...] | list[int] = ()) -> None:
        super().__init__()
        Path(marker).write_text("the code ran")
        self.signals = list(signals)

    def step(self, action: str):
        for number in self.signals:
            signal.raise_signal(number)
        return super().step(action)


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[Path]:
    """The file that exists if an environment was made."""
    gem.register("test:Marked", Marked)
    yield tmp_path / "ran"
    del ENV_REGISTRY["test:Marked"]


def eval_flags(ran: Path, out: Path) -> list[str]:
    kwargs = ["--env-kwargs", f"marker={ran}"]
    return ["eval", "--policy", "random", "--env", "test:Marked", *kwargs, "--limit", "4", "--out", str(out)]


@pytest.fixture
def foreign(tmp_path: Path, ran: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The copy of an evaluation, which is what somebody else's folder is here."""
    assert main(eval_flags(ran, tmp_path / "own")) == 0
    shutil.copytree(tmp_path / "own", tmp_path / "foreign")
    ran.unlink()
    capsys.readouterr()
    return tmp_path / "foreign"


def edit(folder: Path, **command: object) -> None:
    """Change the flags that an evaluation has recorded."""
    settings = json.loads((folder / "eval.json").read_text())
    settings["notes"]["command"] = command
    (folder / "eval.json").write_text(json.dumps(settings))


def test_rescoring_a_foreign_folder_says_what_it_would_run_and_runs_nothing(foreign, ran, usage_error):
    settings = json.loads((foreign / "eval.json").read_text())
    settings["envs"][0]["kwargs"]["sandbox_type"] = "subprocess"
    (foreign / "eval.json").write_text(json.dumps(settings))
    error = usage_error("eval", "rescore", str(foreign))
    assert "test:Marked" in error and '"sandbox_type": "subprocess"' in error and "--trust" in error
    with pytest.raises(BadValue, match="trust=True"):
        rescore(str(foreign))
    assert not ran.exists() and not Path(f"{foreign}-rescored").exists()


def test_a_folder_of_this_user_is_rescored_and_a_foreign_one_with_trust(foreign, ran, tmp_path):
    assert main(["eval", "rescore", str(tmp_path / "own"), "--out", str(tmp_path / "a")]) == 0
    assert rescore(str(foreign), trust=True).changes == []
    assert main(["eval", "rescore", str(foreign), "--out", str(tmp_path / "b")]) == 0  # trust is remembered


def test_resuming_a_foreign_folder_sends_no_key_and_starts_no_server(foreign, ran, usage_error, monkeypatch, tmp_path):
    pytest.importorskip("aiohttp")
    from gem.testing.fakes.endpoint import FakeEndpoint

    monkeypatch.setenv("MY_KEY", "secret")
    servers = {"mcpServers": {"theirs": {"command": "touch", "args": [str(ran)]}}}
    (foreign / "mcp.json").write_text(json.dumps(servers))
    with FakeEndpoint(["3"]) as server:
        flags = {"model": "m", "base_url": server.url, "api_key_env": "MY_KEY", "mcp": str(foreign / "mcp.json")}
        edit(foreign, env=[GAME], **flags)
        error = usage_error("eval", "--resume", str(foreign))
        assert all(text in error for text in (server.url, "MY_KEY", "mcp.json", "--trust"))
        error = usage_error("eval", "--resume", str(foreign), "--api-key-env", "MY_KEY", "--env", GAME)
        assert server.url in error and "MY_KEY" not in error
        assert server.requests == [] and not ran.exists()


def test_a_foreign_folder_is_resumed_if_the_command_line_says_what_runs(foreign, ran):
    (foreign / "trajectories.jsonl").write_bytes(b"")
    own = eval_flags(ran, foreign)[1:-2]
    assert main(["eval", "--resume", str(foreign), *own]) == 0
    assert len((foreign / "trajectories.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("command", [None, [], "x", {"env": 3, "players": 3}, {"env": {}, "trust": True}])
def test_a_folder_with_other_flags_than_a_command_writes_is_refused(command, foreign, usage_error):
    edit(foreign)
    settings = json.loads((foreign / "eval.json").read_text())
    settings["notes"]["command"] = command
    (foreign / "eval.json").write_text(json.dumps(settings))
    assert str(foreign) in usage_error("eval", "--resume", str(foreign)) + usage_error(
        "tournament", "--resume", str(foreign)
    )


def test_the_out_folder_in_recorded_flags_is_not_used(foreign, ran, tmp_path):
    command = json.loads((foreign / "eval.json").read_text())["notes"]["command"]
    edit(foreign, **command, out=str(tmp_path / "elsewhere"), resume=str(tmp_path / "elsewhere"))
    assert main(["eval", "--resume", str(foreign), "--trust"]) == 0
    assert not (tmp_path / "elsewhere").exists()


def test_a_tournament_of_someone_else_is_not_resumed(tmp_path, usage_error):
    edited = {"players": ["random", "m@http://127.0.0.1:1/v1"], "env": NIM, "api_key_env": "MY_KEY"}
    players = {name: sparring_player(NIM, "random") for name in ("a", "b")}
    play_tournament(players, NIM, games=2, out=str(tmp_path / "t"), notes={"command": edited})
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    error = usage_error("tournament", "--resume", str(tmp_path / "copy"))
    assert "http://127.0.0.1:1/v1" in error and "MY_KEY" in error and "--trust" in error


def test_trust_without_a_folder_is_refused(usage_error):
    assert "--trust has no effect" in usage_error("eval", "--policy", "random", "--env", GAME, "--trust")
    assert "--trust has no effect" in usage_error("tournament", "random", "oracle", "--env", NIM, "--trust")


@pytest.mark.parametrize("name", [*FILES, LOCK, "scores.png"])
def test_a_link_in_a_folder_is_an_error_and_its_target_untouched(name, foreign, ran, tmp_path, capsys):
    if name == "scores.png":
        pytest.importorskip("matplotlib")
    target, content = tmp_path / "target", (foreign / name).read_bytes() if (foreign / name).exists() else b"mine\n"
    target.write_bytes(content)
    (foreign / name).unlink(missing_ok=True)
    (foreign / name).symlink_to(target)
    assert main(["eval", "--resume", str(foreign), *eval_flags(ran, foreign)[1:-2]]) == 2
    assert f"{name} is a symbolic link" in capsys.readouterr().err
    assert target.read_bytes() == content


def test_links_in_a_folder_are_not_read_or_written_by_commands_that_show_it(foreign, tmp_path, usage_error):
    (tmp_path / "elsewhere").mkdir()
    for name in ("report.json", "trajectories.jsonl"):
        (foreign / name).rename(tmp_path / name)
        (foreign / name).symlink_to(tmp_path / name)
    for argv in (["eval", "compare", str(foreign), str(tmp_path / "own")], ["view", str(foreign)]):
        assert "is a symbolic link" in usage_error(*argv)
    for name in ("view.html", "inspect", "verifiers"):
        (tmp_path / "own" / name).symlink_to(tmp_path / "elsewhere")
    assert "view.html is a symbolic link" in usage_error("view", str(tmp_path / "own"))
    for format in ("inspect", "verifiers"):
        assert f"{format} is a symbolic link" in usage_error(
            "eval", "export", str(tmp_path / "own"), "--format", format
        )
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_folder_that_the_user_names_by_a_link_is_followed(ran, tmp_path, foreign):
    (tmp_path / "link").symlink_to(tmp_path / "own")
    assert main(["eval", "--resume", str(tmp_path / "link")]) == 0


def test_a_recorded_game_does_not_choose_a_task_folder_to_run(tmp_path, usage_error):
    (tmp_path / "game.txt").write_text("playthrough of harbor:theirs\nseed 0\nactions at random\n")
    assert "harbor:theirs" in usage_error("replay", str(tmp_path)) and "--trust" in usage_error("replay", str(tmp_path))


def test_a_recorded_game_in_a_folder_is_not_written_through_a_link(tmp_path, usage_error):
    (tmp_path / "games").mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "games" / "a.txt").symlink_to(tmp_path / "mine.txt")
    assert "a.txt is a symbolic link" in usage_error("replay", str(tmp_path / "games"), "--update")


@pytest.mark.parametrize(("signals", "code"), [([signal.SIGINT], 130), ([signal.SIGTERM], 143)])
def test_a_signal_ends_an_evaluation_with_a_report_and_a_hint(signals, code, ran, tmp_path, capsys):
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    suite, out = tmp_path / "suite.toml", tmp_path / "out"
    tables = (
        f'name = "{len(n)} signals"\nid = "test:Marked"\nkwargs = {{marker = "{ran}", signals = {[*map(int, n)]}}}'
        for n in ([], signals)
    )
    suite.write_text("[[env]]\n" + "\n[[env]]\n".join(tables))
    assert main(["eval", "--policy", "random", "--suite", str(suite), "--limit", "3", "--out", str(out)]) == code
    assert f"Continue with: gem eval --resume {out}" in capsys.readouterr().err
    assert json.loads((out / "report.json").read_text())["envs"][0]["done"] == 3 and not (out / LOCK).exists()
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_a_signal_that_the_process_ignores_stays_ignored(ran, tmp_path):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        kwargs = {"marker": str(ran), "signals": [int(signal.SIGTERM)]}
        flags = ["--env-kwargs", *(f"{name}={json.dumps(value)}" for name, value in kwargs.items())]
        out = ["--limit", "2", "--out", str(tmp_path / "out")]
        assert main(["eval", "--policy", "random", "--env", "test:Marked", *flags, *out]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_closed_stdout_ends_an_evaluation_with_its_records_kept_and_says_so(tmp_path):
    flags = ["--policy", "random", "--env", GAME, "--limit", "20000", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "gem", "eval", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 141 and "Traceback" not in error
    assert error.startswith("Stopped, because its output was closed. Continue with: gem eval --resume")
    assert (tmp_path / "out" / "report.json").exists() and (tmp_path / "out" / "trajectories.jsonl").stat().st_size


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_an_evaluation_works_with_standard_streams_that_are_closed(tmp_path, closed):
    flags = f"--policy random --env {GAME} --limit 2 --out {tmp_path / 'out'}"
    done = subprocess.run(
        f"{sys.executable} -m gem eval {flags} {closed}", shell=True, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (tmp_path / "out" / "report.json").exists()


def test_an_evaluation_works_without_a_home_folder(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
    command = [sys.executable, "-m", "gem", "eval", "--policy", "random", "--env", GAME, "--limit", "2"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")],
        env=environment | {"HOME": "/proc/1/none"},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = (line for line in done.stderr.splitlines() if "matplotlib" not in line.lower())
    assert line.startswith("cannot record that") and "--trust" in line


def test_two_writers_of_an_evaluation_are_refused_before_anything_changes(foreign, ran, tmp_path, capsys):
    before = {path.name: path.read_bytes() for path in foreign.iterdir()}
    lock = FolderLock(foreign)
    assert main(["eval", "--resume", str(foreign), *eval_flags(ran, foreign)[1:-2]]) == 2
    lock.close()
    assert "is being written by" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in foreign.iterdir()} == before


def test_an_evaluation_in_a_folder_that_another_one_has_taken_meanwhile_is_refused(tmp_path):
    class Late:
        chat, max_prompt_tokens, version = None, None, 0
        first = True

        def act(self, requests):
            if self.first:
                self.first = False
                evaluate("random", GAME, limit=1, out=str(tmp_path / "out"))
            return gem.policies.RandomPolicy().act(requests)

    with pytest.raises(BadValue, match="holds an evaluation"):
        evaluate(Late(), GAME, limit=2, out=str(tmp_path / "out"))
    assert len((tmp_path / "out" / "trajectories.jsonl").read_text().splitlines()) == 1


def test_a_later_run_of_a_killed_first_writer_may_use_its_folder(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).write_text("")  # killed before it wrote its settings
    assert evaluate("random", GAME, limit=1, out=str(tmp_path / "out")).complete
