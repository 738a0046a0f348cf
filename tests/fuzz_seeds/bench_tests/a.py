import pytest


@pytest.mark.parametrize("a", [1, 2])
def test_a(a):
    assert a


class TestB:
    async def test_c(self):
        pass
