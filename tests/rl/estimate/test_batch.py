"""Batches of training tensors."""

from random import Random

import pytest

pytest.importorskip("torch")

from gem.rl.estimate.batch import minibatches

pytestmark = pytest.mark.train


@pytest.mark.parametrize(("size", "sizes"), [(64, [64, 64]), (127, [64, 64]), (100, [64, 64]), (43, [42, 43, 43])])
def test_minibatches_are_of_nearly_equal_size(size, sizes):
    batch = list(range(128))
    found = list(minibatches(batch, size, Random(0)))  # type: ignore[arg-type]
    assert sorted(map(len, found)) == sizes
    assert sorted(x for part in found for x in part) == batch
