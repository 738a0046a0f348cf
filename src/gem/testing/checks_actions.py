"""Actions: any text is taken, and sampled actions are legal and apart from the episode's own chance."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

from gem.core import Step
from gem.testing.lab import Broken, Lab, Play, Unchecked, literal
from gem.testing.promise import promise
from gem.testing.watch import GlobalStreams

SIZES = (2**12, 2**16, 2**20)  # of a long text, growing so that quadratic work is noticed before it fills the memory
SLOW = 0.5  # seconds that a text shorter than the longest may take, more than a short one …
TOO_SLOW = 20.0  # … and the longest
LONG: tuple[Callable[[int], str], ...] = (
    lambda size: "a" * size,
    lambda size: "{" * size,
    lambda size: " \n" * (size // 2),
    lambda size: "\\boxed{" * (size // 8),
    lambda size: "\\boxed{" * (size // 8) + "1" + "}" * (size // 8),
    lambda size: "\\boxed{" + "9" * size + "}",
    lambda size: "\\boxed{" + "1 " * (size // 2) + "}",
)
# Contents of a box: digits to str.isdigit() of which int() refuses some, odd letters, other games' moves.
_BOXED = (
    *("", " ", "\x001", "\udc80", "\\boxed{1}", "-1", "+1", "1.5", "1e400", "nan", "0x1", "1_0", "9" * 5000),
    *("²", "٣", "①", "１ ２ ３", "ß", "İ", "ǰ ŉ", "é", "e\u0301", "🙂", "{0}", "null"),
    *("7", "1 2 3 4", "1 1 1", "0 0 A", "0 0 0 9", "-1 -1 -1", "999 999 999", "A C", "A A", "up", "crane", "e"),
    *("reveal 0 0", "reveal -1 -1", "flag 99 99", "search[x]", "<PREV_PAGE>"),
)
ODD = (
    *("", " ", "\n\n", "\t\r\x0b\x0c\x85\u2028", "\x00", "\x00" * 100, "\x1b[2J\x07", "\ud800", "\udfff\ud800"),
    *("\u202e\\boxed{1}\u202c", "\u200f\u200e\u2066", "\ufeff\\boxed{1}", "²", "٣", "①", "ß", "\\", "'\"`;--"),
    *("\\boxed{", "}", "\\boxed}{", "\\boxed{1}\\boxed{2}", "[" * 500, "(?:(a+)+$", "%s %n {0} {self.__class__} ${x}"),
    *('{"action": 1}', "null", "<answer>1</answer>", "<answer>", "<python></python>", "<search>x</search>"),
    *("```python\n```", "<tool_call><tool_name>x</tool_name><arguments>{</arguments></tool_call>"),
    *(f"\\boxed{{{content}}}" for content in _BOXED),
)


@promise("any-text", "No action raises: empty, 1 MB, NUL, surrogates, deep braces, other games'.")
def any_text(lab: Lab) -> str | None:
    lab.each(lambda seed, actions: _take(lab, seed, actions), list(_odd_plays(lab)))
    for build in LONG:
        _take_growing(lab, build)
    return f"{len(ODD)} odd texts and {len(LONG)} long ones"


@promise("sampled-legal", "sample_random_action() gives an action that is legal in the current state.")
def sampled_legal(lab: Lab) -> str | None:
    failures = []
    for play in lab.plays[: len(lab.seeds)]:
        # Nothing is left out of the actions here: each was sampled in the state that those before it led to.
        failure = lab.attempt(lambda seed, actions: _samples(lab, seed, len(actions)), play)
        if failure is not None:
            failures.append(failure)
    if failures:
        raise min(failures, key=lambda failure: failure.turns)
    return None


@promise(
    "sampled-apart",
    "Sampling actions changes no episode, and the same seed samples the same actions.",
    needs=("protocol", "seed-determinism", "step-determinism"),
)
def sampled_apart(lab: Lab) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        player, twin, other = lab.fresh(), lab.fresh("twin"), lab.fresh("other")
        streams = GlobalStreams()
        start = player.begin(seed)
        expected = player.play(actions)
        streams.restore()
        twin.start_as(seed, start, player.name)
        sampled = twin.sample()
        streams.restore()
        other.reset(seed)
        if (again := other.sample()) != sampled:
            raise Broken(f"after reset(seed={seed}), twin samples {literal(sampled)} and other {literal(again)}")
        for action, step in zip(actions, expected, strict=False):
            twin.sample()
            twin.repeat([action], [step], player.name)

    if not lab.samples:
        raise Unchecked("it samples no actions")
    lab.each(body)
    return None


def _odd_plays(lab: Lab) -> Iterator[Play]:
    """Each odd text as the first action of an episode and as the second."""
    first = lab.plays[0]
    tails = [action + tail for action in first.actions[:1] for tail in ("\x00", "\ud800", "\n", "}")]
    for text in (*ODD, *tails):
        yield Play(first.seed, (text,))
        yield Play(first.seed, (*first.actions[:1], text))


def _take(lab: Lab, seed: int, actions: Sequence[str]) -> None:
    player = lab.fresh()
    player.reset(seed)
    player.play(actions)


def _take_growing(lab: Lab, build: Callable[[int], str]) -> None:
    usual = math.inf
    for size in SIZES:
        lab.scene()
        player = lab.fresh()
        player.reset(lab.plays[0].seed)
        start = time.perf_counter()
        player.step(build(size))
        seconds = time.perf_counter() - start
        usual = min(usual, seconds)
        if seconds - usual > (TOO_SLOW if size == SIZES[-1] else SLOW):
            raise Broken(f"a text of {size:,} characters takes {seconds:.1f} s: time grows faster than the text")


def _samples(lab: Lab, seed: int, turns: int) -> None:
    player = lab.fresh()
    player.reset(seed)
    for _ in range(turns):
        if player.over:
            break
        _judged(player.step(player.sample()))


def _judged(step: Step) -> None:
    if step.info.get("invalid") is not None:
        raise Broken(f"the sampled action is invalid: info['invalid'] is {step.info['invalid']!r}")
