"""The loops of training frameworks around gem, without the frameworks: each stub makes the calls that its client makes.

Oat, verl, Tinker, RL2 and OpenRLHF play a game, questions of a stub dataset, and a game with the Python tool. The
tests check what the client then computes: rewards, returns, masks, lengths, success. ROLL is in test_clients_roll.py.
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gem
from gem.wrappers.wrapper_factory import get_wrapper_fns

from .client_tasks import GAME, GAME_TURNS, ROWS, play, waste, wrapped


def encode(text: str) -> list[int]:
    return list(map(ord, text))


def rebn(returns: list[float]) -> Any:
    values = np.asarray(returns)
    return (values - values.mean()) / (values.std() + 1e-9)


# Oat, and the trainer for verl in GEM's examples: a vector of environments, and one training example per turn


@dataclass
class Transition:
    obs: str
    action: str
    reward: float
    done: bool
    info: dict[str, Any]


class OatActor:
    """Keeps a list of transitions per slot, and the episodes in flight between calls."""

    def __init__(
        self, env_id: str, wrappers: str, num_env: int = 3, async_env: bool = False, **env_kwargs: Any
    ) -> None:
        self.env = gem.make_vec(
            [env_id] * num_env,
            wrappers=get_wrapper_fns(wrappers, tokenizer=None),
            vec_kwargs=[{"seed": 1_763_866_000_000_000_000 + j, **env_kwargs} for j in range(num_env)],
            async_mode=async_env,
        )
        self.obs, _ = self.env.reset()
        self.running: list[list[Transition]] = [[] for _ in range(num_env)]

    def collect(self, policy: Any, episodes: int) -> list[list[Transition]]:
        finished: list[list[Transition]] = []
        while len(finished) < episodes:
            actions = [policy(obs) for obs in self.obs]
            next_obs, rewards, terminated, truncated, infos = self.env.step(actions)
            done = terminated | truncated
            for i in range(self.env.num_envs):
                self.running[i].append(Transition(self.obs[i], actions[i], float(rewards[i]), bool(done[i]), infos[i]))
                if done[i]:
                    finished.append(copy.deepcopy(self.running[i]))
                    self.running[i].clear()
            self.obs = next_obs
        return finished


@pytest.mark.parametrize("async_env", [False, True], ids=["sync", "async"])
def test_oat_collects_won_episodes(task, async_env):
    env_id, wrappers = task
    actor = OatActor(env_id, f"{wrappers},episode_tracking", async_env=async_env)
    try:
        episodes = actor.collect(play, 4) + actor.collect(play, 4)
    finally:
        actor.env.close()
    for episode in episodes:
        assert [t.done for t in episode] == [False] * (len(episode) - 1) + [True]
        assert sum(t.reward for t in episode) == episode[-1].reward == 1.0
        assert episode[-1].info["prev_ep_cumulative_rewards"] == 1.0
        assert episode[-1].info["prev_ep_step_counter"] == len(episode)
    returns = [0.9 ** (len(episode) - 1 - k) for episode in episodes for k in range(len(episode))]
    assert np.isfinite(rebn(returns)).all()


def test_oat_marks_episodes_at_the_turn_limit_as_done():
    actor = OatActor(GAME, "concat", max_turns=3)
    for episode in actor.collect(waste, 6):
        assert [(t.reward, t.done) for t in episode] == [(0.0, False), (0.0, False), (0.0, True)]
        assert "Turn" not in episode[0].obs and "Turn 2" in episode[2].obs


def test_oat_groups_episodes_by_state_or_by_deep_copy():
    env = gem.make_vec([GAME] * 4, wrappers=get_wrapper_fns("concat"), seed=3)
    env.reset()
    env.envs[0].step(r"\boxed{99}")
    for other in env.envs[1:]:
        other.set_state(env.envs[0].get_state())
    clone = copy.deepcopy(env.envs[0])
    steps = [each.step(r"\boxed{1}") for each in (*env.envs, clone)]
    assert all(step == steps[0] for step in steps) and "Turn 2: 1 is" in steps[0][0]


def test_oat_evaluates_with_partial_steps_until_each_slot_is_done(task):
    env_id, wrappers = task
    env = gem.make_vec([env_id] * 3, wrappers=get_wrapper_fns(wrappers), seed=7)
    observations, _ = env.reset()
    waiting, final = dict(enumerate(observations)), {}
    while waiting:
        obs, rewards, terminated, truncated, _ = env.step({i: play(text) for i, text in waiting.items()})
        for n, i in enumerate(list(waiting)):
            waiting[i] = obs[n]
            if terminated[n] or truncated[n]:
                final[i] = rewards[n]
                del waiting[i]
    env.close()
    assert final == {0: 1.0, 1: 1.0, 2: 1.0}


def test_oat_evaluates_given_rows(stub_data):
    env = gem.make_vec(["qa:HotpotQA"] * 2, seed=0)
    for start in (0, 2, 4):
        observations, infos = env.reset(env0_kwargs={"idx": start}, env1_kwargs={"idx": start + 1})
        assert [info["idx"] for info in infos] == [start, start + 1]
        assert [ROWS[start + i]["problem"] in text for i, text in enumerate(observations)] == [True, True]
        assert env.step([play(text) for text in observations])[1].tolist() == [1.0, 1.0]


# verl: an agent loop per row of a data set, with a mask over tokens


async def verl_agent_loop(extra_info: dict[str, Any]) -> dict[str, Any]:
    env = wrapped(gem.make(extra_info["env_id"], seed=extra_info["seed"]), extra_info["wrappers"])
    prompt, _ = env.reset()
    shown, response, mask, scores, turns = prompt, "", [], [], 0
    done = False
    while not done:
        action = play(shown)
        following, reward, terminated, truncated, _ = await asyncio.to_thread(env.step, action)
        done, turns = terminated or truncated, turns + 1
        new = "" if done else following[len(shown + action) :] if following.startswith(shown) else following
        response, mask = response + action + new, mask + [1] * len(action) + [0] * len(new)
        scores += [0.0] * (len(action) - 1) + [reward] + [0.0] * len(new)
        shown = following
    env.close()
    return {"prompt": prompt, "response": response, "mask": mask, "rm_scores": scores, "num_turns": turns}


def test_verl_rewards_the_last_token_of_each_turn(task):
    env_id, wrappers = task
    rows = [{"env_id": env_id, "wrappers": wrappers, "seed": seed} for seed in (1, 1, 2)]

    async def gather() -> list[dict[str, Any]]:
        return await asyncio.gather(*map(verl_agent_loop, rows))

    outputs = asyncio.run(gather())
    assert outputs[0] == outputs[1]  # a group shares its task
    for output in outputs:
        assert len(output["response"]) == len(output["mask"]) == len(output["rm_scores"])
        assert output["rm_scores"][-1] == sum(output["rm_scores"]) == 1.0
        assert output["mask"][-1] == 1 and 1 <= output["num_turns"] <= GAME_TURNS + 1
        said = "".join(text for text, own in zip(output["response"], output["mask"], strict=True) if own)
        assert said.count("boxed") == output["num_turns"] - ("<python>" in said)


# Tinker: one environment per member of a group, forked from the same state


class CookbookEnv:
    def __init__(self, env: Any, first: str) -> None:
        self.env, self.first = env, first

    async def initial_observation(self) -> list[int]:
        return encode(self.first)

    async def step(self, action: list[int], *, extra: dict[str, str] | None = None) -> tuple[list[int], float, bool]:
        observation, reward, terminated, truncated, _ = self.env.step("".join(map(chr, action)))
        return encode(observation), reward, terminated or truncated


@dataclass(frozen=True)
class GroupBuilder:
    env_id: str
    wrappers: str
    group_size: int = 3
    seed: int = 5

    async def make_envs(self) -> list[CookbookEnv]:
        env = wrapped(gem.make(self.env_id, seed=self.seed), self.wrappers)
        first, _ = env.reset()
        return [CookbookEnv(env.spawn(same_state=True), first) for _ in range(self.group_size)]


async def cookbook_rollout(env: CookbookEnv, policy: Any) -> list[tuple[list[int], list[int], float]]:
    observation, transitions, done = await env.initial_observation(), [], False
    while not done:
        action = encode(policy("".join(map(chr, observation))))
        following, reward, done = await env.step(action, extra={"stop_reason": "stop"})
        transitions.append((observation, action, reward))
        observation = following
    return transitions


def test_tinker_compares_members_of_a_group_and_merges_their_turns(task):
    builder = pickle.loads(pickle.dumps(GroupBuilder(*task)))

    async def group() -> list[Any]:
        policies = [play, play, lambda prompt: r"\boxed{0} <answer>0</answer>"]
        envs = await builder.make_envs()
        return await asyncio.gather(*(cookbook_rollout(env, p) for env, p in zip(envs, policies, strict=True)))

    members = asyncio.run(group())
    totals = [sum(reward for *_, reward in member) for member in members]
    assert totals == [1.0, 1.0, 0.0] and members[0] == members[1]
    advantages = [total - np.mean(totals) for total in totals]
    assert sum(advantages) == pytest.approx(0.0) and advantages[2] < 0
    for member in members:
        turns = [observation + action for observation, action, _ in member]
        data = 1 + sum(after[: len(before)] != before for before, after in pairwise(turns))
        assert data == 1


# RL2: text states, which stay one sequence while the next state begins with the state and the action


@dataclass
class Sample:
    sample: dict[str, Any]
    state_text: str = ""
    sequences: list[dict[str, Any]] = field(default_factory=list)
    status: str = "RUNNING"


ENVS: dict[int, Any] = {}  # environments of aborted samples, which are continued later


async def rl2_generate(sample: Sample, wrappers: str, budget: int) -> None:
    if id(sample) not in ENVS:
        env = ENVS[id(sample)] = wrapped(gem.make(env_id=sample.sample["env_id"], seed=sample.sample["seed"]), wrappers)
        sample.state_text, _ = env.reset()
        sample.sequences = [{"text": sample.state_text, "mask": [0] * len(sample.state_text), "rewards": []}]
    env = ENVS[id(sample)]
    for _ in range(budget):
        action = play(sample.state_text) + "<|im_end|>"  # the server keeps the end token
        next_state, reward, terminated, truncated, _ = await asyncio.to_thread(env.step, action)
        sequence, known = sample.sequences[-1], sample.state_text + action
        sequence["text"] += action
        sequence["mask"] += [1] * len(action)
        sequence["rewards"].append(reward)
        if terminated or truncated:
            sample.status = "DONE"
            ENVS.pop(id(sample)).close()
            return
        if next_state.startswith(known):
            sequence["text"] += next_state[len(known) :]
            sequence["mask"] += [0] * (len(next_state) - len(known))
        else:
            sample.sequences.append({"text": next_state, "mask": [0] * len(next_state), "rewards": []})
        sample.state_text = next_state
    sample.status = "ABORTED"


def test_rl2_keeps_an_episode_in_one_sequence_and_continues_aborted_samples(task):
    env_id, wrappers = task
    samples = [Sample({"env_id": env_id, "seed": seed}) for seed in range(3)]

    async def rounds() -> None:
        while running := [sample for sample in samples if sample.status != "DONE"]:
            await asyncio.gather(*(rl2_generate(sample, wrappers, budget=1) for sample in running))

    asyncio.run(rounds())
    for sample in samples:
        (sequence,) = sample.sequences
        assert len(sequence["text"]) == len(sequence["mask"])
        assert sum(sequence["rewards"]) == 1.0
        assert sequence["text"].count("<|im_end|>") == len(sequence["rewards"])


# OpenRLHF: an executor that keeps the tokens, and an instance that answers with text


class AgentInstance:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.env: Any = None

    async def reset(self, states: dict[str, Any], **kwargs: Any) -> dict[str, str]:
        label = json.loads(states["label"])
        self.env = wrapped(gem.make(label["env_id"], seed=label["seed"]), label["wrappers"])
        self.text, _ = self.env.reset()
        return {"observation": f"<|im_start|>user\n{self.text}<|im_end|>\n<|im_start|>assistant\n"}

    async def step(self, state_dict: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        action = state_dict["action_text"]
        following, reward, terminated, truncated, info = self.env.step(action)
        done, new = terminated or truncated, following[len(self.text + action) :].strip()
        self.text = following
        feedback = "" if done else f"<|im_end|>\n<|im_start|>user\n{new}<|im_end|>\n<|im_start|>assistant\n"
        solved = np.asarray(info.get("stop_reason") == "solved")
        rewards = np.asarray(reward)
        return {"rewards": rewards, "environment_feedback": feedback, "done": done, "extra_logs": {"solved": solved}}


async def openrlhf_execute(label: str) -> dict[str, Any]:
    agent, total, ranges, done = AgentInstance(), 0.0, [], False
    text = (await agent.reset({"observation": "", "label": label}))["observation"]
    while not done:
        action = play(text)
        ranges.append((len(text), len(text) + len(action)))
        result = await agent.step({"observation_text": text, "action_text": action, "label": label})
        text += action + result["environment_feedback"]
        total, done = total + result["rewards"].item(), result["done"]
    agent.env.close()
    return {"text": text, "reward": total, "action_ranges": ranges, "logs": result["extra_logs"]}


def test_openrlhf_sums_the_rewards_and_marks_the_actions(task):
    label = json.dumps({"env_id": task[0], "wrappers": task[1], "seed": 4})
    first, second = (asyncio.run(openrlhf_execute(label)) for _ in range(2))
    assert first == second
    assert first["reward"] == 1.0 and first["logs"]["solved"]
    assert first["text"].count("<|im_start|>assistant") == len(first["action_ranges"])
    assert all("boxed" in first["text"][a:b] or "python" in first["text"][a:b] for a, b in first["action_ranges"])
    assert first["action_ranges"][-1][1] == len(first["text"])
