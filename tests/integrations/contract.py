"""The reference contract: what every framework has to end up with when it plays recorded replies through its adapter.

A tiny random model and a tokenizer with merges are built from a seed. A scripted player writes replies, some of them in
unusual tokens or cut off, and the model scores them; that is the record. ReplayEngine returns the recorded reply to a
prompt, and refuses any prompt that differs from the recorded ones by a token. check() compares the ids, mask, rewards
and log-probabilities that a framework hands to its loss with those of gem.rollout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import torch

import gem
from gem.conversation import ChatFormat
from gem.core import EnvWrapper
from gem.integrations.shared.sequences import PackedEpisode, TrainingSequence, pack_episode
from gem.integrations.shared.tasks import EnvTask, make_tasks
from gem.policies import Reply, Request
from gem.rl.model.tiny import build_model, build_tokenizer, collect_corpus
from gem.rollout import play_seeds
from gem.seeding import derive
from gem.trajectory import Trajectory
from gem.vector import VectorEnv

GAME, MATH = "contract:GuessTheNumber", "math:Arithmetic"
TOLERANCE = 1e-4  # of a log-probability; one wrong token of the context changes them by about 1e-2
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class NumberedEpisodes(EnvWrapper):
    """Shows the seed in the first observation, so that no two episodes have the same prompt."""

    def reset(self, seed=None, **kwargs):
        observation, info = self.env.reset(seed=seed, **kwargs)
        return observation, {**info, "prefix": f"Episode {seed}."}


def numbered_game(**kwargs: Any) -> Any:
    return NumberedEpisodes(gem.make("game:GuessTheNumber-v0-easy", **kwargs))


if GAME not in gem.ENV_REGISTRY:
    gem.register(GAME, entry_point=numbered_game)

GAME_TASKS = make_tasks(GAME, 64)
MATH_TASKS = make_tasks(MATH, 32, wrappers="python_tool,concat_chat")


def build(folder: Path) -> None:
    """Save the model and the tokenizer."""
    game, math = (collect_corpus(env_id, 0) for env_id in ("game:GuessTheNumber-v0-easy", MATH))
    said = ["I guess ", "<python>print()</python>", "The answer is ", "Code execution result: "]
    tokenizer = build_tokenizer([*game.observations, *game.actions, *math.observations[:300], *said * 50], 700)
    special = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "additional_special_tokens": ["<|im_start|>"]}
    tokenizer.add_special_tokens(special)
    tokenizer.chat_template = CHATML
    model = build_model(tokenizer, seed=7, hidden=32, context=2048)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@dataclass(frozen=True)
class Recorded:
    """A reply as a model would have sampled it."""

    ids: list[int]
    logprobs: list[float]
    finish: str


class PromptMismatch(AssertionError):
    """A framework sent a prompt that was not recorded: some token of the context is wrong."""


@dataclass
class Reference:
    """The recorded replies by prompt, and the episodes that gem.rollout plays with them."""

    folder: Path
    replies: dict[tuple[int, ...], Recorded] = field(default_factory=dict)
    episodes: dict[EnvTask, PackedEpisode] = field(default_factory=dict)

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.folder)

    @cached_property
    def model(self) -> Any:
        from transformers import AutoModelForCausalLM

        return AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()

    def reply(self, prompt_ids: Iterable[int]) -> Recorded:
        """The recorded reply. Raises PromptMismatch with the position of the first wrong token."""
        prompt = tuple(prompt_ids)
        if prompt not in self.replies:
            closest = max(self.replies, key=lambda other: common(prompt, other))
            at = common(prompt, closest)
            raise PromptMismatch(
                f"token {at} of a prompt of {len(prompt)} differs from the closest recorded prompt: "
                f"{self.tokenizer.decode(prompt[at : at + 8])!r}, not {self.tokenizer.decode(closest[at : at + 8])!r}"
            )
        return self.replies[prompt]

    def trajectory(self, task: EnvTask) -> Trajectory:
        return self.episodes[task].trajectory

    def expected(self, task: EnvTask) -> TrainingSequence:
        (sequence,) = self.episodes[task].sequences
        return sequence

    @torch.no_grad()
    def score(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """Teacher-force the model: the log-probability of each token given those before it; 0.0 for the first."""
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
        attend = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        logp = torch.log_softmax(self.model(input_ids=ids, attention_mask=attend).logits.float(), dim=-1)
        scores = logp[:, :-1].gather(2, ids[:, 1:, None])[..., 0].tolist()
        return [[0.0, *line[: len(row) - 1]] for line, row in zip(scores, rows, strict=True)]


class ReplayEngine:
    """The recorded replies as a policy of gem. Counts the prompts that it answered."""

    version, max_prompt_tokens = 0, None

    def __init__(self, reference: Reference) -> None:
        self.reference, self.chat, self.asked = reference, ChatFormat(reference.tokenizer), 0

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [self.answer(request.prompt_ids) for request in requests]

    def answer(self, prompt_ids: Sequence[int]) -> Reply:
        self.asked += 1
        recorded = self.reference.reply(prompt_ids)
        return Reply(self.chat.decode(recorded.ids), recorded.ids, recorded.logprobs, recorded.finish)


class _Player(ReplayEngine):
    """Writes the replies that are recorded: guesses, programs and answers, in tokens that a model could sample."""

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        written: dict[tuple[int, ...], tuple[list[int], str]] = {}
        for prompt in (tuple(request.prompt_ids) for request in requests):
            chance = Random(derive("contract", str(prompt)))
            text = self.text(self.chat.decode(list(prompt)), chance)
            kind = chance.random()
            ids = self.chat.encode_reply(text)
            if kind < 0.25:  # every character apart
                ids = [id for character in text for id in self.chat.template.encode_text(character)] + ids[-1:]
            written[prompt] = (ids[:-1], "length") if 0.25 <= kind < 0.4 else (ids, "stop")
        scored = self.reference.score([[*prompt, *ids] for prompt, (ids, _) in written.items()])
        for (prompt, (ids, finish)), scores in zip(written.items(), scored, strict=True):
            self.reference.replies[prompt] = Recorded(ids, scores[len(prompt) :], finish)
        return super().act(requests)

    def text(self, prompt: str, chance: Random) -> str:
        if "Episode" in prompt:
            no_guess = chance.random() < 0.06
            return "I do not know." if no_guess else rf"I guess \boxed{{{chance.randint(1, 10)}}}"
        numbers = re.findall(r"Code execution result: (-?\d+)", prompt)
        if not numbers and prompt.count("<python>") < 4 and chance.random() < 0.8:  # 2 in the instructions
            code = chance.choice(["1/0", str(chance.randint(0, 99)), str(chance.randint(100, 999))])
            return f"<python>print({code})</python>"
        return rf"The answer is \boxed{{{numbers[-1] if numbers else chance.randint(0, 9)}}}"


def record(folder: Path) -> Reference:
    """Build and save the model, record the replies, and play the reference episodes."""
    torch.set_num_threads(1)
    build(folder)
    reference = Reference(folder)
    for tasks in (GAME_TASKS, MATH_TASKS):
        envs = [lambda task=tasks[0]: task.build(reference.tokenizer)] * 8
        vec_env = VectorEnv.of(envs, autoreset="disabled")
        seeds = [task.seed for task in tasks]
        play_seeds(vec_env, _Player(reference), seeds)
        played = play_seeds(vec_env, ReplayEngine(reference), seeds)
        vec_env.close()
        reference.episodes |= {task: pack_episode(t) for task, t in zip(tasks, played, strict=True)}
    return reference


@dataclass
class Held:
    """What a framework hands to its loss for one episode.

    Args:
        ids, mask: all tokens, and 1 on those that are trained.
        logprobs: of the sampler, one per token; None if the framework does not hand them over.
        rewards: one per token; None if the framework has one reward per episode.
        total: the reward of the episode.
    """

    ids: list[int]
    mask: list[int]
    total: float
    logprobs: list[float] | None = None
    rewards: list[float] | None = None


def check(reference: Reference, held: dict[EnvTask, Held]) -> None:
    """Raise AssertionError unless every episode equals the reference and the model gives the log-probabilities."""
    for task, got in held.items():
        want, where = reference.expected(task), f"{task.env_id} {task.seed}"
        at = common(got.ids, want.ids_T)
        assert got.ids == want.ids_T, (
            f"{where}: ids differ at token {at} of {len(want.ids_T)}, {len(got.ids)} handed over"
        )
        assert list(map(int, got.mask)) == want.mask_T, f"{where}: the mask differs"
        assert abs(got.total - sum(want.rewards_T)) < 1e-6, f"{where}: reward {got.total}, not {sum(want.rewards_T)}"
        if got.rewards is not None:
            wrong = [t for t, (a, b) in enumerate(zip(got.rewards, want.rewards_T, strict=True)) if abs(a - b) > 1e-6]
            assert not wrong, f"{where}: the reward of tokens {wrong} differs"
    rows = list(held.values())
    for row, scores, task in zip(rows, reference.score([row.ids for row in rows]), held, strict=True):
        wanted = reference.expected(task).logprobs_T
        for name, logprobs in (("of the model", scores), ("of the framework", row.logprobs)):
            trained = [t for t, trains in enumerate(row.mask) if trains]
            gap = max((abs(logprobs[t] - wanted[t]) for t in trained), default=0.0) if logprobs is not None else 0.0
            assert gap < TOLERANCE, f"{task.env_id} {task.seed}: log-probabilities {name} differ by {gap:.2g}"


# Mutations of a packed sequence that every adapter's test has to find.


def token(sequence: TrainingSequence) -> None:
    """Change a token that was fed, not sampled."""
    fed = next(t for t in range(sequence.prompt_length, len(sequence.turn_T)) if sequence.turn_T[t] < 0)
    sequence.ids_T[fed] += 1


def mask(sequence: TrainingSequence) -> None:
    """Change the mask of the first sampled token."""
    sequence.mask_T[sequence.prompt_length] ^= 1


def cut(sequence: TrainingSequence) -> None:
    """Drop the last token."""
    for values_T in (sequence.ids_T, sequence.mask_T, sequence.logprobs_T, sequence.turn_T, sequence.rewards_T):
        values_T.pop()


def late(sequence: TrainingSequence) -> None:
    """Move all rewards to the last token."""
    sequence.rewards_T[:] = [0.0] * (len(sequence.ids_T) - 1) + [sum(sequence.rewards_T)]


def mutate_packing(
    monkeypatch: Any, adapter: Any, seed: int | None, mutation: Callable[[TrainingSequence], None]
) -> None:
    """Apply a mutation to the last sequence of the episodes with this seed, as the adapter packs them."""
    pack = adapter.pack_episode

    def mutated(trajectory: Trajectory, **options: Any) -> Any:
        packed = pack(trajectory, **options)
        if trajectory.seed == seed:
            mutation(packed.last)
        return packed

    monkeypatch.setattr(adapter, "pack_episode", mutated)


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """The length of the common prefix."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class TextReplies:
    """The recorded episodes for frameworks that pass text: the reply that follows the contents of a conversation.

    The framework keeps the history, so the environments do not show it. Replies are looked up by the contents of all
    messages, whatever their roles; a conversation that differs from the recorded ones raises PromptMismatch.
    """

    def __init__(self, reference: Reference, tasks: Sequence[EnvTask]) -> None:
        self.tasks = [replace(task, wrappers=task.wrappers.removesuffix(",concat_chat")) for task in tasks]
        self.replies: dict[tuple[str, ...], str] = {}
        self.rewards: dict[EnvTask, list[float]] = {}
        for recorded, task in zip(tasks, self.tasks, strict=True):
            episode, contents = task.episode(), list[str]()
            episode.reset(task.seed)
            for turn in reference.trajectory(recorded).turns:
                contents.append(str(episode.request.observation))
                self.replies[tuple(contents)] = turn.action
                contents.append(turn.action)
                episode.step(Reply(turn.action))
            assert episode.over and episode.trajectory.rewards_K == reference.trajectory(recorded).rewards_K
            self.rewards[task] = episode.trajectory.rewards_K
            episode.close()

    def reply(self, contents: Iterable[str]) -> str:
        key = tuple(contents)
        if key not in self.replies:
            raise PromptMismatch(f"no recorded conversation has these {len(key)} messages: {key[-1]!r} is the last")
        return self.replies[key]
