"""The embedded default model: a tiny Qwen3 and a tokenizer trained on text of the environment.

Nothing is downloaded. Model and tokenizer are ordinary transformers objects, so that the rest of the code handles them
like any model given with ``--model``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from gem.core import Env
from gem.errors import require
from gem.policies import oracle
from gem.registry import ENV_REGISTRY, make
from gem.seeding import derive

USER, ASSISTANT, END, PAD = "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>"
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}<|assistant|>{{ m['content'] }}<|end|>"
    "{% else %}<|user|>{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CORPUS_EPISODES, CORPUS_TURNS, ORACLE_TURNS = 300, 20_000, 300  # upper bounds


class Corpus(NamedTuple):
    """Observations and legal actions of an environment, with repetitions."""

    observations: list[str]
    actions: list[str]


def collect_corpus(
    env_id: str,
    seed: int,
    env_kwargs: Mapping[str, Any] | None = None,
    wraps: Sequence[Callable[[Any], Any]] = (),
) -> Corpus:
    """Play episodes of random legal actions and return all their text. ``wraps`` adds tools, whose calls count too."""
    with reduce(lambda inner, wrap: wrap(inner), wraps, make(env_id, **(env_kwargs or {}))) as env:
        return _play(env, lambda observation: env.sample_random_action(), CORPUS_TURNS, seed, "tokenizer")


def collect_oracle_actions(env_id: str, seed: int, env_kwargs: Mapping[str, Any] | None = None) -> list[str]:
    """Return actions of the environment's oracle: gold answers, for questions. Empty if it has no oracle.

    They are not shown to the model; right answers may be longer than random ones, and have to fit a reply.
    """
    if ENV_REGISTRY[env_id].oracle is None:
        return []
    with make(env_id, **(env_kwargs or {})) as env:
        return _play(env, oracle(env).act, ORACLE_TURNS, seed, "oracle").actions


def _play(env: Env, act: Callable[[str], str], turns: int, *name: int | str) -> Corpus:
    """Play CORPUS_EPISODES episodes, and at most that many turns, with seeds that are derived from a name."""
    corpus = Corpus([], [])
    for episode in range(CORPUS_EPISODES):
        observation, _ = env.reset(seed=derive(*name, episode))
        corpus.observations.append(str(observation))
        over = False
        while not over and len(corpus.actions) < turns:
            corpus.actions.append(act(corpus.observations[-1]))
            observation, _, terminated, truncated, _ = env.step(corpus.actions[-1])
            corpus.observations.append(str(observation))
            over = terminated or truncated
    return corpus


def build_tokenizer(texts: list[str], vocabulary: int = 512) -> Any:
    """Train a byte-level BPE tokenizer that merges whole phrases, and digits at most in pairs.

    Numbers below 100 that are frequent are one token each. If 1 and 10 shared the token of their 1, a policy that
    learns that 1 is a bad guess could stop guessing 10, before it learns when 10 is right.

    Args:
        texts: training texts. Any other text can be encoded too, in more tokens.
        vocabulary: maximum number of tokens; at least 260, for the 256 bytes and 4 control tokens.

    Returns:
        A transformers tokenizer with a chat template.
    """
    tokenizers = require("tokenizers", extra="train")
    transformers = require("transformers", extra="train")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pairs = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\d{1,2}"), behavior="isolated")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([pairs, byte_level])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END, USER, ASSISTANT],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=128,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, chat_template=CHAT_TEMPLATE
    )


def build_model(tokenizer: Any, seed: int, *, hidden: int = 64, layers: int = 2, context: int = 1024) -> Any:
    """Build a randomly initialized Qwen3, by default of about 120,000 parameters.

    The standard deviation of the weights is 1/sqrt(hidden), so that each layer keeps the scale of its input. With the
    0.02 of large models, attention is nearly uniform and a small model takes several times as many updates to learn.

    Args:
        hidden: hidden size.
        layers: number of layers.
        context: maximum context length in tokens.
    """
    torch = require("torch", extra="train")
    transformers = require("transformers", extra="train")
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=hidden // 4,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        initializer_range=hidden**-0.5,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "model"))
        return transformers.Qwen3ForCausalLM(config)
