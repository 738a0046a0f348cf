# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Sets of numbers as intervals that have their start, but not their end."""


class Spans:
    """A set of intervals. They are kept sorted, without overlaps, and joined where they touch; empty ones are dropped.

    Raises ValueError for an interval that ends before it starts.
    """

    def __init__(self, pairs=()):
        self.pairs = []
        for start, end in sorted(pairs):
            if end < start:
                raise ValueError(f"an interval ends before it starts: {(start, end)}")
            if start == end:
                continue
            if self.pairs and start <= self.pairs[-1][1]:
                self.pairs[-1] = (self.pairs[-1][0], max(end, self.pairs[-1][1]))
            else:
                self.pairs.append((start, end))

    def __repr__(self):
        return f"Spans({self.pairs})"

    def __eq__(self, other):
        return isinstance(other, Spans) and self.pairs == other.pairs

    def __hash__(self):
        return hash(tuple(self.pairs))

    def __iter__(self):
        return iter(self.pairs)

    def __len__(self):
        return len(self.pairs)

    def __contains__(self, number):
        low, high = 0, len(self.pairs)
        while low < high:
            middle = (low + high) // 2
            if self.pairs[middle][1] <= number:
                low = middle + 1
            else:
                high = middle
        return low < len(self.pairs) and self.pairs[low][0] <= number

    def total(self):
        """Return the length of all intervals together."""
        return sum(end - start for start, end in self.pairs)

    def __or__(self, other):
        return Spans([*self.pairs, *other.pairs])

    def __and__(self, other):
        found = []
        mine, others = 0, 0
        while mine < len(self.pairs) and others < len(other.pairs):
            start = max(self.pairs[mine][0], other.pairs[others][0])
            end = min(self.pairs[mine][1], other.pairs[others][1])
            if start < end:
                found.append((start, end))
            if self.pairs[mine][1] < other.pairs[others][1]:
                mine += 1
            else:
                others += 1
        return Spans(found)

    def __sub__(self, other):
        found = []
        for start, end in self.pairs:
            for other_start, other_end in other.pairs:
                if other_end <= start or other_start >= end:
                    continue
                if other_start > start:
                    found.append((start, other_start))
                start = max(start, other_end)
                if start >= end:
                    break
            if start < end:
                found.append((start, end))
        return Spans(found)

    def __xor__(self, other):
        return (self | other) - (self & other)

    def gaps(self):
        """Return the intervals between the first and the last one."""
        return Spans([(left[1], right[0]) for left, right in zip(self.pairs, self.pairs[1:])])

    def shifted(self, amount):
        """Return the set moved by an amount."""
        return Spans([(start + amount, end + amount) for start, end in self.pairs])

    def widened(self, before, after):
        """Return the set with each interval longer at both ends. Amounts below 0 make them shorter."""
        changed = [(start - before, end + after) for start, end in self.pairs]
        return Spans([pair for pair in changed if pair[0] < pair[1]])

    def longest(self):
        """Return the longest interval, the first of several, or None."""
        return max(self.pairs, key=lambda pair: pair[1] - pair[0], default=None)

    def pieces(self, size):
        """Return intervals of a size cut from the set, from the start of each interval. Rests are left out."""
        if size <= 0:
            raise ValueError(f"size must be above 0, got {size}")
        found = []
        for start, end in self.pairs:
            while start + size <= end:
                found.append((start, start + size))
                start += size
        return found
