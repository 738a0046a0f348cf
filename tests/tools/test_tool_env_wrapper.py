"""ToolEnvWrapper: dispatch, budget, rewards, counters, state and concurrency."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import partial

import pytest
from fake_tools import CODE, Echo, Old, Python, Search

import gem
from gem.core import EnvWrapper, Step, StopReason, has_coroutines
from gem.errors import BadAction, BadValue, EpisodeOver, ToolError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import Function
from gem.tools.formats import CallFormat
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.wrappers import EpisodeTrackingWrapper, ObservationWrapper


def wrapped(*tools, env=None, **options):
    env = ToolEnvWrapper(Echo() if env is None else env, list(tools) or [Python()], **options)
    env.reset(seed=0)
    return env


def named(name, arguments="{}"):
    return f"<tool_call><tool_name>{name}</tool_name><arguments>{arguments}</arguments></tool_call>"


class TestDispatch:
    def test_calls_go_to_the_tool_and_other_messages_to_the_environment(self):
        env = wrapped()
        step = env.step("<think>x</think><python>1+1</python> so")
        assert step == Step(
            "ran 1+1",
            0.0,
            info={
                "use_tool": True,
                "tool_type": "python_code",
                "parsed_action": "<think>x</think><python>1+1</python>",
                "tool_calls": [
                    {"id": None, "name": "python", "arguments": {"code": "1+1"}, "fault": None, "text": "ran 1+1"}
                ],
                "tool_use_counter": 1,
                "tool_success_counter": 1,
                "tool_faults": {},
            },
        )
        step = env.step("It is 2.")
        assert step == Step(
            "heard It is 2.",
            1 / 3,
            info={
                "use_tool": False,
                "tool_type": None,
                "parsed_action": "It is 2.",
                "tool_use_counter": 1,
                "tool_success_counter": 1,
                "tool_faults": {},
            },
        )
        assert env.state.actions == ["It is 2."]

    def test_a_message_with_a_call_and_an_answer_is_a_call(self):
        env = wrapped()
        assert env.step(r"<python>1</python> \boxed{1}").info["use_tool"]
        assert env.state.actions == []

    @pytest.mark.parametrize("order", [(Python, Search), (Search, Python)])
    def test_the_error_of_a_tool_is_shown_for_any_order_of_tools(self, order):
        env = wrapped(*(tool() for tool in order))
        for action, says, kind in [
            ("<python>fail</python>", "ran fail", "python_code"),
            ("<search>fail</search>", "ran fail", "search"),
        ]:
            step = env.step(action)
            assert (step.observation, step.info["tool_type"]) == (says, kind)
        assert env.state.actions == []
        assert env.tool_counts.errors == {"error": 2}

    def test_several_calls_of_a_message_run_in_order(self):
        env = wrapped(Python(), Search())
        step = env.step("<search>a</search> <python>b</python> <search>fail</search>")
        assert step.observation == "ran a\nran b\nran fail"
        assert (step.info["tool_use_counter"], step.info["tool_success_counter"]) == (3, 2)
        assert [call["fault"] for call in step.info["tool_calls"]] == [None, None, "error"]

    @pytest.mark.parametrize(
        ("action", "fault", "says"),
        [
            ("<python></python>", "empty", "is empty"),
            ("<python> \n </python>", "empty", "is empty"),
            (named("python", '{"code": ""}'), "empty", "is empty"),
            ("<python>1", "malformed", "<python> is never closed"),
            (named("python", '{"code": }'), "malformed", "not valid JSON: Expecting value"),
            (named(""), "malformed", "the tool name is empty"),
            (named("pyton", '{"code": "1"}'), "unknown_tool", "'pyton'; did you mean 'python'?"),
            ("<pyhton>1</pyhton>", "unknown_tool", "did you mean 'python'?"),
            (named("python"), "bad_arguments", "missing argument 'code'"),
            (named("python", '{"code": 1}'), "bad_arguments", "Expected `str`, got `int` - at `code`"),
            (named("python", '{"cod": "1"}'), "bad_arguments", "'cod' looks like a misspelling"),
            (named("search", '{"query": "a", "topk": "2"}'), "bad_arguments", "Expected `int`, got `str` - at `topk`"),
            (named("python", '{"code": "\\ud800"}'), "bad_arguments", "half of a surrogate pair"),
        ],
    )
    def test_an_invalid_call_is_explained_and_not_executed(self, action, fault, says):
        env = wrapped(Python(), Search(), tool_reward=0.05, tool_success_reward=0.25)
        step = env.step(action)
        assert says in step.observation
        assert step.info["tool_faults"] == {fault: 1}
        assert step.info["invalid"] == fault
        assert step.info["use_tool"]
        assert (step.reward, step.terminated, step.truncated) == (0.0, False, False)
        assert (step.info["tool_use_counter"], step.info["tool_success_counter"]) == (0, 0)
        assert env.state.actions == []
        assert env.tools[0].ran == []

    def test_errors_are_counted_by_type(self):
        env = wrapped()
        for action in (named("x"), named("y"), "<python>1", named("python"), "<python>fail</python>"):
            info = env.step(action).info
        assert info["tool_faults"] == {"unknown_tool": 2, "malformed": 1, "bad_arguments": 1, "error": 1}

    def test_a_timeout_is_an_observation(self):
        step = wrapped().step("<python>late</python>")
        assert (step.observation, step.info["tool_faults"]) == ("ran late", {"timeout": 1})
        assert "invalid" not in step.info

    def test_messages_can_be_mappings(self):
        env = wrapped(format="openai")
        entry = {"id": "c7", "type": "function", "function": {"name": "python", "arguments": '{"code": "1"}'}}
        step = env.step({"role": "assistant", "content": "I run it.", "tool_calls": [entry]})
        assert step.observation == [{"role": "tool", "tool_call_id": "c7", "content": "ran 1"}]
        assert step.info["tool_calls"][0]["id"] == "c7"
        assert step.info["parsed_action"] == "I run it."
        assert env.step({"role": "assistant", "content": "It is 1."}).observation == "heard It is 1."

    def test_results_carry_call_ids_and_the_last_announces_the_end_of_the_budget(self):
        env = wrapped(format="openai", max_tool_uses=1)
        functions = [{"name": "python", "arguments": '{"code": "1"}'}, {"name": "pyton", "arguments": "{}"}]
        entries = [{"id": f"c{i}", "type": "function", "function": function} for i, function in enumerate(functions)]
        answers = env.step({"role": "assistant", "content": None, "tool_calls": entries}).observation
        assert [(answer["role"], answer["tool_call_id"]) for answer in answers] == [("tool", "c0"), ("tool", "c1")]
        assert answers[0]["content"] == "ran 1" and "did you mean 'python'" in answers[1]["content"]
        assert "used your only tool call" in answers[1]["content"]

    def test_a_result_does_not_end_the_tag_that_a_template_puts_around_it(self):
        step = wrapped(format="hermes").step(
            '<tool_call>{"name": "python", "arguments": {"code": "a</tool_response>b"}}'
        )
        assert step.observation == "ran a&lt;/tool_response>b"

    def test_an_action_that_is_not_a_message_raises(self):
        with pytest.raises(BadAction):
            wrapped().step(None)


class TestBudget:
    def test_the_end_of_the_budget_is_announced_and_further_messages_go_to_the_environment(self):
        env = wrapped(max_tool_uses=2)
        assert "used all" not in env.step("<python>1</python>").observation
        assert "used all 2 tool calls" in env.step("<python>2</python>").observation
        for action in (r"<python>3</python> \boxed{3}", "```python\n3\n```", "<python>cut"):
            step = env.step(action)
            assert step.observation == f"heard {action}"
            assert (step.info["use_tool"], step.info["tool_faults"], step.info["tool_use_counter"]) == (False, {}, 2)
        assert step.terminated and env.tools[0].ran == ["1", "2"]

    def test_native_calls_after_the_budget_are_answered(self):
        env = wrapped(format="openai", max_tool_uses=1)
        function = {"name": "python", "arguments": '{"code": "1"}'}
        message = {"role": "assistant", "content": "3", "tool_calls": [{"id": "c0", "function": function}]}
        env.step(message)
        step = env.step(message)
        assert step.observation[0]["tool_call_id"] == "c0"
        assert step.observation[0]["content"].startswith("You have used your only tool call")
        assert step.info["tool_faults"] == {"over_budget": 1}
        assert env.state.actions == []

    def test_calls_of_a_message_run_up_to_the_budget(self):
        env = wrapped(max_tool_uses=2)
        step = env.step("<python>1</python><python>2</python><python>3</python>")
        assert [call["fault"] for call in step.info["tool_calls"]] == [None, None, "over_budget"]
        assert step.observation.count("used all 2") == 1
        assert env.tools[0].ran == ["1", "2"]

    def test_invalid_calls_do_not_use_up_the_budget(self):
        env = wrapped(max_tool_uses=1)
        for _ in range(3):
            env.step("<python></python>")
        assert env.step("<python>1</python>").observation.startswith("ran 1")

    def test_a_budget_of_zero_passes_every_message_on(self):
        assert wrapped(max_tool_uses=0).step("<python>1</python>").observation == "heard <python>1</python>"

    def test_an_episode_of_invalid_calls_only_is_truncated(self):
        env = wrapped(max_tool_uses=1)
        steps = [env.step("<python></python>") for _ in range(11)]
        assert [step.truncated for step in steps] == [False] * 10 + [True]
        assert steps[-1].info["stop_reason"] is StopReason.MAX_TURNS
        assert not steps[-1].terminated
        with pytest.raises(EpisodeOver):
            env.step("4")

    def test_the_message_limit_includes_messages_to_the_environment(self):
        env = wrapped(max_messages=2)
        env.step("a")
        step = env.step("<python>1</python>")
        assert (step.truncated, step.info["stop_reason"]) == (True, StopReason.MAX_TURNS)
        assert "outside_limit" not in step.info, "the builder of the environment states it"
        env.reset()
        env.step("<python>1</python>")
        assert env.step("a").truncated

    def test_an_episode_that_ends_with_its_last_message_is_not_truncated(self):
        env = wrapped(max_messages=3)
        for action in "ab":
            env.step(action)
        step = env.step("c")
        assert (step.terminated, step.truncated) == (True, False)
        assert "stop_reason" not in step.info

    def test_a_long_game_is_not_truncated_by_default(self):
        with ToolEnvWrapper(gem.make("game:GuessTheNumber-v0", max_turns=60), [Python()], max_tool_uses=1) as env:
            env.reset(seed=1)
            for _ in range(40):
                assert not env.step(r"\boxed{1}").truncated

    def test_end_on_truncation_also_sets_terminated(self):
        inner = gem.make("game:GuessTheNumber-v0", end_on_truncation=True)
        env = wrapped(env=inner, max_messages=1)
        step = env.step("<python>1</python>")
        assert (step.terminated, step.truncated) == (True, True)

    def test_steps_after_the_end_raise(self):
        env = wrapped()
        for action in "abc":
            step = env.step(action)
        assert step.terminated
        with pytest.raises(EpisodeOver):
            env.step("<python>1</python>")
        with pytest.raises(EpisodeOver):
            ToolEnvWrapper(Echo(), [Python()]).step("<python>1</python>")


class TestRewards:
    def test_rewards_default_to_zero(self):
        env = wrapped()
        total = sum(env.step(action).reward for action in ("<python>1</python>", "<python>fail</python>", *"abc"))
        assert total == pytest.approx(1.0)

    def test_rewards_for_uses_successes_and_errors_are_named(self):
        env = wrapped(tool_reward=0.05, tool_success_reward=0.25, tool_execute_error_reward=-0.1)
        step = env.step("<python>1</python>")
        assert step.reward == pytest.approx(0.3)
        assert step.info["reward_parts"] == {"tool": 0.05, "tool_success": 0.25}
        step = env.step("<python>fail</python>")
        assert step.reward == pytest.approx(-0.05)
        assert step.info["reward_parts"] == {"tool": 0.05, "tool_error": -0.1}
        step = env.step("<python></python>")
        assert step.info["reward_parts"] == {"tool_error": -0.1}
        assert env.step("a").reward == 1 / 3

    def test_uses_and_successes_are_rewarded_once_per_call_of_a_message(self):
        env = wrapped(tool_reward=0.05, tool_success_reward=0.25)
        step = env.step("<python>1</python><python>2</python>")
        assert step.reward == pytest.approx(0.6)
        assert step.info["reward_parts"] == {"tool": pytest.approx(0.1), "tool_success": pytest.approx(0.5)}
        assert (step.info["tool_use_counter"], step.info["tool_success_counter"]) == (2, 2)

    def test_the_error_reward_is_paid_once_per_call_with_an_error(self):
        env = wrapped(tool_execute_error_reward=-0.1)
        step = env.step(f"<python>fail</python><python>fail</python>{named('x')}")
        assert step.reward == pytest.approx(-0.3)
        assert step.info["reward_parts"] == {"tool_error": pytest.approx(-0.3)}

    def test_an_empty_call_does_not_count_as_a_use(self):
        class Picky(Python):
            def call(self, call):
                return ToolResult("nothing to do", ToolErrorType.EMPTY)

        env = wrapped(Picky(), tool_reward=0.05)
        step = env.step("<python># a comment</python>")
        assert (step.reward, step.info["tool_use_counter"], step.info["tool_faults"]) == (0.0, 0, {"empty": 1})

    def test_a_call_over_the_budget_earns_no_reward(self):
        env = wrapped(tool_reward=0.05, tool_success_reward=0.25, max_tool_uses=1)
        assert env.step("<python>1</python><python>2</python>").reward == pytest.approx(0.3)


class TestResets:
    def test_the_first_observation_ends_with_the_instructions(self):
        observation, info = ToolEnvWrapper(Echo(), [Python()]).reset(seed=0)
        assert observation == f"Question?\n{Python().instruction_string()}"
        counters = {"tool_use_counter": 0, "tool_success_counter": 0, "tool_faults": {}}
        counters |= {"prev_ep_tool_use_counter": 0, "prev_ep_tool_success_counter": 0}
        assert info == {"suffix": "Your turn.", **counters}

    def test_several_tools_are_listed(self):
        observation, _ = ToolEnvWrapper(Echo(), [Python(), Old()]).reset()
        assert "Available tools:\n" in observation
        assert observation.endswith("Write <old>x</old>.")

    @pytest.mark.parametrize(
        ("first", "expected"),
        [
            ({"text": "Q", "images": []}, {"text": "Q\nHOW", "images": []}),
            ([{"role": "user", "content": "Q"}], [{"role": "user", "content": "Q\nHOW"}]),
            (
                [{"role": "system", "content": "S"}],
                [{"role": "system", "content": "S"}, {"role": "user", "content": "HOW"}],
            ),
            (None, "HOW"),
            ("", "HOW"),
        ],
    )
    def test_instructions_are_appended_to_every_kind_of_observation(self, first, expected):
        class Opens(Echo):
            def reset(self, seed=None):
                super().reset(seed)
                return first, {}

        class Short(Python):
            def instruction_string(self):
                return "HOW"

        before = json.dumps(first)
        assert ToolEnvWrapper(Opens(), [Short()]).reset()[0] == expected
        assert json.dumps(first) == before

    def test_a_reset_reports_the_previous_episode_and_clears_the_counters(self):
        env = ToolEnvWrapper(Echo(), [Python()])
        assert env.reset(seed=0)[1]["prev_ep_tool_use_counter"] == 0
        env.step("<python>1</python>")
        env.step("<python>fail</python>")
        _, info = env.reset()
        assert (info["prev_ep_tool_use_counter"], info["prev_ep_tool_success_counter"]) == (2, 1)
        assert (info["tool_use_counter"], info["tool_success_counter"], info["tool_faults"]) == (0, 0, {})
        assert env.tools[0].resets == 2

    def test_the_openai_format_provides_the_schemas(self):
        _, info = ToolEnvWrapper(Echo(), [Python()], format="openai").reset()
        assert [entry["function"]["name"] for entry in info["tools"]] == ["python"]

    def test_close_closes_everything_even_if_one_raises(self):
        class Stuck(Python):
            def close(self):
                raise OSError("stuck")

        class Closing(Echo):
            closed = False

            def close(self):
                self.closed = True

        inner = Closing()
        env = ToolEnvWrapper(inner, [Python(), Stuck(), Python2()])
        with pytest.raises(OSError, match="stuck"):
            env.close()
        assert inner.closed
        assert (env.tools[0].closed, env.tools[2].closed) == (1, 1)


class Python2(Python):
    tag = "python2"

    def functions(self):
        return [Function("python2", "", CODE)]


class TestOwnership:
    def test_a_tool_passed_to_a_second_environment_is_spawned(self):
        tool = Python()
        one, two = wrapped(tool), wrapped(tool)
        assert one.tools[0] is tool
        assert two.tools[0] is not tool
        one.step("<python>1</python>")
        assert two.tools[0].ran == []

    def test_classes_and_functions_build_tools(self):
        env = wrapped(Python, lambda: Search())
        assert [type(tool) for tool in env.tools] == [Python, Search]

    @pytest.mark.parametrize("backend", ["sync", "thread", "async", "process"])
    def test_vector_slots_never_share_a_tool(self, backend):
        if backend == "process":
            pytest.importorskip("cloudpickle")
        wrap = partial(ToolEnvWrapper, tools=[Python()], max_tool_uses=2)
        with gem.make_vec("game:GuessTheNumber-v0", num_envs=3, wrappers=[wrap], backend=backend) as vec_env:
            vec_env.reset()
            for uses in (1, 2):
                step = vec_env.step(["<python>1</python>"] * 3)
                assert [info["tool_use_counter"] for info in step.infos_B] == [uses] * 3
            if backend == "sync":
                assert len({id(env.tools[0]) for env in vec_env.envs}) == 3

    @pytest.mark.parametrize("tools", [[], Python(), "python", [3], [lambda: 3], None])
    def test_objects_that_are_not_tools_are_refused(self, tools):
        with pytest.raises(BadValue, match="tool"):
            ToolEnvWrapper(Echo(), tools)

    def test_duplicate_function_names_are_refused(self):
        with pytest.raises(BadValue, match="two tools have a function 'python'"):
            ToolEnvWrapper(Echo(), [Python(), Python()]).reset()

    @pytest.mark.parametrize(
        "options",
        [{"tool_execute_error_reward": 0.1}, {"max_tool_uses": -1}, {"max_messages": 0}, {"max_tool_uses": True}],
    )
    def test_settings_out_of_range_raise_with_their_name(self, options):
        with pytest.raises(BadValue, match=next(iter(options))):
            ToolEnvWrapper(Echo(), [Python()], **options)


class TestTextTools:
    def test_tools_that_parse_text_work_alongside_others(self):
        for tools in ([Old(), Python()], [Python(), Old()]):
            env = wrapped(*tools)
            assert env.step("so <old>x</old> and").observation == "old x"
            step = env.step("<old>fail</old>")
            assert (step.observation, step.info["tool_type"], step.info["tool_faults"]) == (
                "old fail",
                "old",
                {"error": 1},
            )
            assert step.info["parsed_action"] == "<old>fail</old>"
            assert env.step("<python>1</python>").observation == "ran 1"
            assert env.step("answer").observation == "heard answer"
            assert env.state.actions == ["answer"]

    def test_they_do_not_run_after_the_budget(self):
        env = wrapped(Old(), max_tool_uses=1)
        env.step("<old>x</old>")
        assert env.step("<old>y</old>").observation == "heard <old>y</old>"
        assert env.tools[0].seen == ["<old>x</old>"]

    def test_tools_with_call_also_support_execute_action(self):
        tool = Python()
        assert tool.execute_action("so <python>1</python> and") == (True, False, "ran 1", "so <python>1</python>")
        assert tool.execute_action("<python>fail</python>")[:3] == (True, True, "ran fail")
        assert tool.execute_action("<python></python>")[:2] == (True, True)
        assert tool.execute_action("no call") == (False, True, "", "")

    def test_text_tools_run_before_unknown_calls_are_refused(self):
        class Named(Old):
            def execute_action(self, action):
                found = "<tool_name>mine</tool_name>" in action
                return found, not found, "mine" if found else "", action

        for env in (wrapped(Named()), wrapped(Python(), Named())):
            assert env.step(named("mine")).observation == "mine"
            assert env.step(named("mine", "{broken")).observation == "mine"
            step = asyncio.run(env.astep(named("mine")))
            assert (step.observation, step.info["tool_use_counter"]) == ("mine", 3)
            step = env.step(named("yours"))
            assert "no tool 'yours'" in step.observation
            assert env.state.actions == []

    def test_an_overridden_execute_action_is_used(self):
        class Loud(Python):
            def execute_action(self, action):
                valid, failed, text, parsed = super().execute_action(action)
                return valid, failed, text.upper(), parsed

        env = wrapped(Loud())
        assert env.step("so <python>1</python> and").observation == "RAN 1"
        step = env.step("<python>fail</python>")
        assert (step.observation, step.info["tool_success_counter"]) == ("RAN FAIL", 1)
        assert env.step("answer").observation == "heard answer"


class TestFailures:
    def test_infrastructure_errors_propagate_and_nothing_is_counted(self):
        env = wrapped()
        env.step("<python>1</python>")
        before = env.own_state()
        with pytest.raises(ToolError, match="the server is gone"):
            env.step("<python>die</python>")
        assert env.own_state() == before
        assert env.step("<python>2</python>").info["tool_use_counter"] == 2

    def test_in_a_vector_only_one_slot_fails(self):
        wrap = partial(ToolEnvWrapper, tools=[Python])
        with gem.make_vec(
            "game:GuessTheNumber-v0", num_envs=2, wrappers=[wrap], async_mode=True, on_failure="restart"
        ) as vec_env:
            vec_env.reset()
            step = vec_env.step(["<python>die</python>", "<python>1</python>"])
            info = step.infos_B[0].get("final_info", step.infos_B[0])
            assert info["stop_reason"] == "failed"
            assert step.rewards_B[0] != step.rewards_B[0]
            assert step.observations_B[1] == "ran 1"
            step = vec_env.step(["<python>2</python>", "<python>3</python>"])
            assert list(step.observations_B) == ["ran 2", "ran 3"]


class TestState:
    def test_a_fork_is_independent(self):
        env = wrapped(max_tool_uses=3)
        env.step("<python>1</python>")
        env.step("<python></python>")
        fork = env.spawn(same_state=True)
        assert fork.tools[0].ran == ["1"]
        for action in ("<python>2</python>", "a", "<python>3</python>", "<python>4</python>"):
            assert fork.step(action) == env.step(action)
        fork.step("b")
        assert len(env.state.actions) == 2

    def test_the_state_is_plain_data_and_restores_everything(self):
        env = wrapped()
        env.step("<python>1</python>")
        state = json.loads(json.dumps(env.get_state()))
        expected = env.step("<python>2</python>")
        other = ToolEnvWrapper(Echo(), [Python()])
        other.set_state(state)
        assert other.step("<python>2</python>") == expected

    def test_an_invalid_state_changes_nothing(self):
        env = wrapped()
        env.step("<python>1</python>")
        before = env.get_state()
        for broken in ({"env": before["env"]}, {**before, "wrapper": {"uses": 1}}, {**before, "env": {}}):
            with pytest.raises(BadValue):
                env.set_state(broken)
            assert env.get_state() == before


class Waiting(Python):
    """Waits until as many calls as it was built for are waiting."""

    concurrent = True

    def __init__(self, together):
        super().__init__()
        self.together, self.waiting = together, 0
        self.barrier = threading.Barrier(together)

    def call(self, call):
        self.barrier.wait(timeout=20)
        return super().call(call)

    async def acall(self, call):
        self.waiting += 1
        for _ in range(10_000):
            if self.waiting >= self.together:
                return Python.call(self, call)
            await asyncio.sleep(0)
        raise AssertionError("no other call is waiting")


class TestWaiting:
    def test_coroutines_give_the_same_results(self):
        actions = ["<python>1</python>", "<old>x</old>", "<python></python>", "a", "<python>fail</python>", "b", "c"]

        async def awaited():
            env = ToolEnvWrapper(Echo(), [Python(), Old()])
            return [await env.areset(seed=0), *[await env.astep(action) for action in actions]]

        env = ToolEnvWrapper(Echo(), [Python(), Old()])
        assert asyncio.run(awaited()) == [env.reset(seed=0), *map(env.step, actions)]

    def test_tools_are_awaited_around_any_environment(self):
        env = ToolEnvWrapper(Echo(), [Python()])
        assert has_coroutines(env)
        assert has_coroutines(EpisodeTrackingWrapper(ObservationWrapper(env)))
        assert not has_coroutines(ObservationWrapper(Echo()))

    def test_concurrent_calls_of_one_message_overlap(self):
        action = "<python>1</python><python>2</python><python>3</python>"
        assert wrapped(Waiting(3)).step(action).observation == "ran 1\nran 2\nran 3"

        async def awaited():
            env = ToolEnvWrapper(Echo(), [Waiting(3)])
            await env.areset()
            return await env.astep(action)

        assert asyncio.run(awaited()).observation == "ran 1\nran 2\nran 3"

    def test_many_episodes_wait_without_a_thread_each(self):
        meeting = [0]

        class Meets(Python):
            async def acall(self, call):
                meeting[0] += 1
                while meeting[0] < 200:
                    await asyncio.sleep(0.001)
                return ToolResult("met")

        with gem.make_vec(
            "game:GuessTheNumber-v0",
            num_envs=200,
            wrappers=[partial(ToolEnvWrapper, tools=[Meets])],
            async_mode=True,
            timeout=60,
        ) as vec_env:
            vec_env.reset()
            before = threading.active_count()
            step = vec_env.step(["<python>1</python>"] * 200)
            assert set(step.observations_B) == {"met"}
            assert threading.active_count() - before < 100

    def test_episodes_overlap_under_a_wrapper_without_coroutines(self):
        class Plain(EnvWrapper):
            def step(self, action):
                return self.env.step(action)

        barrier = threading.Barrier(2)

        class Meets(Python):
            def call(self, call):
                barrier.wait(timeout=20)
                return ToolResult("met")

        with gem.make_vec(
            "game:GuessTheNumber-v0",
            num_envs=2,
            wrappers=[partial(ToolEnvWrapper, tools=[Meets]), Plain],
            async_mode=True,
        ) as vec_env:
            vec_env.reset()
            assert list(vec_env.step(["<python>1</python>"] * 2).observations_B) == ["met"] * 2

    def test_a_failed_concurrent_call_fails_the_step_after_all_have_ended(self):
        class Partly(Python):
            concurrent = True

        env = wrapped(Partly())
        with pytest.raises(ToolError):
            env.step("<python>1</python><python>die</python><python>2</python>")
        assert sorted(env.tools[0].ran) == ["1", "2"]
        assert env.tool_counts.uses == 0


class TestNesting:
    def test_nested_wrappers_execute_their_own_tools(self):
        env = ToolEnvWrapper(ToolEnvWrapper(Echo(), [Python()], tool_reward=0.5), [Search()])
        observation, _ = env.reset(seed=0)
        assert "<python>" in observation
        assert "<search>" in observation
        step = env.step("<python>1</python>")
        assert (step.observation, step.reward, step.info["use_tool"]) == ("ran 1", 0.5, True)
        step = env.step("<search>2</search>")
        assert (step.observation, step.info["tool_use_counter"]) == ("ran 2", 2)
        assert env.step(named("python", '{"code": "3"}')).observation == "ran 3"
        assert "no tool 'bash'" in env.step(named("bash")).observation
        assert env.step("a").info["tool_faults"] == {"unknown_tool": 1}
        assert env.state.actions == ["a"]
        _, info = env.reset()
        assert info["prev_ep_tool_use_counter"] == 3


class TestOtherWrappers:
    def test_history_contains_tool_results(self):
        env = ObservationWrapper(ToolEnvWrapper(Echo(), [Python()]), include_action=True)
        env.reset()
        assert "<python>1</python>\nran 1" in env.step("<python>1</python>").observation

    def test_a_custom_format_can_be_passed(self):
        class Shout(CallFormat):
            name = "shout"

            def find(self, text, tools):
                return ([ToolCall("python", {"code": text[4:]})], len(text)) if text.startswith("RUN ") else ([], 0)

            def instructions(self, functions):
                return "Shout RUN."

        env = ToolEnvWrapper(Echo(), [Python()], format=Shout())
        assert env.reset()[0].endswith("Shout RUN.")
        assert env.step("RUN 1").observation == "ran 1"
