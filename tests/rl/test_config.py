"""The configuration of a training run: defaults and validation. Needs no extra."""

from dataclasses import fields

import pytest

from gem.errors import BadValue
from gem.rl.config import TrainConfig


def test_every_field_has_a_help_text():
    assert [field.name for field in fields(TrainConfig) if not field.metadata.get("help")] == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", -1),
        ("batch", 0),
        ("gamma", 1.5),
        ("learning_rate", 0.0),
        ("baseline", "median"),
        ("clip", -0.1),
        ("minibatch", 1000),
        ("kl", float("nan")),
        ("learning_rate", float("inf")),
        ("env_kwargs", {"seed": 3}),
        ("seed", -1),
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
