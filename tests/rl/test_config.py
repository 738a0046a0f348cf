"""The configuration of a training run: defaults and validation. Needs no extra."""

from dataclasses import fields

import pytest

from gem.errors import BadValue, CallerError
from gem.rl.config import TrainConfig


def turn(advantage: str = "turn", **options: object) -> dict[str, object]:
    return {"advantage": advantage, "advantage_options": options}


def gae(steps: int = 200, **critic: object) -> dict[str, object]:
    return {"advantage": "gae", "steps": steps, "critic_options": critic}


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
        ("loss_options", {"clip_high": 0.0}),
        ("aggregation", "mean"),
        ("truncated_is", 0.0),
        ("loss_options", {"clip_low": -0.1}),
        ("minibatch", 0),
        ("threads", 0),
        ("minutes", 0.0),
        ("imitation_rate", -1.0),
        ("dtype", "fp16"),
        ("kl", float("nan")),
        ("learning_rate", float("inf")),
        ("env_kwargs", {"seed": 3}),
        ("seed", -1),
        ("lora_rank", 0),
    ],
)
def test_a_value_out_of_range_is_refused(field: str, value: object):
    with pytest.raises(BadValue, match=next(iter(value)) if isinstance(value, dict) else field):
        TrainConfig(**{field: value})


def test_the_limits_themselves_are_accepted():
    config = TrainConfig(gamma=1.0, kl=0.0, entropy=0.0, batch=8, minibatch=8, steps=1, seed=0, keep_trajectories=0)
    assert config.minibatch == config.batch


def test_plain_reinforce_is_limited_to_one_epoch():
    for given in (
        {"loss": "reinforce"},
        {"loss_options": {"clip_low": None, "clip_high": "none"}},
        {"loss": "cispo", "loss_options": {"clip_high": None}},
    ):
        assert TrainConfig(**given).epochs == 1
        with pytest.raises(BadValue, match="epochs=2 needs a clip range"):
            TrainConfig(**given, epochs=2)


def test_grpo_alone_works_with_groups_of_eight():
    assert TrainConfig(advantage="grpo").group_size == 8
    assert TrainConfig().group_size == 1


# Values of the wrong type, as Python callers, files and old scripts pass them.
WRONG = {
    "steps": ["10", 2.5, True, [], None],
    "learning_rate": ["fast", True, {}],
    "gamma": ["half", 2, float("nan")],
    "env": [3, [3], {"weight": 1}, [{"id": "a", "weight": "x"}], {"id": 3}],
    "eval_env": [3, [{"id": "a", "episodes": 0}]],
    "env_kwargs": [[1], "a=1", None],
    "wrappers": [3, ["concat"]],
    "self_play": ["yes", 1],
    "opponents": [{"latest": "x"}, {"latest": -1}, ["latest"]],
    "name": ["../../escape", "a/b", "..", ""],
    "curriculum": ["easy", 3],
    "backend": ["fork", None],
    "timeout": ["1", 0],
    "advantage": ["medain", 3, "nowhere:function", "math:pi", ":", lambda episodes: episodes],
    "advantage_options": [3, {"gamma": 0.5}, {"leave_one_out": "perhaps"}],
    "loss": ["pqo", None, 3],
    "loss_options": [{"clip_low": 1.5}, {"clip_low": "low"}],
    "critic_options": [{"shared": True}],
    "sampler_options": [{"sync": "vllm"}],
    "dtype": ["fp8"],
    "log": ["prints"],
    "until": [0.9],
    "seed": ["0", -1, 1.0j],
    "max_new_tokens": [0, "many"],
}


