"""The stored scores to compare with are those of the environments as they are."""

import json
from importlib.resources import files

import pytest

import gem
from gem.cli import main
from gem.evaluation import EvalEnv
from gem.evaluation.exchange.reference import reference_notes, reference_scores
from gem.registry import ENV_REGISTRY

STORED = json.loads(files("gem.evaluation").joinpath("data/scores.json").read_text())


@pytest.mark.parametrize("player", ["oracle", "random"])
@pytest.mark.parametrize("env_id", ["game:GuessTheNumber-v0-easy", "qa:Facts", "board:TicTacToe-v0"])
def test_an_evaluation_gives_the_stored_score(env_id, player):
    (stored,) = (score for score in reference_scores(env_id) if score.player == player)
    measured = gem.evaluate(player, env_id, limit=stored.episodes).envs[0]
    assert measured.solved.value == pytest.approx(stored.solved.value, abs=1e-4)
    assert measured.score.value == pytest.approx(stored.score.value, abs=1e-4)
    assert measured.turns == pytest.approx(stored.turns, abs=0.01)


def test_scores_are_stored_of_the_environments_that_need_no_download():
    assert set(STORED) <= set(ENV_REGISTRY)
    families = {env_id.partition(":")[0] for env_id in STORED}
    assert families >= {
        "board",
        "cards",
        "code",
        "desk",
        "game",
        "logic",
        "math",
        "qa",
        "rg",
        "talk",
        "terminal",
        "web",
    }
    models = {env_id for env_id in STORED if "SmolLM2-135M-Instruct" in map(_player, reference_scores(env_id))}
    assert len({env_id.partition(":")[0] for env_id in models}) >= 10


def _player(score):
    return score.player


def test_gem_info_and_gem_eval_show_them(capsys, tmp_path):
    assert main(["info", "qa:Facts"]) == 0
    assert "solved 1.000 [0.963, 1.000], 1.0 turns, 100 episodes" in capsys.readouterr().out
    evaluation = ["--policy", "constant:no", "--env", "qa:Facts", "--limit", "2", "--out", str(tmp_path / "e")]
    assert main(["eval", *evaluation]) == 0
    assert "qa:Facts: solved by others: oracle 1.000, random 0.000" in capsys.readouterr().out


def test_they_are_named_only_beside_the_environment_as_it_is_registered():
    game = "game:GuessTheNumber-v0-easy"
    changed = [EvalEnv(id=game, kwargs={"max_turns": 9}), EvalEnv(id="qa:Facts", wrappers="concat")]
    assert reference_notes(gem.evaluate("constant:no", game, limit=2)) != []
    for env in changed:
        assert reference_notes(gem.evaluate("constant:no", env, limit=2)) == []
