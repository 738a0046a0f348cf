r"""Parsing of model text, including arbitrary strings from hypothesis."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.parsing import (
    boxes,
    code_blocks,
    first_tagged,
    last_boxed,
    last_boxed_int,
    last_tagged,
    outside_thinking,
    readings,
    tidied,
)

# Text built from the delimiters that the functions look for.
PIECES = [
    "\\boxed{",
    "\\boxed {",
    "\\fbox{",
    "\\\\",
    "{",
    "}",
    "\\{",
    "\\}",
    "<answer>",
    "</answer>",
    "```",
    "```python\n",
    "~~~",
    "\n",
    "7",
    " x",
]
MODEL_TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)
ODD_STRINGS = [
    "",
    "\x00",
    "\ud800",
    "\\boxed",
    "\\boxed{",
    "}" * 99,
    "<answer",
    "</answer>",
    "```",
    "\r\n```\r\n",
    "٣",
    "\\boxed{٣}",
]


def boxes_by_counting(text: str) -> list[str | None]:
    """Slow reference: count braces from each opening brace until they balance; None for a box that is cut off."""
    found = []
    for start in (match.end() for match in re.finditer(r"\\(?:boxed|fbox)\s*\{", text)):
        depth, at = 1, start
        while at < len(text) and depth:
            if text.startswith(("\\{", "\\}", "\\\\"), at):
                at += 2
                continue
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        found.append(text[start : at - 1] if not depth else None)
    return found


@given(MODEL_TEXT)
def test_boxes_agree_with_a_slow_reference(text):
    assert boxes(text) == [content for content in boxes_by_counting(text) if content is not None]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{7}", "7"),
        (r"first \boxed{1} then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {7}", "7"),
        (r"\boxed{a \} b}", r"a \} b"),
        (r"\boxed{}", ""),
        ("\\boxed{two\nlines}", "two\nlines"),
        (r"{ unclosed, and \boxed{7}", "7"),
        (r"stray } and \boxed{7}", "7"),
        (r"\boxed{7} and \boxed{never closed", None),
        (r"\boxed{7} and \boxed", None),
        (r"\boxed{7} and \boxed{}", ""),
        (r"\boxed{7 and \boxed{8}", "8"),
        (r"\boxed{7}, as in `\boxed`, and boxes", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{7} \fbox{8} the boxes", "8"),
        (r"\\boxed{7}", "7"),
        (r"\boxed{\begin{array}{c}1\\{2}\end{array}}", r"\begin{array}{c}1\\{2}\end{array}"),
        (r"\boxed{\boxed{1} 2}", "1"),
        (r"boxed{7}", None),
        (r"\boxed{7", None),
        ("", None),
    ],
)
def test_the_last_box_counts_and_none_before_one_that_is_cut_off(text, content):
    assert last_boxed(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed 7", "7"),
        (r"$\boxed 52$", "52"),
        (r"\boxed -3.", "-3"),
        (r"\boxed 1/2", "1/2"),
        (r"$\boxed A$", "A"),
        (r"\boxed True", "True"),
        (r"$\boxed\frac{1}{2}$", r"\frac{1}{2}"),
        (r"\boxed \text{yes}.", r"\text{yes}"),
        (r"\boxed{3}, or \boxed 5^2", None),
        (r"\boxed{3} in the \boxed notation of LaTeX", "3"),
        (r"\boxedx", None),
    ],
)
def test_a_box_without_braces_holds_one_token(text, content):
    assert last_boxed(text) == content


@given(MODEL_TEXT)
def test_the_shortcut_for_a_plain_last_box_agrees_with_pairing_all_braces(text):
    found = boxes_by_counting(text)
    assert last_boxed(text) == (found[-1] if found else None)
    moves = found if None not in found else found[len(found) - found[::-1].index(None) :]  # after the last one cut off
    integers = [content for content in map(tidied, moves) if re.fullmatch("[+-]?[0-9]{1,18}", content)]
    assert last_boxed_int(text) == (int(integers[-1]) if integers else None)


def test_a_pattern_selects_the_last_box_that_fully_matches():
    moves = re.compile(r"left|right")
    assert last_boxed(r"\boxed{left} \boxed{right now} \boxed{up} \boxed{}", moves) == "left"
    assert last_boxed(r"\boxed{leftright}", moves) is None
    assert last_boxed(r"\boxed{left}, no, \boxed{rig", moves) is None
    assert last_boxed(r"I go \boxed left now.", moves) is None
    assert last_boxed(r"I go $\boxed left$ now.", moves) == "left"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4", "4"),
        ("<think>4</think>5", "5"),
        ("4?</think>5", "5"),
        ("4 <think>5?</think> ok", "4 \n ok"),
        ("4<think>5", "4"),
        ("<think>a <think> b</think> c </think>5", "5"),
        ("<think>4</think>5<think>6</think>", "5"),
        ("<thinker>4</thinker>", "<thinker>4</thinker>"),
        ("", ""),
    ],
)
def test_thinking_is_left_out(text, said):
    assert outside_thinking(text) == said


@pytest.mark.parametrize(
    "text",
    [
        r"<think>\boxed{4}</think>",
        r"\boxed{4}</think> so",
        r"<think>\boxed{4}",
        "<think><answer>4</answer></think>",
        "<think><answer>4</answer>",
    ],
)
def test_no_answer_is_read_from_thinking(text):
    assert last_boxed(text) is None
    assert last_boxed_int(text) is None
    assert last_tagged(text, "answer") is None


def test_an_answer_outside_of_thinking_counts_wherever_it_stands():
    assert last_boxed(r"<think>\boxed{3}</think> \boxed{5} <think>\boxed{4}</think> done") == "5"
    assert last_tagged("<answer>5</answer> <think>or <answer>4</answer>", "answer") == "5"


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        ("True", []),
        ("True.", ["True"]),
        (r"\text{True}", ["True"]),
        (r"\textbf{\text{True}.}", ["True.", "True"]),
        (r"\mathrm{True}.", ["True.", "True"]),
        ("**True.**", ["True.", "True"]),
        ("`True`", ["True"]),
        (r"\boxed{True}", ["True"]),
        (r"$\frac{1}{2}$", ["$1/2$", "1/2"]),
        (r"-\frac{1}{2}.", ["-1/2.", "-1/2"]),
        (r"2^{3}5", ["2**3 5"]),
        (r"\frac{x^{2}}{y}", ["(x**2)/y"]),
        (r"2\frac{1}{3}", ["2(1/3)"]),
        (r"8 \div \frac{4}{2}", ["8 / (4/2)", "8 ÷ (4/2)"]),
        (r"A \to B\to C", ["A -> B->C", "A → B→C"]),
        (r"x \leq 3", ["x <= 3", "x ≤ 3"]),
        (r"5\,000 \%", ["5000 %"]),
        (r"\{a\_b, c\}", ["{a_b, c}"]),
        (r'\text{{"a": 1}}', ['{"a": 1}']),
        (r"1.5 \times 10^{-3}", ["1.5e-3"]),
        (r"\begin{matrix}1 & 2 \\ 3 & 4\end{matrix}", ["1 2\n3 4"]),
        (r"\sqrt[3]{8} + 90^\circ", ["8**(1/3) + 90°"]),
    ],
)
def test_latex_is_read_as_what_it_shows(answer, plain):
    first, *others = readings(answer)
    assert first == answer
    assert [text for text in others if "\\" not in text][: len(plain)] == plain


@pytest.mark.parametrize("answer", [r"\cancel{5}", r"\not 5", r"\phantom{5}", r"\sum 5", "5_0", "-5", "5^2"])
def test_a_command_that_is_not_known_is_not_dropped(answer):
    assert "5" not in readings(answer)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (r"\boxed{0}", 0),
        (r"\boxed{-3}", -3),
        (r"\boxed{ +7 }", 7),
        (r"\boxed{007}", 7),
        (r"\boxed{7} \boxed{up}", 7),
        (r"\boxed{7.0}", None),
        (r"\boxed{1,000}", None),
        (r"\boxed{1_0}", None),
        (r"\boxed{٣}", None),
        (r"\boxed{7 8}", None),
        (r"\boxed{}", None),
        ("7", None),
        (rf"\boxed{{{'9' * 18}}}", int("9" * 18)),
        (rf"\boxed{{{'9' * 19}}}", None),
    ],
)
def test_an_integer_is_at_most_18_ascii_digits_with_a_sign(text, number):
    assert last_boxed_int(text) == number


def test_ten_thousand_digits_are_not_an_integer():
    assert last_boxed_int(rf"\boxed{{{'9' * 10_000}}}") is None


def test_deeply_nested_boxes_take_little_memory():
    # The contents of n nested boxes are n²/2 boxes long together; the last one is not.
    text = r"\boxed{" * 3_000 + "7" + "}" * 3_000
    tracemalloc.start()
    try:
        assert last_boxed_int(text) == 7
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(text)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<answer>4</answer>", "4"),
        ("<answer> 4\n</answer>", "4"),
        ("<answer>4</answer> no <answer>5</answer>", "5"),
        ("<answer>4</answer> and <answer>5", "4"),
        ("<answer>4</answer> a stray </answer>", "4"),
        ("<answer>a <answer>b</answer> c</answer>", "b"),
        ("<answer></answer>", ""),
        ("</answer>4<answer>", None),
        ("</answer><answer>4", None),
        ("<Answer>4</Answer>", None),
        ("4", None),
    ],
)
def test_the_last_closed_tag_and_the_innermost_of_nested_ones_count(text, content):
    assert last_tagged(text, "answer") == content


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<python>1+1</python> and more", ("1+1", 20)),
        ("so <python>1</python> <python>2</python>", ("1", 21)),
        ("<python> keeps \n blanks </python>", (" keeps \n blanks ", 33)),
        ("<python></python>", ("", 17)),
        ("</python> <python>1</python>", ("1", 28)),
        ("<python>never closed", None),
        ("1+1", None),
    ],
)
def test_the_first_closed_tag_is_a_tool_call(text, found):
    assert first_tagged(text, "python") == found


def test_the_offset_is_after_the_closing_tag():
    text = "so <python>1+1</python> and more"
    _, end = first_tagged(text, "python")
    assert text[:end] == "so <python>1+1</python>"


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("```python\nprint(1)\n```", [("python", "print(1)\n")]),
        ("```\nbare\n```", [("", "bare\n")]),
        ("```Python\nx\n```", [("python", "x\n")]),
        ("``` python title=x\nx\n```", [("python", "x\n")]),
        ("```python\n```", [("python", "")]),
        ("~~~c\nx\n~~~", [("c", "x\n")]),
        ("````md\n```python\nx\n```\n````", [("md", "```python\nx\n```\n")]),
        ("```python\nx\n````", [("python", "x\n")]),
        ("```python\nx\n~~~\n```", [("python", "x\n~~~\n")]),
        ("```python\r\nx\r\n```\r\n", [("python", "x\r\n")]),
        ("```\u2028\u2028\n1\n```", [("", "1\n")]),
        ("```a\n1\n```\n```b\n2\n```", [("a", "1\n"), ("b", "2\n")]),
        ("```python\nnever closed", []),
        ("inline ```x``` code", []),
        ("`x`", []),
    ],
)
def test_closed_fences_are_code_blocks(text, blocks):
    assert [(b.language, b.code) for b in code_blocks(text)] == blocks


def test_code_blocks_can_be_selected_by_language():
    text = "```sh\nls\n```\n```python\nx\n```\n"
    assert [b.code for b in code_blocks(text, "python")] == ["x\n"]


def test_a_block_ends_after_its_closing_fence():
    text = "```python\nx\n``` and more"
    closed = "```python\nx\n```\nand more"
    assert code_blocks(text) == []
    assert closed[: code_blocks(closed)[0].end] == "```python\nx\n```"


@given(MODEL_TEXT)
def test_no_text_raises(more):
    for text in (each for odd in ODD_STRINGS for each in (odd, odd + more, more + odd)):
        assert isinstance(boxes(text), list)
        assert last_boxed_int(text) is None or isinstance(last_boxed_int(text), int)
        assert readings(text)[:1] == ([text] if text else [])
        assert len(outside_thinking(text)) <= len(text) + text.count("think>")
        assert last_tagged(text, "answer") is None or "<answer>" not in last_tagged(text, "answer")
        assert first_tagged(text, "answer") is None or first_tagged(text, "answer")[1] <= len(text)
        assert all(text[b.end - 1] in "`~ \t\r" for b in code_blocks(text))


# Each line yields about 200,000 characters on which a backtracking pattern takes quadratic time.
LONG_TEXTS = {
    "a fence line with a backtick at its end": "'```' + 'a' * 200_000 + '`'",
    "a fence line of blanks": "'```' + ' ' * 200_000 + '`'",
    "a fence line of tildes": "'~' * 200_000 + '`'",
    "many boxes that never open": "'\\\\boxed ' * 25_000",
    "many open boxes": "'\\\\boxed{' * 25_000",
    "many open boxes without braces": "'\\\\boxed\\\\a{' * 20_000",
    "many boxes without an end": "'\\\\boxed ' + '1.' * 100_000",
    "many open styles": "'\\\\text{' * 8_000",
    "many styles without braces": "'\\\\text' * 9_000",
    "many fractions": "'\\\\frac' * 9_000",
    "many powers": "'2^' * 20_000",
    "many open thoughts": "'<think>' * 25_000",
    "many closed thoughts": "'</think>' * 25_000",
    "many open tags": "'<answer>' * 25_000",
    "many closing tags": "'</answer>' * 25_000",
    "many fences": "'```\\n' * 50_000",
    "many indented lines": "(' ' * 99 + '\\n') * 2_000",
}


def test_long_text_is_parsed_in_linear_time():
    code = f"""
from gem.parsing import code_blocks, first_tagged, last_boxed, last_boxed_int, last_tagged, readings
for name, text in {{{", ".join(f"{name!r}: {text}" for name, text in LONG_TEXTS.items())}}}.items():
    print(name, flush=True)
    last_boxed(text), last_boxed_int(text), last_tagged(text, 'answer'), first_tagged(text, 'answer')
    code_blocks(text), readings(text)
"""
    # Linear work takes 0.5 s; the time-out is there to end a run that would take an hour, on the text printed last.
    env = {"PYTHONPATH": ":".join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", code], timeout=60, env=env, capture_output=True, check=True)
