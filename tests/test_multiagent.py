"""Environments with several agents."""

from __future__ import annotations

import json

import pytest

from gem.errors import BadAction, BadValue, EpisodeOver, InfraError
from gem.multiagent import AgentSelector, MultiAgentEnv, PlayerPool, as_single_agent


class Bidding(MultiAgentEnv):
    """Each agent bids; a bid of 0 ends its game, and one above 9 is cut off."""

    possible_agents = ("ann", "bob", "cat")
    state: dict

    def __init__(self, mode: str = "sequential") -> None:
        super().__init__()
        self.agent_selector = AgentSelector(self.possible_agents, mode=mode)

    def start_episode(self):
        self.state = {"prize": self.rng.randint(1, 10**6)}

    def observe(self, agent):
        return f"{agent}: {self.state['prize']}"

    def apply_actions(self, actions):
        for agent, bid in actions.items():
            self.rewards[agent] = float(bid)
            self.terminations[agent] = bid == 0
            self.truncations[agent] = bid > 9
            self.infos[agent] = {"bid": bid}


class Returning(Bidding):
    """The same game, whose rules return five dicts instead of changing attributes."""

    def apply_actions(self, actions):
        return (
            {agent: "seen" for agent in actions},
            {agent: float(bid) for agent, bid in actions.items()},
            {agent: bid == 0 for agent, bid in actions.items()},
            {agent: bid > 9 for agent, bid in actions.items()},
            {agent: {"bid": bid} for agent, bid in actions.items()},
        )


def test_the_hook_has_its_published_name_too():
    class Published(MultiAgentEnv):
        possible_agents = ("ann", "bob")

        def observe(self, agent):
            return agent

        def _process_actions(self, actions):
            self.rewards["ann"] = 1.0

    env = Published()
    env.reset(seed=0)
    assert env.step({"ann": "x"})[1] == {"ann": 1.0, "bob": 0.0}
    assert env.every_move() == env.legal_moves() == [] and env.zero_sum


def test_a_subclass_may_use_the_published_name_below_a_class_with_the_other():
    class Stopping(Bidding):
        def _process_actions(self, actions):
            self.terminations = dict.fromkeys(self.agents, True)

    env = Stopping()
    env.reset(seed=0)
    assert env.step({"ann": 3})[1] == {"ann": 0.0, "bob": 0.0, "cat": 0.0} and env.agents == []


def test_an_environment_without_rules_names_the_hook():
    class Empty(MultiAgentEnv):
        possible_agents = ("ann",)

        def observe(self, agent):
            return agent

    env = Empty()
    env.reset(seed=0)
    with pytest.raises(NotImplementedError, match=r"Empty must define apply_actions"):
        env.step({"ann": "x"})


def test_the_same_seed_starts_the_same_episode():
    env, twin = Bidding(), Bidding()
    first = env.reset(seed=3)
    assert first == twin.reset(seed=3) and list(first[0]) == ["ann", "bob", "cat"]
    assert env.reset() == twin.reset() != first


def test_sequential_agents_act_in_turn():
    env = Bidding()
    env.reset(seed=1)
    for agent in ("ann", "bob", "cat", "ann"):
        assert env.agent_selector.get_active_agents() == [agent]
        assert env.step({agent: 1})[1][agent] == 1.0


@pytest.mark.parametrize("cls", [Bidding, Returning])
def test_parallel_agents_act_at_once_and_terminations_are_stored(cls):
    env = cls("parallel")
    env.reset(seed=1)
    _, rewards, terminated, truncated, infos = env.step({"ann": 3, "bob": 0, "cat": 12})
    assert rewards == {"ann": 3.0, "bob": 0.0, "cat": 12.0}
    assert (terminated["bob"], truncated["cat"], infos["ann"]) == (True, True, {"bid": 3})
    assert env.terminations == {"ann": False, "bob": True, "cat": False}
    assert env.agents == ["ann"]
    assert list(env.get_active_states()) == ["ann"]


