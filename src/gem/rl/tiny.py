"""The embedded default policy: a tiny Qwen3 and a tokenizer, both made on the spot from an environment's own text.

Nothing is downloaded. What comes out is what ``transformers`` would load from a folder, so the rest of the code cannot
tell it from a model named by ``--model``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gem.errors import require
from gem.registry import make
from gem.seeding import derive

USER, ASSISTANT, END, PAD = "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>"
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}<|assistant|>{{ m['content'] }}<|end|>"
    "{% else %}<|user|>{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SAMPLE_EPISODES, SAMPLE_TURNS = 300, 20_000  # of random play, to hear what the environment says


class Heard(NamedTuple):
    """What an environment says and what it takes: observations and legal actions, with repetitions."""

    observations: list[str]
    actions: list[str]


def listen(env_id: str, seed: int, env_kwargs: dict[str, Any] | None = None) -> Heard:
    """What is said in some episodes of random legal play."""
    heard = Heard([], [])
    with make(env_id, **(env_kwargs or {})) as env:
        for episode in range(SAMPLE_EPISODES):
            observation, _ = env.reset(seed=derive(seed, "tokenizer", episode))
            heard.observations.append(str(observation))
            over = False
            while not over and len(heard.actions) < SAMPLE_TURNS:
                heard.actions.append(env.sample_random_action())
                observation, _, terminated, truncated, _ = env.step(heard.actions[-1])
                heard.observations.append(str(observation))
                over = terminated or truncated
    return heard


def build_tokenizer(texts: list[str], vocabulary: int = 512) -> Any:
    """A byte-level BPE tokenizer that merges whole phrases but keeps every digit a token of its own.

    Args:
        texts: what to learn the merges from; any other text still encodes, in more tokens.
        vocabulary: most tokens; at least the 256 bytes and 4 control tokens.

    Returns a transformers tokenizer with a chat template.
    """
    tokenizers = require("tokenizers", extra="train")
    transformers = require("transformers", extra="train")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    digits_apart = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([digits_apart, byte_level])
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
    """A randomly initialised Qwen3 of about 120,000 parameters. Sizes in units and tokens."""
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
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "model"))
        return transformers.Qwen3ForCausalLM(config)
