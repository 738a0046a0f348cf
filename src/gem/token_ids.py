"""Sequences of token ids that share storage, so that the contexts of an episode take memory linear in its tokens."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload


class TokenIds(Sequence[int]):
    """An immutable sequence of token ids. Sequences made by extended() share the storage of what they extend.

    Compares equal to lists and tuples of the same ids. Slices and sums are lists.

    >>> first = TokenIds([1, 2])
    >>> second = first.extended([3], [4, 5])
    >>> first, second[2:], second.starts_with(first)
    (TokenIds([1, 2]), [3, 4, 5], True)
    """

    __slots__ = ("_buffer", "_length")

    def __init__(self, ids: Iterable[int] = ()) -> None:
        self._buffer = array("q", ids)
        self._length = len(self._buffer)

    def extended(self, *parts: Iterable[int]) -> TokenIds:
        """Return these ids, followed by others. Takes time linear in the others, for the first extension."""
        # Ids behind the end belong to another extension.
        buffer = self._buffer if len(self._buffer) == self._length else self._buffer[: self._length]
        for part in parts:
            buffer.extend(part)
        extended = TokenIds()
        extended._buffer, extended._length = buffer, len(buffer)
        return extended

    def continued(self, ids: Sequence[int]) -> TokenIds:
        """Return ids, sharing the storage of these ids if they are a prefix."""
        return self.extended(ids[self._length :]) if ids[: self._length] == self.tolist() else TokenIds(ids)

    def starts_with(self, ids: TokenIds, more: Sequence[int] = ()) -> bool:
        """Whether these ids start with others, and then with more. Comparing shared storage takes constant time."""
        end, length = ids._length, ids._length + len(more)
        if length > self._length or self._buffer[end:length] != array("q", more):
            return False
        return self._buffer is ids._buffer or self._buffer[:end] == ids._buffer[:end]

    def tolist(self) -> list[int]:
        return self._buffer[: self._length].tolist()

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return self._buffer[start:stop].tolist() if step == 1 else self.tolist()[index]
        return self._buffer[range(self._length)[index]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TokenIds):
            return self._length == other._length and self.starts_with(other)
        return isinstance(other, list | tuple) and self.tolist() == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self.tolist()))

    def __add__(self, other: Sequence[int]) -> list[int]:
        return [*self.tolist(), *other]

    def __radd__(self, other: Sequence[int]) -> list[int]:
        return [*other, *self.tolist()]

    def __reduce__(self) -> Any:
        return _restore, (self._buffer, self._length)

    def __repr__(self) -> str:
        return f"TokenIds({self.tolist()})"


def _restore(buffer: array[int], length: int) -> TokenIds:
    restored = TokenIds()
    restored._buffer, restored._length = buffer, length
    return restored


NO_TOKENS = TokenIds()  # for text policies, whose contexts are not known
