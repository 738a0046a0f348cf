"""The configuration of a training run: defaults and validation. Needs no extra."""

from dataclasses import fields

import pytest

from gem.errors import BadValue
from gem.rl.config import TrainConfig

GROUPS = {"group_size": 4}


def test_every_field_has_a_help_text():
    assert [field.name for field in fields(TrainConfig) if not field.metadata.get("help")] == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", -1),
        ("batch", 0),
        ("gamma", 1.5),
        ("learning_rate", 0.0),
        ("advantage", "median"),
        ("clip_high", 0.0),
        ("aggregation", "mean"),
        ("truncated_is", 0.0),
        ("clip", -0.1),
        ("minibatch", 1000),
        ("kl", float("nan")),
        ("learning_rate", float("inf")),
        ("env_kwargs", {"seed": 3}),
        ("seed", -1),
        ("lora_rank", 0),
    ],
)
def test_a_value_out_of_range_is_refused(field: str, value: object):
    with pytest.raises(BadValue, match=field):
        TrainConfig(**{field: value})


def test_the_limits_themselves_are_accepted():
    config = TrainConfig(gamma=1.0, kl=0.0, entropy=0.0, batch=8, minibatch=8, steps=1, seed=0, keep_trajectories=0)
    assert config.minibatch == config.batch


def test_plain_reinforce_is_limited_to_one_epoch():
    assert TrainConfig(clip=None, epochs=1).clip is None
    with pytest.raises(BadValue, match="epochs=2 needs a clip range"):
        TrainConfig(clip=None, epochs=2)
    with pytest.raises(BadValue, match="epochs=2 needs a clip range"):
        TrainConfig(loss="cispo", clip_high=None, epochs=2)


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({}, (0.2, 0.2)),
        ({"clip": 0.3}, (0.3, 0.3)),
        ({"clip": 0.2, "clip_high": 0.28}, (0.2, 0.28)),
        ({"clip_high": None}, (0.2, None)),
        ({"loss": "gspo"}, (3e-4, 4e-4)),
        ({"loss": "gspo", "clip": 0.01}, (0.01, 0.01)),
        ({"loss": "cispo"}, (None, 4.0)),
    ],
)
def test_each_loss_has_its_own_default_bounds(given: dict[str, object], bounds: tuple[object, object]):
    assert TrainConfig(**given).clip_bounds == bounds


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"advantage": "turns"}, "did you mean 'turn'"),
        ({"aggregation": "token_mean"}, "did you mean 'token-mean'"),
        ({"group_scale": "std"}, "group_scale .*advantage='grpo' or 'gigpo'.*'turn'"),
        ({"advantage": "grpo", "batch_scale": "std", **GROUPS}, "group_scale='std' and batch_scale='std' .*'none'"),
        ({"advantage": "rloo", "leave_one_out": True, **GROUPS}, "'rloo' and leave_one_out .*drop one"),
        ({"advantage": "rebn", "leave_one_out": True}, "leave_one_out .*advantage='turn' or 'grpo'"),
        ({"advantage": "grpo", "gamma": 0.9, **GROUPS}, "gamma=0.9 .*no effect.*advantage='grpo'"),
        ({"advantage": "rloo"}, "'rloo' .*group_size .*at least 2"),
        ({"group_size": 3}, "batch .*multiple of group_size.*256 and 3"),
        ({"refill_groups": True}, "refill_groups needs groups"),
        ({"step_weight": 1.0}, "step_weight needs advantage='gigpo'"),
        ({"gae_lambda": 0.9}, "gae_lambda needs advantage='gae'"),
        ({"advantage": "gae", "gae_lambda": 1.1}, r"a value in \[0, 1\], got 1.1"),
        ({"critic_warmup": 5}, "critic_warmup needs a critic"),
        ({"advantage": "gae", "critic_warmup": 20, "steps": 20}, "critic_warmup=20 .*steps is 20"),
        ({"loss": "cispo", "dual_clip": 3.0}, "dual_clip .*loss that clips.*'cispo'"),
        ({"dual_clip": 1.0}, "dual_clip .*value > 1.*got 1"),
        ({"loss_constant": 10.0}, "loss_constant needs aggregation='constant'"),
        ({"kl": 0.0, "kl_in": "reward"}, "no effect with kl=0"),
        ({"critic": "shared"}, "critic .*advantage='gae'.*'turn'"),
        ({"advantage": "gae", "critic_weight": 1.0}, "critic_weight needs critic='shared'"),
        ({"advantage": "gae", "critic": "none"}, "critic .*'separate' or 'shared'.*'none'"),
        ({"branch_width": 2}, "branch_width .*advantage='branch'.*'turn'"),
        ({"branch_train": True}, "branch_train .*advantage='branch'.*'turn'"),
        ({"advantage": "branch", "branch_turns": 0}, "branch_turns .*at least 1.*got 0"),
        ({"advantage": "branch", "group_size": 4}, "groups.*drop group_size=4"),
        ({"kl_in": "reward", "kl_estimator": "k3"}, "kl_in='reward' needs kl_estimator='k1'"),
        ({"curriculum_over": "rows"}, "curriculum_over needs curriculum='learnability'"),
        ({"curriculum_seeds": 5}, "curriculum_seeds needs curriculum='learnability'"),
        (
            {"curriculum": "learnability", "curriculum_over": "rows", "curriculum_seeds": 5},
            "curriculum_seeds=5 .*curriculum_over='seeds'.*'rows'",
        ),
        (
            {"curriculum": "learnability", "env": ["qa:Facts", "math:Arithmetic"], "curriculum_seeds": 5},
            "curriculum_seeds=5 .*curriculum_over='seeds'.*'levels'",
        ),
        ({"clip": 1.0}, "clip=1 .*below 1.* none with clip_high=1"),
        ({"clip": 3.0, "clip_high": 4.0}, "clip=3 .* none with clip_high=4"),
        ({"curriculum_minimum": 0.0}, "curriculum_minimum needs curriculum='learnability'"),
        ({"past_every": 5}, "past_every .*opponents"),
        ({"env": "board:Nim-v0", "self_play": True, "past_kept": 5}, "past_kept .*opponents"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(given: dict[str, object], message: str):
    with pytest.raises(BadValue, match=message):
        TrainConfig(**given)


@pytest.mark.parametrize("until", ["", "greedy", "greedy=x", "best=.9", "greedy=2", "greedy=nan", "greedy=0"])
def test_targets_must_be_success_rates(until):
    with pytest.raises(BadValue, match=f"until .*above 0 and up to 1.*{until!r}"):
        TrainConfig(until=until)


def test_targets_must_be_of_modes_that_are_evaluated():
    assert TrainConfig(until="greedy=.99, sampled=.9").targets == {"greedy": 0.99, "sampled": 0.9}
    with pytest.raises(BadValue, match=r"until='greedy=.9' .*evaluations .*sampled, temperature"):
        TrainConfig(until="greedy=.9", eval_temperature=0.5)
