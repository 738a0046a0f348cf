import pytest

pytest.importorskip("matplotlib")

from gem.core import Optimum
from gem.rl.metrics import draw_curve

pytestmark = pytest.mark.train


def row(episodes: int, success: float, turns: float | None, **more):
    return {"episodes": episodes, "success": success, "turns_when_won": turns, **more}


def test_a_curve_is_drawn_even_without_won_games(tmp_path):
    rows = [row(16, 0.0, None, eval={"greedy": row(0, 0.0, None)}), row(32, 0.5, 2.5)]
    draw_curve(tmp_path / "curve.png", "a title", rows, Optimum(1.0, 2.9, "balanced search"))
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