@pytest.mark.parametrize("field", WRONG)
def test_values_of_the_wrong_type_are_refused_by_name(field: str):
    for value in WRONG[field]:
        with pytest.raises(CallerError, match=field):
            TrainConfig(**{field: value})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"advantage": "turns"}, "did you mean 'turn'"),
        ({"aggregation": "token_mean"}, "did you mean 'token-mean'"),
        (turn(group_scale="std"), "advantage_options of 'turn' cannot have 'group_scale'  .*leave_one_out"),
        (turn("grpo", batch_scale="std"), "group_scale='std' and batch_scale='std' .*'none'"),
        (turn("rloo", leave_one_out=True), "'rloo' cannot have 'leave_one_out'"),
        (turn("gae", gae_lamda=0.9), "'gae_lamda'.*'gae_lambda'"),
        (turn("gae", gae_lambda=1.1), "'gae': gae_lambda .*at most 1.*got 1.1"),
        (turn("turn", gamma=0.5), "gamma, which is an option of its own"),
        ({"advantage": "grpo", "gamma": 0.9}, "gamma=0.9 .*no effect.*advantage='grpo'"),
        ({"advantage": "rloo", "group_size": 1}, "'rloo' .*group_size .*at least 2"),
        ({"group_size": 3}, "batch .*multiple of group_size.*256 and 3"),
        ({"refill_groups": True}, "refill_groups needs groups"),
        ({"critic_options": {"warmup": 5}}, "critic_options need a critic, as of advantage='gae', got 'turn'"),
        (gae(warmup=20, steps=20), "warmup=20 .*steps=20"),
        (gae(weight=1.0), "weight needs shared=true"),
        (gae(layers=2), "critic_options cannot have 'layers'"),
        ({"loss": "cispo", "loss_options": {"dual_clip": 3.0}}, "'cispo' cannot have 'dual_clip'"),
        ({"loss_options": {"dual_clip": 1.0}}, "'ppo': dual_clip .*greater than 1.*got 1"),
        ({"loss_options": {"clip_low": 1.0}}, "'ppo': clip_low .*less than 1.*got 1"),
        ({"kl": 0.0, "kl_in": "reward"}, "no effect with kl=0"),
        (turn("branch", turns=0), "'branch': turns .*at least 1.*got 0"),
        ({"advantage": "branch", "group_size": 4}, "groups.*drop group_size=4"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(given: dict[str, object], message: str):
    with pytest.raises(CallerError, match=message):
        TrainConfig(**given)


@pytest.mark.parametrize("until", ["", "greedy", "greedy=x", "best=.9", "greedy=2", "greedy=nan", "greedy=0"])
def test_targets_must_be_success_rates(until):
    with pytest.raises(BadValue, match=f"until .*above 0 and up to 1.*{until!r}"):
        TrainConfig(until=until)


def test_targets_must_be_of_modes_that_are_evaluated():
    assert TrainConfig(until="greedy=.99, sampled=.9").targets == {"greedy": 0.99, "sampled": 0.9}
    with pytest.raises(BadValue, match=r"until='greedy=.9' .*evaluations .*sampled, temperature"):
        TrainConfig(until="greedy=.9", eval_temperature=0.5)


def test_learning_rates_fit_what_is_trained(tmp_path):
    whole, empty = tmp_path / "whole", tmp_path / "empty"
    for folder in (whole, empty):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
    (whole / "model.safetensors").touch()
    assert TrainConfig().rates == TrainConfig(model=str(empty)).rates == (2e-3, 3e-3)
    assert TrainConfig(model=str(whole)).rates == TrainConfig(model="owner/name").rates == (5e-5, 3e-5)
    assert TrainConfig(model=str(whole), lora_rank=8).rates == (2e-4, 2e-4)
    given = TrainConfig(model=str(whole), learning_rate=1e-6, imitation_rate=1e-4)
    assert given.rates == (1e-6, 1e-4)


def test_a_loaded_model_takes_all_cores_and_the_embedded_one_a_single_one(monkeypatch):
    monkeypatch.setattr("gem.rl.config.usable_cpus", lambda: 6)
    assert TrainConfig().torch_threads == 1
    assert TrainConfig(model="owner/name").torch_threads == 6
    assert TrainConfig(model="owner/name", threads=2).torch_threads == 2
    saved = TrainConfig(model="owner/name").saved()  # a run keeps them on another machine
    assert (saved["threads"], saved["learning_rate"], saved["imitation_rate"]) == (6, 5e-5, 3e-5)


def test_a_small_batch_alone_works():
    assert TrainConfig(batch=32).batch == 32
