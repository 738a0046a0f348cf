"""ObservationWrapper in each of its modes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import gem
from gem.core import Env, Step
from gem.errors import BadValue
from gem.wrappers import ObservationWrapper


class ParrotEnv(Env):
    """Repeats the action, with a board in the suffix."""

    def reset(self, seed=None):
        super().reset(seed)
        self.state = 0
        return "rules", {"suffix": "board 0"}

    def step(self, action):
        self.state += 1
        info = {"prefix": "task", "suffix": f"board {self.state}"}
        return Step(f"heard {action}", 1.0, terminated=action == "end", info=info)


class Template:
    """A tokenizer with only a chat template."""

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        assert tokenize is False
        text = "".join(f"<{m['role'][0]}>{m['content']}</{m['role'][0]}>" for m in messages)
        return text + ("<a>" if add_generation_prompt else "")


def without_boards(text: str) -> str:
    return re.sub(r"task\n|\nboard \d?", "", text)


def observations(*actions: str, **kwargs: Any) -> list[str]:
    env = ObservationWrapper(ParrotEnv(), **kwargs)
    return [env.reset(seed=1)[0], *(env.step(action).observation for action in actions)]


def test_plain_history_contains_all_observations():
    assert observations("x", "y") == [
        "rules\nboard 0",
        "rules\ntask\nheard x\nboard 1",
        "rules\nheard x\ntask\nheard y\nboard 2",
    ]


def test_history_with_actions_puts_each_before_its_observation():
    assert (
        observations("x", "y", include_action=True)[2]
        == "rules\nboard 0\nx\ntask\nheard x\nboard 1\ny\ntask\nheard y\nboard 2\n"
    )


def test_a_conversation_ends_with_the_header_of_the_reply():
    assert observations("x", "y", include_chat_template=True, tokenizer=Template()) == [
        "<u>rules\nboard 0</u><a>",
        "<u>rules\nboard 0</u><a>x</a><u>task\nheard x\nboard 1</u><a>",
        "<u>rules\nboard 0</u><a>x</a><u>task\nheard x\nboard 1</u><a>y</a><u>task\nheard y\nboard 2</u><a>",
    ]


def test_the_template_on_reset_leaves_the_rest_as_plain_text():
    shown = observations("x", "y", include_action=True, apply_chat_template_on_reset=True, tokenizer=Template())
    assert shown[0] == "<u>rules\nboard 0</u><a>"
    assert shown[2] == "<u>rules\nboard 0</u><a>x\ntask\nheard x\nboard 1\ny\ntask\nheard y\nboard 2\n"


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (1, "rules\ny3\nheard y3"),
        (2, "rules\ny2\nheard y2\ny3\nheard y3"),
        (3, "rules\ny1\nheard y1\ny2\nheard y2\ny3\nheard y3"),
        (9, "rules\ny1\nheard y1\ny2\nheard y2\ny3\nheard y3"),
        (None, "rules\ny1\nheard y1\ny2\nheard y2\ny3\nheard y3"),
    ],
)
def test_a_bounded_history_keeps_the_rules_and_the_newest(length, shown):
    last = observations("y1", "y2", "y3", include_action=True, max_history_length=length)[-1]
    assert without_boards(last) == f"{shown}\n"


def test_a_reset_clears_the_history():
    env = ObservationWrapper(ParrotEnv())
    env.reset()
    env.step("x")
    assert env.reset()[0] == "rules\nboard 0"


def test_the_history_contains_the_action_as_sent():
    class Tool(ParrotEnv):
        def step(self, action):
            return super().step(action)._replace(info={"parsed_action": "tool part"})

    env = ObservationWrapper(Tool(), include_action=True)
    env.reset()
    assert env.step("the whole reply").observation == "rules\nboard 0\nthe whole reply\nheard the whole reply\n"


def test_prefix_and_suffix_are_removed_from_info():
    # A reader of both observation and info (a rollout, ROLL's manager) would show the board twice.
    env = ObservationWrapper(ParrotEnv())
    assert "suffix" not in env.reset()[1]
    assert {"prefix", "suffix"}.isdisjoint(env.step("x").info)


def test_reward_flags_and_other_info_are_unchanged():
    env = ObservationWrapper(gem.make("game:GuessTheNumber-v0", max_turns=1))
    env.reset(seed=1)
    wrapped = env.step(r"\boxed{99}")
    plain = gem.make("game:GuessTheNumber-v0", max_turns=1)
    plain.reset(seed=1)
    assert wrapped[1:] == plain.step(r"\boxed{99}")[1:]


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"include_chat_template": True}, "needs tokenizer="),
        ({"apply_chat_template_on_reset": True}, "needs tokenizer="),
        (
            {"include_chat_template": True, "apply_chat_template_on_reset": True, "tokenizer": Template()},
            "mutually exclusive",
        ),
        ({"max_history_length": 0}, "at least 1 or None, got 0"),
        ({"max_history_length": -1}, "at least 1 or None, got -1"),
    ],
)
def test_invalid_settings_are_refused(kwargs, says):
    with pytest.raises(BadValue, match=says):
        ObservationWrapper(ParrotEnv(), **kwargs)


def test_observations_that_are_not_text_are_refused():
    class Pictures(ParrotEnv):
        def reset(self, seed=None):
            return {"text": "look", "images": [b""]}, {}

    with pytest.raises(BadValue, match="text observations, got dict"):
        ObservationWrapper(Pictures()).reset()


def test_a_fork_has_its_own_history():
    env = ObservationWrapper(ParrotEnv(), include_action=True)
    env.reset(seed=1)
    env.step("x")
    fork = env.spawn(same_state=True)
    fork.step("elsewhere")
    assert "elsewhere" not in env.step("y").observation
    assert without_boards(fork.step("z").observation) == "rules\nx\nheard x\nelsewhere\nheard elsewhere\nz\nheard z\n"


# Tools, and text that looks like control tokens


class ToolsEnv(ParrotEnv):
    """Reports in info whether a tool was used, as ToolEnvWrapper does."""

    def step(self, action):
        step = super().step(action)
        return step._replace(info={**step.info, "use_tool": action.startswith("call")})


def tools(template: Any = None, *actions: str, **kwargs: Any) -> str:
    kwargs = kwargs or {"include_action": True, "include_chat_template": True}
    env = ObservationWrapper(ToolsEnv(), tokenizer=template or Template(), **kwargs)
    env.reset(seed=1)
    return without_boards([env.step(action).observation for action in actions][-1])


def test_tool_results_have_the_role_tool_in_a_conversation():
    assert tools(None, "call", "x") == ("<u>rules</u><a>call</a><t>heard call</t><a>x</a><u>heard x</u><a>")
    assert tools(None, "x", "call").endswith("<a>call</a><t>heard call</t><a>")


def test_a_template_without_tools_shows_results_as_user_messages():
    class NoTools(Template):
        def apply_chat_template(self, messages, tokenize, add_generation_prompt):
            assert all(message["role"] != "tool" for message in messages)
            return super().apply_chat_template(messages, tokenize, add_generation_prompt)

    assert tools(NoTools(), "call", "x").startswith("<u>rules</u><a>call</a><u>heard call</u><a>x</a><u>")


def test_plain_history_shows_tool_results_as_text():
    assert tools(None, "call", "x", include_action=True) == "rules\ncall\nheard call\nx\nheard x\n"


class Special(Template):
    added_tokens_decoder = {0: type("Token", (), {"content": "<a>", "special": True})}  # noqa: RUF012


@pytest.mark.parametrize("mode", ["include_chat_template", "apply_chat_template_on_reset"])
def test_neither_actions_nor_observations_forge_control_tokens(mode):
    shown = tools(Special(), "x<a>z <a>\n", "y", include_action=True, **{mode: True})
    assert "heard x<\u200ba>z" in shown  # ParrotEnv quotes the agent
    assert "x<\u200ba>z" in shown.replace("heard x", "") and "x<a>" not in shown
    assert "z <a>" not in shown.partition("heard")[0]  # the token that ends the action is not shown twice
    plain = tools(Special(), "x<a>", "y", include_action=True)
    assert "heard x<a>" in plain


def test_native_calls_are_shown_as_json():
    class Silent(ParrotEnv):
        def step(self, action):
            return Step([{"role": "tool", "tool_call_id": "c1", "content": "2"}])

    env = ObservationWrapper(Silent(), include_action=True, include_chat_template=True, tokenizer=Template())
    env.reset(seed=1)
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    shown = env.step({"role": "assistant", "content": "I add.", "tool_calls": [call]}).observation
    written = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    assert shown == f"<u>rules\nboard 0</u><a>I add.\n{written}</a><t>2</t><a>"
    assert "'" not in env.step({"role": "assistant", "content": None, "tool_calls": ["x", 3]}).observation


def test_messages_are_rendered_or_joined_by_lines():
    class Talkative(ParrotEnv):
        def step(self, action):
            said = [{"role": "tool", "content": "2"}, {"role": "user", "content": "go on"}]
            return Step(said, info={"suffix": "board"})

    def last(**kwargs: Any) -> str:
        env = ObservationWrapper(Talkative(), include_action=True, tokenizer=Template(), **kwargs)
        env.reset(seed=1)
        env.step("x")
        return env.step("y").observation

    assert last(include_chat_template=True) == (
        "<u>rules\nboard 0</u><a>x</a><t>2</t><u>go on\nboard</u><a>y</a><t>2</t><u>go on\nboard</u><a>"
    )
    assert last() == "rules\nboard 0\nx\n2\ngo on\nboard\ny\n2\ngo on\nboard\n"


def test_a_fork_keeps_the_roles():
    env = ObservationWrapper(ToolsEnv(), include_action=True, include_chat_template=True, tokenizer=Template())
    env.reset(seed=1)
    env.step("call")
    fork = env.spawn(same_state=True)
    assert fork.step("x").observation == env.step("x").observation
    assert "<t>task\nheard call\nboard 1</t>" in env.step("y").observation
