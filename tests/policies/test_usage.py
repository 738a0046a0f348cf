"""token_usage(): one accounting for the usage that servers report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.policies.usage import token_usage

# server → what it reports, and (prompt, completion, cached, reasoning, cost)
REPORTED = {
    "vLLM": ({"prompt_tokens": 8, "completion_tokens": 3, "total_tokens": 11}, (8, 3, None, None, None)),
    "OpenAI": (
        {
            "prompt_tokens": 2006,
            "completion_tokens": 300,
            "total_tokens": 2306,
            "prompt_tokens_details": {"cached_tokens": 1920},
            "completion_tokens_details": {"reasoning_tokens": 256},
        },
        (2006, 300, 1920, 256, None),
    ),
    "OpenAI without details": (
        {"prompt_tokens": 8, "completion_tokens": 3, "prompt_tokens_details": None},
        (8, 3, None, None, None),
    ),
    "OpenAI's names of responses": (
        {
            "input_tokens": 36,
            "output_tokens": 87,
            "total_tokens": 123,
            "input_tokens_details": {"cached_tokens": 30},
            "output_tokens_details": {"reasoning_tokens": 64},
        },
        (36, 87, 30, 64, None),
    ),
    "Anthropic": (
        {
            "input_tokens": 12,
            "output_tokens": 5,
            "cache_read_input_tokens": 2495,
            "cache_creation_input_tokens": 100,
        },
        (2607, 5, 2495, None, None),
    ),
    "Anthropic, nothing cached": (
        {"input_tokens": 12, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
        (12, 5, 0, None, None),
    ),
    "Anthropic's counts under OpenAI's names": (
        {"prompt_tokens": 12, "completion_tokens": 5, "cache_read_input_tokens": 2495, "total_tokens": 17},
        (2507, 5, 2495, None, None),
    ),
    "LiteLLM, which adds Anthropic's cache to the prompt": (
        {
            "prompt_tokens": 98805,
            "completion_tokens": 5120,
            "total_tokens": 103925,
            "prompt_tokens_details": {"cached_tokens": 66360, "cache_creation_tokens": 32435},
            "completion_tokens_details": {"reasoning_tokens": 1710},
            "cache_read_input_tokens": 66360,
            "cache_creation_input_tokens": 32435,
        },
        (98805, 5120, 66360, 1710, None),
    ),
    "DeepSeek": (
        {
            "prompt_tokens": 500,
            "completion_tokens": 20,
            "total_tokens": 520,
            "prompt_cache_hit_tokens": 448,
            "prompt_cache_miss_tokens": 52,
        },
        (500, 20, 448, None, None),
    ),
    "Moonshot": ({"prompt_tokens": 500, "completion_tokens": 20, "cached_tokens": 256}, (500, 20, 256, None, None)),
    "xAI": (
        {
            "prompt_tokens": 10120,
            "completion_tokens": 1499,
            "total_tokens": 14428,
            "prompt_tokens_details": {"cached_tokens": 128},
            "completion_tokens_details": {"reasoning_tokens": 2809},
            "cost_in_usd_ticks": 232856000,
        },
        (10120, 4308, 128, 2809, 0.0232856),
    ),
    "xAI, less reasoning than reply": (
        {
            "prompt_tokens": 20,
            "completion_tokens": 7,
            "total_tokens": 30,
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        (20, 10, None, 3, None),
    ),
    "Gemini": ({"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623}, (20, 603, None, 405, None)),
    "OpenRouter": (
        {
            "prompt_tokens": 13559,
            "completion_tokens": 122,
            "total_tokens": 13681,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
            "cost": 0.017558,
            "is_byok": False,
            "cost_details": {"upstream_inference_cost": None},
        },
        (13559, 122, 0, 0, 0.017558),
    ),
    "OpenRouter with the user's own key": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "cost": 0.001,
            "is_byok": True,
            "cost_details": {"upstream_inference_cost": 0.02},
        },
        (10, 2, None, None, 0.021),
    ),
    "a server with nonsense": (
        {"prompt_tokens": "many", "completion_tokens": -1, "total_tokens": 1 << 50, "cost": True, "cached_tokens": 0.5},
        (None, None, None, None, None),
    ),
}
NAMES = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cost")


@pytest.mark.parametrize("server", REPORTED)
def test_all_servers_are_read_with_one_accounting(server):
    reported, expected = REPORTED[server]
    found = token_usage(reported)
    assert tuple(found.get(name) for name in NAMES) == pytest.approx(expected)
    assert token_usage(found) == found
    assert all(name in found for name in reported if name not in (*NAMES, "total_tokens", "is_byok"))


VALUES = st.none() | st.booleans() | st.integers(-5, 50) | st.floats() | st.text(max_size=3)
WORDS = [
    *("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens", "cached_tokens", "cost"),
    *("cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_hit_tokens", "cached_tokens"),
]
DETAILS = ["prompt_tokens_details", "completion_tokens_details", "cost_details"]
INNER = st.dictionaries(st.sampled_from(["cached_tokens", "reasoning_tokens"]), VALUES)


@given(st.dictionaries(st.sampled_from(WORDS), VALUES), st.dictionaries(st.sampled_from(DETAILS), INNER | VALUES))
def test_whatever_is_reported_a_part_is_not_above_its_whole(counts, details):
    found = token_usage({**counts, **details})
    assert token_usage(found) == found
    for part, whole in (("cached_tokens", "prompt_tokens"), ("reasoning_tokens", "completion_tokens")):
        if part in found and whole in found and found.keys() >= {"prompt_tokens", "completion_tokens"}:
            assert 0 <= found[part] <= found[whole]
    assert all(type(found[name]) is int for name in NAMES[:4] if name in found)


@pytest.mark.parametrize("nothing", [None, [], "12", 3])
def test_a_usage_that_is_no_object_is_empty(nothing):
    assert token_usage(nothing) == {}
