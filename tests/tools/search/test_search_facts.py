"""qa:Facts with a search tool: recall of the passages, and the reward that search adds."""

from __future__ import annotations

import pytest
from agents import mean_reward, play
from facts_agent import researcher

import gem
from gem.envs.questions import facts
from gem.tools.search.tool import SearchTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

SEEDS = range(150)


def test_the_needed_passage_is_among_the_first_three():
    questions, titles = list(facts.questions()), {row["id"]: row["title"] for row in facts.passages()}
    one_hop = [row for row in questions if row["hops"] == 1]
    two_hops = [row for row in questions if row["hops"] == 2]
    index = facts.search_index()

    def recall(queries: list[str], wanted: list[str]) -> float:
        found = [[hit.document["id"] for hit in hits] for hits in index.search(queries, 3)]
        return sum(key in ids for key, ids in zip(wanted, found, strict=True)) / len(wanted)

    # The question finds the first passage; the title named in it finds the second.
    everything = [row["question"] for row in questions], [row["passages"][0] for row in questions]
    assert recall(*everything) >= 0.99
    assert recall([row["question"] for row in one_hop], [row["passages"][0] for row in one_hop]) >= 0.99
    second = [row["passages"][1] for row in two_hops]
    assert recall([titles[key] for key in second], second) >= 0.99


def test_search_raises_the_reward_from_guessing_to_nearly_one():
    with gem.make("qa:Facts") as env:
        alone = mean_reward(env, researcher, SEEDS)
    with ToolEnvWrapper(gem.make("qa:Facts"), tools=[SearchTool(index=facts.search_index())]) as env:
        helped = mean_reward(env, researcher, SEEDS)
    assert helped >= 0.95
    assert alone <= 0.1


def test_two_hop_questions_need_two_searches():
    two_hops = {row["question"] for row in facts.questions() if row["hops"] == 2}
    uses = {True: set(), False: set()}
    with ToolEnvWrapper(gem.make("qa:Facts"), tools=[SearchTool(index=facts.search_index())]) as env:
        for seed in range(40):
            played = play(env, researcher, seed)
            question = played.observations[0].partition("\n")[0]
            if played.reward == 1.0:
                uses[question in two_hops].add(played.info["tool_use_counter"])
    assert uses[True] == {2} and 1 in uses[False]


@pytest.mark.slow
def test_a_server_gives_the_same_observations_as_an_index_in_the_process(tmp_path):
    for module in ("aiohttp", "starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from search_fakes import running

    options = ("--corpus", facts.FOLDER / "passages.jsonl", "--index", tmp_path / "index")
    with (
        running("retrieval_server", *options) as server,
        ToolEnvWrapper(gem.make("qa:Facts"), tools=[SearchTool(search_url=server.url)]) as env,
        ToolEnvWrapper(gem.make("qa:Facts"), tools=[SearchTool(index=facts.search_index())]) as beside,
    ):
        for seed in range(10):
            assert play(env, researcher, seed).observations == play(beside, researcher, seed).observations