@pytest.mark.parametrize(("ends", "following"), [("ann", "bob"), ("bob", "cat"), ("cat", "ann")])
def test_no_agent_is_skipped_after_another_has_ended(ends, following):
    env = Bidding()
    env.reset(seed=1)
    while env.agent_selector.get_active_agents() != [ends]:
        env.step({env.agent_selector.get_active_agents()[0]: 1})
    env.step({ends: 0})
    assert env.agent_selector.get_active_agents() == [following]


def test_the_episode_is_over_when_all_agents_have_left():
    env = Bidding("parallel")
    with pytest.raises(EpisodeOver):
        env.step({})
    env.reset(seed=1)
    env.step(dict.fromkeys(env.agents, 0))
    with pytest.raises(EpisodeOver):
        env.step({})
    env.reset()
    assert env.agents == ["ann", "bob", "cat"] and not any(env.terminations.values())


@pytest.mark.parametrize("actions", [{}, {"bob": 1}, {"ann": 1, "bob": 1}, {"zoe": 1}])
def test_actions_must_be_those_of_the_active_agents(actions):
    env = Bidding()
    env.reset(seed=1)
    with pytest.raises(BadValue, match="ann"):
        env.step(actions)
    with pytest.raises(BadAction):
        env.step("bid")


def test_actions_of_all_agents_in_turn_name_the_parallel_mode():
    env = Bidding()
    env.reset(seed=1)
    with pytest.raises(BadValue, match=r"one after another.*AgentSelector\(possible_agents, mode='parallel'\)"):
        env.step({"ann": 1, "bob": 1, "cat": 1})
    both = Bidding("parallel")
    both.reset(seed=1)
    with pytest.raises(BadValue, match=r"must be those of \['ann', 'bob', 'cat'\], got \['ann'\]$"):
        both.step({"ann": 1})


def test_the_state_of_an_agent_holds_its_sum_of_rewards():
    env = Bidding("parallel")
    env.reset(seed=1)
    for _ in range(2):
        env.step(dict.fromkeys(env.agents, 2))
    assert env.get_state("bob")[1:] == (4.0, False, False, {"bid": 2})
    with pytest.raises(BadValue, match="bob"):
        env.get_state("bobb")


def test_an_episode_can_be_saved_and_forked():
    env = Bidding()
    env.reset(seed=5)
    env.step({"ann": 0})
    env.send_message("bob", "cat", "hello")
    saved = json.loads(json.dumps(env.get_state()))
    fork = env.spawn(same_state=True)
    assert fork.agents == ["bob", "cat"] and fork.shared_memory == env.shared_memory
    expected = env.step({"bob": 4})
    assert fork.step({"bob": 4}) == expected
    env.set_state(saved)
    assert env.step({"bob": 4}) == expected


def test_messages_reach_one_agent_or_all_others():
    env = Bidding()
    env.reset(seed=1)
    env.broadcast_message("ann", "hi")
    env.send_message("bob", "ann", "hello")
    assert env.shared_memory == [
        {"from": "ann", "to": "bob", "message": "hi"},
        {"from": "ann", "to": "cat", "message": "hi"},
        {"from": "bob", "to": "ann", "message": "hello"},
    ]
    env.reset()
    assert env.shared_memory == []


def test_an_agent_can_join_and_leave_a_running_episode():
    env = Bidding("parallel")
    env.reset(seed=1)
    env.add_agent("dan")
    env.remove_agent("ann")
    assert list(env.step({"bob": 1, "cat": 1, "dan": 1})[1]) == ["bob", "cat", "dan"]


def test_a_selector_rejects_an_unknown_mode_and_repeated_agents():
    with pytest.raises(BadValue, match="parallel"):
        AgentSelector(["a"], "both")
    with pytest.raises(BadValue):
        AgentSelector(["a", "a"])


