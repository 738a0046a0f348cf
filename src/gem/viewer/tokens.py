"""The text of token ids, for the token view."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gem.errors import BadValue, MissingDependency, require


class Vocabulary:
    """Texts of token ids.

    Args:
        tokenizer: a tokenizers.Tokenizer; None if there is none, and tokens are shown as numbers.
    """

    def __init__(self, tokenizer: Any = None) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, chosen: Path | None, found: Path | None) -> Vocabulary:
        """Load a tokenizer.

        Args:
            chosen: a tokenizer.json, or a folder with one; None uses ``found``, if tokenizers is installed.

        Raises:
            BadValue: ``chosen`` is not a tokenizer.
            MissingDependency: for a chosen tokenizer, if tokenizers is not installed.
        """
        if chosen is None and found is None:
            return cls()
        try:
            tokenizers = require("tokenizers", extra="train")
        except MissingDependency:
            if chosen is None:
                return cls()
            raise
        path = chosen or found
        assert path is not None
        path = path / "tokenizer.json" if path.is_dir() else path
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as e:  # tokenizers raises no other type
            raise BadValue(f"{path} is not the tokenizer.json of a tokenizer: {e}") from e

    def texts(self, ids: Iterable[int] | None) -> dict[str, str]:
        """Return the text of each token id, with the id as text; of the whole vocabulary if ``ids`` is None."""
        if self.tokenizer is None:
            return {}
        known = range(self.tokenizer.get_vocab_size()) if ids is None else sorted(ids)
        return {str(token): self._text(token) for token in known if self.tokenizer.id_to_token(token) is not None}

    def _text(self, token: int) -> str:
        text: str = self.tokenizer.decode([token], skip_special_tokens=False)
        lost_space = self.tokenizer.id_to_token(token).startswith("▁") and not text.startswith(" ")
        return f" {text}" if lost_space else text  # SentencePiece removes the space in front of the first token
