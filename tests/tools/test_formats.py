"""Call formats: valid, quoted and malformed calls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.errors import BadAction, BadValue
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function
from gem.tools.formats import FORMATS, InvalidCall, OpenAIFormat, get_format, openai_schemas

TEXT = {"type": "string"}


class Python(BaseTool):
    tool_type, tag, tag_argument, fences = "python_code", "python", "code", ("python", "py")

    def functions(self):
        schema = {"type": "object", "properties": {"code": TEXT}, "required": ["code"], "additionalProperties": False}
        return [Function("python", "Run Python.", schema)]

    def call(self, call):
        return ToolResult(call.arguments["code"])


class Search(BaseTool):
    tool_type, tag, tag_argument = "search", "search", "query"

    def functions(self):
        properties = {"query": TEXT, "topk": {"type": "integer"}}
        return [Function("search", "Search.", {"type": "object", "properties": properties, "required": ["query"]})]

    def call(self, call):
        return ToolResult(call.arguments["query"])


class Clock(BaseTool):
    def functions(self):
        return [Function("now", "The time.")]

    def call(self, call):
        return ToolResult("noon")


TOOLS = [Python(), Search(), Clock()]
XML = "<function=search>\n<parameter=query>\na <b>\n</parameter>\n<parameter=topk>\n2\n</parameter>\n</function>"
JSON = '{"name": "search", "arguments": {"query": "a <b>", "topk": 2}}'
CALL = ToolCall("search", {"query": "a <b>", "topk": 2})
PIECES = [
    *(
        "<python>",
        "<python>'</python>' ",
        '"<python>" ',
        "</python>",
        "<python></python>x",
        "```python\n",
        "```python x",
    ),
    *(
        "````a\n```\n",
        "`",
        "`a` ``b",
        "<think>",
        "<think></think>",
        "<tool_call>",
        '<tool_call>{"a": "',
        "<tool_call>[",
    ),
    *(
        "<tool_call><tool_name>x</tool_name><arguments>[",
        "<tool_call><tool_name>",
        '<tool_call>{"name": "a"}</tool_call>',
    ),
    *("Action: search\n", "Action: search\nAction Input: {", '{"content": [', "<pythn></pythn>", "'a\" ", "\n", " "),
    *("“<python>", "“", "<think>“</think>“<python></python>", "'\"“”", "<python>“</python>"),
    *('<search a="', "<search a>", "<x a", "<python >`"),
    *("<function=a>", "<tool_call><function=a><parameter=b>", "</parameter>x", JSON + "\n", "** Action:", "# \n"),
    *("<function=now><parameter=b>", "<function=now></function>\n", "action: search\naction input:", "\n \n"),
    *("<a1></a1>", "<python>\n", "<python>'a' </python>x\n", '"<python></python>'),
]


def read(text, name="tags", tools=TOOLS):
    return get_format(name).read(text, tools)


def calls(text, name="tags"):
    return list(read(text, name).calls)


def python(code):
    return ToolCall("python", {"code": code})


def search(query):
    return ToolCall("search", {"query": query})


def invalid(text, name="tags"):
    [call] = calls(text, name)
    assert isinstance(call, InvalidCall), call
    return call


class TestTags:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("<python>print(1)</python>", python("print(1)")),
            ("<think>hm</think><python>print(1)</python>", python("print(1)")),
            ("so\n```python\nprint(1)\n```\nand", python("print(1)\n")),
            ("so\n```py\nprint(1)\n```", python("print(1)\n")),
            ("so ```python print(1)``` and", python("print(1)")),
            ("<search>who?</search>", search("who?")),
            ("<python>\nif a < b > c:\n  pass\n</python>", python("\nif a < b > c:\n  pass\n")),
            ("<tool_call><tool_name>now</tool_name><arguments>{}</arguments></tool_call>", ToolCall("now", {})),
            ("<tool_call><tool_name>now</tool_name><arguments></arguments></tool_call>", ToolCall("now", {})),
            ("<tool_call> <tool_name> now </tool_name> </tool_call>", ToolCall("now", {})),
            (
                '<tool_call>\n<tool_name>search</tool_name>\n<arguments>\n{"query": "a", "topk": 2}\n</arguments>\n'
                "</tool_call>",
                ToolCall("search", {"query": "a", "topk": 2}),
            ),
        ],
    )
    def test_published_calls_are_read(self, text, expected):
        assert calls(text) == [expected]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            r"The answer is \boxed{4}.",
            "```text\n<python>print(1)</python>\n```",
            "~~~\n<search>cats</search>\n~~~",
            "```bash\nls\n```",
            "I could write `<python>print(1)</python>` here.",
            'Say "<search>cats</search>" to search.',
            "Say '<search>cats</search>' to search.",
            "Say “<search>cats</search>” to search.",
            'print("<python>1</python>")',
            'The tags are "<python>" and "</python>".',
            "<think>I might <python>print(1)</python> that, or ```python\nprint(2)\n``` this.</think> It is 4.",
            "<think>The instructions mention <python> tags.</think> It is 4.",
            "<answer>4</answer> <table>x</table> a < b > c <i>d</i>",
            "</python> alone",
            '`<search query="x">` and "<search a=1>" and <think><search a=1></think> <b class="x">bold</b>',
        ],
    )
    def test_text_that_mentions_calls_is_not_a_call(self, text):
        assert calls(text) == []
        assert read(text).parsed == text

    def test_apostrophes_and_inch_marks_do_not_quote_a_call(self):
        assert calls("Let's search the cats' names: <search>cats' names</search>") == [search("cats' names")]
        assert calls('A 5" screen: <search>the "best" screen</search>') == [search('the "best" screen')]

    def test_a_closing_tag_in_a_string_does_not_end_the_code(self):
        code = """print("</python>"); print('<python>')"""
        assert calls(f"<python>{code}</python> done") == [python(code)]

    def test_quote_marks_of_two_queries_do_not_join_them(self):
        text = '<search>5" disk</search> <search>6" disk</search>'
        assert calls(text) == [search('5" disk'), search('6" disk')]

    def test_a_tag_that_opens_again_is_a_mention(self):
        assert calls("With the <python> tool: <python>print(1)</python>") == [python("print(1)")]

    def test_an_unclosed_thought_may_contain_a_call(self):
        assert calls("<think>Let me see <python>print(1)</python>") == [python("print(1)")]

    def test_a_thought_opened_by_the_prompt_is_skipped(self):
        text = "With <python> I would <python>1</python> it.</think><python>2</python>"
        assert calls(text) == [python("2")]
        assert calls('<tool_call>{"name": "now"}</tool_call></think> 4', "hermes") == []
        assert calls("Action: now\n</think> 4", "react") == []
        assert calls("<python>print('</think>')</python>") == [python("print('</think>')")]

    def test_consecutive_calls_are_read_and_text_after_them_ignored(self):
        text = "<search>a</search>\n<python>1</python> ```python\n2\n``` It printed 3. <search>b</search>"
        reading = read(text.replace("> ```", ">\n```"))
        assert reading.calls == (search("a"), python("1"), python("2\n"))
        assert reading.parsed.endswith("2\n```")

    def test_text_after_the_call_is_not_parsed(self):
        reading = read("I run <python>1</python> Result: 7 <python>2</python>")
        assert reading.calls == (python("1"),)
        assert reading.parsed == "I run <python>1</python>"

    def test_the_first_call_wins(self):
        assert calls("```python\n1\n```\nor <python>2</python>") == [python("1\n")]
        assert calls("<python>2</python> or\n```python\n1\n```") == [python("2")]

    def test_json_with_the_closing_tag_is_read_to_its_end(self):
        arguments = json.dumps({"code": "print('</arguments></tool_call>')"})
        text = f"<tool_call><tool_name>python</tool_name><arguments>{arguments}</arguments></tool_call>."
        assert calls(text) == [python("print('</arguments></tool_call>')")]
        assert read(text).parsed == text[:-1]

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("<python>print(1)", "<python> is never closed"),
            ("```python\nprint(1)\n", "```python is never closed"),
            ("<tool_call><tool_name>now</tool_name>", "<tool_call> is never closed"),
            ("<tool_call>now</tool_call>", "<tool_name>…</tool_name> is missing"),
            ('<search query="cats"/>', "takes no attributes"),
            ('<python lang="3">print(1)</python>', "takes no attributes"),
            ("<tool_call><tool_name></tool_name></tool_call>", "the tool name is empty"),
            (
                '<tool_call><tool_name>now</tool_name><arguments>{"a": }</arguments></tool_call>',
                "not valid JSON: Expecting",
            ),
            ("<tool_call><tool_name>now</tool_name><arguments>[]</arguments></tool_call>", "not a JSON object"),
            ("<tool_call><tool_name>now</tool_name><arguments>NaN</arguments></tool_call>", "NaN is not valid JSON"),
            ("<tool_call><tool_name>now</tool_name><arguments>{} {}</arguments></tool_call>", "does not follow"),
            ("<tool_call><tool_name>now</tool_name>{}</tool_call>", "does not follow"),
        ],
    )
    def test_malformed_calls_are_explained(self, text, says):
        call = invalid(text)
        assert call.error is ToolErrorType.MALFORMED
        assert says in call.reason

    @pytest.mark.parametrize(
        ("text", "near"),
        [("<pyhton>1</pyhton>", "python"), ("<serch>a</serch>", "search"), ("<Python>1</Python>", "python")],
    )
    def test_a_misspelled_tag_is_an_unknown_tool_with_a_suggestion(self, text, near):
        call = invalid(f"I try {text}.")
        assert call.error is ToolErrorType.UNKNOWN_TOOL
        assert f"did you mean {near!r}?" in call.reason
        assert read(f"I try {text}.").parsed == f"I try {text}"

    @pytest.mark.parametrize("text", ["<path>a</path>", "<research>a</research>", "<answer><serch>a</serch></answer>"])
    def test_tags_that_only_resemble_a_tool_are_text(self, text):
        assert calls(f"It is {text}.") == []

    def test_an_invalid_call_keeps_its_position(self):
        text = "<search>a</search><tool_call>x</tool_call><search>b</search>"
        first, second, third = calls(text)
        assert (first, third) == (search("a"), search("b"))
        assert isinstance(second, InvalidCall)

    def test_instructions_list_the_instructions_of_each_tool(self):
        assert get_format("tags").describe([Python()]) == Python().instruction_string()
        text = get_format("tags").describe(TOOLS)
        assert text.startswith("Available tools:\n")
        for part in ("<python>code</python>", "```python or ```py", "<search>query</search>", '"name": "now"'):
            assert part in text


class TestHermes:
    def test_every_json_call_of_a_message_is_read(self):
        text = (
            'First <tool_call>\n{"name": "search", "arguments": {"query": "a"}}\n</tool_call> then\n'
            '<tool_call>{"name": "now"}</tool_call> end'
        )
        reading = read(text, "hermes")
        assert reading.calls == (search("a"), ToolCall("now", {}))
        assert reading.parsed == text.removesuffix(" end")

    def test_code_with_fences_quotes_and_the_closing_tag_is_an_argument(self):
        code = 'print("""</tool_call>""")\n```\n<tool_call>'
        text = f"<tool_call>{json.dumps({'name': 'python', 'arguments': {'code': code}})}</tool_call>"
        assert calls(text, "hermes") == [python(code)]

    @pytest.mark.parametrize("name", ["tags", "hermes"])
    def test_escaped_quotes_and_tags_in_json_are_content(self, name):
        code = 'a = "<tool_call>" + \'"\' + "</tool_call> <tool_call>"'
        written = json.dumps({"code": code})
        text = f"<tool_call><tool_name>python</tool_name><arguments>{written}</arguments></tool_call>"
        if name == "hermes":
            text = f'<tool_call>{{"name": "python", "arguments": {written}}}</tool_call>'
        assert calls(text, name) == [python(code)]
        assert calls(f"With <tool_call> tags: {text}", name) == [python(code)]

    def test_arguments_may_be_json_in_a_string(self):
        text = '<tool_call>{"name": "search", "arguments": "{\\"query\\": \\"a\\"}"}</tool_call>'
        assert calls(text, "hermes") == [search("a")]

    def test_a_call_cut_by_a_stop_string_is_read(self):
        assert calls('<tool_call>{"name": "now", "arguments": {}}', "hermes") == [ToolCall("now", {})]

    @pytest.mark.parametrize(
        "text",
        [
            "no call",
            '```\n<tool_call>{"name": "now"}</tool_call>\n```',
            '`<tool_call>{"name": "now"}</tool_call>`',
            '<think><tool_call>{"name": "now"}</tool_call></think> 4',
        ],
    )
    def test_text_that_mentions_calls_is_not_a_call(self, text):
        assert calls(text, "hermes") == []

    @pytest.mark.parametrize(
        ("inside", "says"),
        [
            ('{"name": "now", "arguments": {}', "no valid JSON"),
            ("", "<tool_call> and </tool_call>: Expecting value"),
            ('{"arguments": {}}', 'the function "name" is missing'),
            ('{"name": 3}', 'the function "name" is missing'),
            ('{"name": "now", "arguments": [1]}', "object, got an array"),
            ('{"name": "now", "arguments": "{"}', "arguments are not valid JSON"),
            ("[]", "got an array"),
            ('{"name": "now"} x', "does not follow"),
            ("[" * 100_000, "nested too deeply"),
        ],
    )
    def test_malformed_calls_are_explained(self, inside, says):
        call = invalid(f"<tool_call>{inside}</tool_call>", "hermes")
        assert call.error is ToolErrorType.MALFORMED
        assert says in call.reason

    def test_instructions_contain_the_schemas(self):
        text = get_format("hermes").describe(TOOLS)
        listed = text.partition("<tools>\n")[2].partition("\n</tools>")[0].splitlines()
        functions = [function for tool in TOOLS for function in tool.functions()]
        assert [json.loads(line) for line in listed] == openai_schemas(functions)


class TestOpenAI:
    def message(self, *entries, content=None):
        return {"role": "assistant", "content": content, "tool_calls": list(entries)}

    def entry(self, name="search", arguments='{"query": "a"}', call_id="c1"):
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}

    @pytest.mark.parametrize("form", [dict, json.dumps])
    def test_messages_with_tool_calls_are_read_as_mapping_and_text(self, form):
        action = form(self.message(self.entry(), self.entry("now", "", "c2"), content="Let me see."))
        reading = read(action, "openai")
        assert reading.calls == (ToolCall("search", {"query": "a"}, "c1"), ToolCall("now", {}, "c2"))
        assert reading.text == "Let me see."

    @pytest.mark.parametrize("name", FORMATS)
    def test_a_message_mapping_is_read_in_every_format(self, name):
        assert calls(self.message(self.entry()), name) == [ToolCall("search", {"query": "a"}, "c1")]
        assert read({"role": "assistant", "content": "It is 4."}, name).text == "It is 4."

    def test_the_text_of_a_message_without_calls_is_its_content(self):
        assert read(json.dumps({"role": "assistant", "content": "It is 4."}), "openai").text == "It is 4."
        assert (
            read({"content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "4."}]}).text == "It is 4."
        )

    @pytest.mark.parametrize("text", ["It is 4.", "{4}", '{"answer": 4}', "[1]", '{"content": 4}', "{"])
    def test_other_text_contains_no_calls(self, text):
        reading = read(text, "openai")
        assert (reading.calls, reading.text) == ((), text)

    def test_a_truncated_message_with_tool_calls_is_malformed(self):
        text = json.dumps(self.message(self.entry()))[:-3]
        assert "not valid JSON" in invalid(text, "openai").reason

    @pytest.mark.parametrize(
        ("entry", "says"),
        [
            ({"id": "c1", "function": {"name": "search", "arguments": "{"}}, "arguments are not valid JSON"),
            ({"id": "c1", "function": {"name": "search", "arguments": '{} {"a": 1}'}}, "unexpected text after the end"),
            ({"id": "c1", "function": {"arguments": "{}"}}, 'the function "name" is missing'),
            ({"id": "c1"}, "an entry of tool_calls"),
            ("search", "an entry of tool_calls"),
        ],
    )
    def test_an_invalid_entry_is_malformed_and_keeps_its_id(self, entry, says):
        call = invalid(self.message(entry), "openai")
        assert says in call.reason
        if isinstance(entry, dict) and "function" in entry:
            assert call.id == "c1"

    def test_the_prompt_can_omit_the_functions(self):
        assert '"name": "now"' in OpenAIFormat().describe(TOOLS)
        assert OpenAIFormat(prompt=False).describe(TOOLS) == ""

    def test_every_native_call_is_answered(self):
        entries = [self.entry("now", "{}", number) for number in range(70)]
        found = calls(self.message(*entries), "openai")
        assert [call.id for call in found] == list(range(70))
        assert all(isinstance(call, ToolCall) for call in found[:64])
        assert {call.error for call in found[64:]} == {ToolErrorType.OVER_BUDGET}
        answers = get_format("openai").observe(found, ["noon"] * 70)
        assert [answer["tool_call_id"] for answer in answers] == list(range(70))

    def test_calls_without_an_id_are_answered_next_to_calls_with_one(self):
        found = calls(self.message(self.entry(call_id=None), self.entry()), "openai")
        answers = get_format("openai").observe(found, ["x", "y"])
        assert answers == [{"role": "tool", "content": "x"}, {"role": "tool", "tool_call_id": "c1", "content": "y"}]


class TestReAct:
    @pytest.mark.parametrize(
        "text",
        [
            '**Thought:** x\n**Action:** search\n**Action Input:** {"query": "a"}\n**Observation:** made up',
            '**Action**: `search`\n**Action Input**: {"query": "a"}',
            '### Action: search\n### Action Input:\n```json\n{"query": "a"}\n```',
            'action: search\naction input: {"query": "a"}\nobservation: made up',
            "- Action: search\n- Action_Input: a",
        ],
    )
    def test_fields_in_markdown_and_in_lower_case_are_read(self, text):
        assert calls(text, "react") == [search("a")]
        assert "made up" not in read(text, "react").parsed

    @pytest.mark.parametrize("text", ["action: none needed, it is 4", "**Action:** guess 4", "- action: search for it"])
    def test_other_text_with_such_fields_is_text(self, text):
        assert calls(text, "react") == []

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('Thought: x\nAction: search\nAction Input: {"query": "a", "topk": 2}', {"query": "a", "topk": 2}),
            ('Action: search\nAction Input:\n{"query":\n "a"}\nObservation: made up', {"query": "a"}),
            ("Action: search\nAction Input: who is it?\nObservation: made up", {"query": "who is it?"}),
            ('Action: search\nAction Input: "quoted"', {"query": "quoted"}),
            ("Action: `search`\nAction Input: a\nb", {"query": "a\nb"}),
        ],
    )
    def test_json_and_plain_text_are_inputs(self, text, expected):
        assert calls(text, "react") == [ToolCall("search", expected)]
        assert "made up" not in read(text, "react").parsed

    def test_fenced_json_is_read(self):
        text = 'Action: python\nAction Input: ```json\n{"code": "1"}\n```\n'
        assert calls(text, "react") == [ToolCall("python", {"code": "1"})]

    def test_plain_text_for_an_unknown_name_is_a_call(self):
        assert calls("Action: serch\nAction Input: who wrote Faust?", "react") == [ToolCall("serch", {})]

    def test_a_function_without_arguments_needs_no_input(self):
        assert calls("Action: now", "react") == [ToolCall("now", {})]
        assert calls("Action: now\nAction Input:", "react") == [ToolCall("now", {})]

    @pytest.mark.parametrize(
        "text", ["Final Answer: 4", "My Action: none", "```\nAction: now\n```", "<think>\nAction: now\n</think> 4"]
    )
    def test_text_that_mentions_calls_is_not_a_call(self, text):
        assert calls(text, "react") == []

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("Action:\nAction Input: x", "name is missing"),
            ("Action: search", '"Action Input:"'),
            ('Action: search\nAction Input: {"query": "a"', "not a JSON object"),
            ("Action: now\nAction Input: {1}", "not a JSON object"),
        ],
    )
    def test_malformed_calls_are_explained(self, text, says):
        call = invalid(text, "react")
        assert call.error is ToolErrorType.MALFORMED
        assert says in call.reason

    def test_results_are_prefixed_with_observation(self):
        assert get_format("react").show(["noon"]) == "Observation: noon"


class TestAllFormats:
    @pytest.mark.parametrize("name", FORMATS)
    @given(
        pieces=st.lists(st.sampled_from([*"<>/`\"'{}[]:, \na", "python", "tool_call", "Action: ", "</", "```", "💥"]))
    )
    def test_no_text_raises(self, name, pieces):
        text = "".join(pieces)
        reading = read(text, name)
        assert reading.text == text or name == "openai"
        assert text.startswith(reading.parsed)

    @pytest.mark.parametrize("name", FORMATS)
    @pytest.mark.parametrize("action", [None, 3, ["a"], b"a", {"content": 3}])
    def test_an_action_that_is_not_a_message_raises(self, name, action):
        with pytest.raises(BadAction):
            read(action, name)

    def test_a_misspelled_format_raises_with_a_suggestion(self):
        with pytest.raises(BadValue, match="did you mean 'hermes'"):
            get_format("hermés")

    @pytest.mark.slow
    def test_hostile_text_of_200_000_characters_is_parsed(self):
        # Anything that takes quadratic time takes hours here.
        code = "import test_formats as t\nfor name in t.FORMATS:\n for piece in t.PIECES:\n"
        code += "  t.get_format(name).read(piece * (200_000 // len(piece)), t.TOOLS)"
        paths = [str(Path(__file__).parent), *filter(None, sys.path)]
        subprocess.run([sys.executable, "-c", code], timeout=120, env={"PYTHONPATH": ":".join(paths)}, check=True)


class TestHermesWithoutTags:
    @pytest.mark.parametrize(
        "text",
        [
            f"<tool_call>\n{XML}\n</tool_call>",
            f"<tool_call>{XML}",
            XML,
            f"I search.\n{XML}",
            XML.removesuffix("</function>"),
            JSON,
            f"<think>{JSON}</think>\n{JSON}\n",
            f"I search.\n\n{JSON}",
            f"I search:\n```json\n{JSON}\n```\n",
            f"```\n{JSON}\n```",
            f"```tool_call\n{XML}\n```",
        ],
    )
    def test_bare_fenced_and_xml_calls_are_read(self, text):
        assert calls(text, "hermes") == [CALL]

    def test_several_bare_calls_are_read(self):
        assert calls(f"{JSON}\n{JSON}", "hermes") == [CALL, CALL]
        assert calls(f"<tool_call>{XML}</tool_call>\n<tool_call>{JSON}</tool_call>", "hermes") == [CALL, CALL]

    def test_values_in_xml_are_text_unless_the_schema_says_otherwise(self):
        code = "print('</parameter>')\nprint(2)"
        written = f"<function=python>\n<parameter=code>\n{code}\n</parameter>\n</function>"
        assert calls(f"<tool_call>\n{written}\n</tool_call>", "hermes") == [python(code)]
        assert calls(XML.replace("a <b>", "3"), "hermes") == [ToolCall("search", {"query": "3", "topk": 2})]

    @pytest.mark.parametrize(
        "text",
        [
            f"A call such as\n{JSON}\nis written as JSON.",
            f"```json\n{JSON}\n```\nThat is how.",
            f"<think>{JSON}",
            f"`{JSON}`",
            '{"name": "search", "age": 3}',
            '{"name": "Ada", "arguments": {}}',
            f"```python\n{JSON}\n```",
            "<function=eat><parameter=what>a</parameter></function>",
        ],
    )
    def test_other_json_and_xml_is_text(self, text):
        assert calls(text, "hermes") == []


class TestArgumentKeys:
    @pytest.mark.parametrize(
        ("name", "written"),
        [
            ("hermes", '<tool_call>{"name": "search", "parameters": {"query": "a"}}</tool_call>'),
            ("openai", '{"tool_calls": [{"function": {"name": "search", "parameters": {"query": "a"}}}]}'),
            ("tags", '<tool_call><tool_name>search</tool_name><parameters>{"query": "a"}</parameters></tool_call>'),
        ],
    )
    def test_parameters_are_read_as_arguments(self, name, written):
        assert calls(written, name) == [search("a")]

    def test_a_call_with_another_key_does_not_run_without_its_arguments(self):
        call = invalid('<tool_call>{"name": "now", "args": {"zone": "UTC"}}</tool_call>', "hermes")
        assert "'args'" in call.reason and '"arguments"' in call.reason


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "call",
    [CALL, ToolCall("now", {}), ToolCall("python", {"code": "print(1)"}), ToolCall("search", {"query": "x"})],
    ids=str,
)
def test_a_call_that_is_written_is_read_again(name, call):
    format = get_format(name)
    message = format.read(format.write(call, TOOLS), TOOLS)
    assert [(c.name, c.arguments) for c in message.calls] == [(call.name, call.arguments)]