def test_a_selector_of_no_agents_is_empty():
    selector = AgentSelector([])
    assert selector.next() == selector.get_active_agents() == []
    selector.add_agent("a")
    assert selector.get_active_agents() == ["a"] and selector.is_first() and selector.is_last()


class HigherBids:
    """Bids one more each time, from a first bid that is drawn in each episode."""

    def start_episode(self, env, agent, rng):
        return Bids(rng.randint(1, 10**6))


class Bids:
    def __init__(self, bid):
        self.bid = bid

    def act(self, env, agent, rng):
        self.bid += 1
        return self.bid / 10**6

    def get_state(self):
        return self.bid

    def set_state(self, state):
        self.bid = state


class Same:
    def __init__(self, action):
        self.action = action

    def act(self, env, agent, rng):
        if isinstance(self.action, Exception):
            raise self.action
        return self.action


def bids(env, steps=3):
    """Return what bob bids after each step of cat."""
    return [env.step(1) and env.infos["bob"]["bid"] for _ in range(steps)]


def test_a_player_of_an_episode_remembers_it_and_no_other_episode():
    player = HigherBids()
    env, other = (as_single_agent(Bidding(), "cat", {"ann": Same(1), "bob": player}) for _ in range(2))
    env.reset(seed=1)
    expected = bids(env)
    assert expected == sorted(set(expected))
    other.reset(seed=1)
    env.reset(seed=2)
    assert bids(env) != expected and bids(other) == expected
    env.reset(seed=1)
    assert bids(env) == expected


def test_the_state_of_an_episode_has_that_of_the_players():
    env = as_single_agent(Bidding(), "cat", {"ann": Same(1), "bob": HigherBids()})
    env.reset(seed=1)
    env.step(1)
    saved = json.loads(json.dumps(env.get_state()))
    fork = env.spawn(same_state=True)
    expected = bids(env)
    assert bids(fork) == expected
    env.set_state(saved)
    assert json.loads(json.dumps(env.get_state())) == saved
    assert bids(env) == expected
    with pytest.raises(BadValue, match="invalid state"):
        env.set_state({**saved, "wrapper": {**saved["wrapper"], "players": 3}})


def test_a_pool_draws_a_player_for_each_episode_from_its_seed():
    def drawn(seeds):
        env = as_single_agent(Bidding(), "cat", {"ann": Same(1), "bob": PlayerPool([Same(2), Same(3), HigherBids()])})
        found = []
        for seed in seeds:
            env.reset(seed=seed)
            found.append(bids(env, 2))
        return found

    found = drawn(range(40))
    assert drawn(range(20, 40)) == found[20:]
    assert [2, 2] in found and [3, 3] in found and any(first < second for first, second in found)
    with pytest.raises(BadValue, match="at least one player"):
        PlayerPool([])
    with pytest.raises(BadValue, match=r"player 1 .*act\(env, agent, rng\)"):
        PlayerPool([Same(1), "best"])


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (KeyError("lost"), InfraError, "KeyError: 'lost'"),
        (InfraError("lost"), InfraError, "lost"),
        (EpisodeOver("lost"), BadValue, "EpisodeOver: lost"),
    ],
)
def test_an_exception_of_a_player_names_its_agent(error, raised, message):
    env = as_single_agent(Bidding(), "ann", {"bob": Same(error), "cat": Same(1)})
    env.reset(seed=1)
    with pytest.raises(raised, match=f" bob .*: {message}$"):
        env.step(1)


def test_an_action_of_the_wrong_type_names_its_agent():
    class Strict(Bidding):
        def apply_actions(self, actions):
            for action in actions.values():
                if not isinstance(action, int):
                    raise BadAction(f"a bid must be an integer, got {action!r}")
            super().apply_actions(actions)

    env = as_single_agent(Strict(), "ann", {"bob": Same(None), "cat": Same(1)})
    env.reset(seed=1)
    with pytest.raises(BadAction, match=r"^bob: a bid .*got None$"):
        env.step(1)
