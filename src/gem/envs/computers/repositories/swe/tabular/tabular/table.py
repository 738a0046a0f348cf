# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Tables: rows under columns."""

from tabular.cells import format_number, pad, width, wrap


class Column:
    """A column. The width is that of the widest cell, within min_width and max_width; longer cells are wrapped.

    align: "left", "right", "center", or None for right in columns of numbers and left elsewhere.
    missing: shown for None.
    """

    def __init__(self, title, align=None, digits=None, thousands=False, min_width=0, max_width=None, missing="-"):
        if max_width is not None and max_width < max(min_width, 1):
            raise ValueError(f"max_width must be at least {max(min_width, 1)}, got {max_width}")
        self.title = title
        self.align = align
        self.digits = digits
        self.thousands = thousands
        self.min_width = min_width
        self.max_width = max_width
        self.missing = missing

    def text(self, value):
        """Return a value as it is shown."""
        if value is None:
            return self.missing
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, (int, float)):
            return format_number(value, self.digits, self.thousands)
        return str(value)

    def size(self, texts):
        """Return the width of the column for these texts."""
        widest = max((width(line) for text in [self.title, *texts] for line in text.split("\n")), default=0)
        widest = max(widest, self.min_width)
        return widest if self.max_width is None else min(widest, self.max_width)


class Table:
    """Rows of values under columns."""

    def __init__(self, columns):
        titles = [column.title for column in columns]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(f"two columns are called {title!r}")
        self.columns = list(columns)
        self.rows = []

    def add(self, *values, **named):
        """Add a row: values in the order of the columns, or by title. Missing ones are None."""
        if len(values) > len(self.columns):
            raise ValueError(f"{len(values)} values for {len(self.columns)} columns")
        row = list(values) + [None] * (len(self.columns) - len(values))
        for title, value in named.items():
            index = self.index(title)
            if index < len(values):
                raise ValueError(f"{title!r} is given twice")
            row[index] = value
        self.rows.append(row)

    def index(self, title):
        """Return the place of a column. Raises KeyError."""
        for index, column in enumerate(self.columns):
            if column.title == title:
                return index
        raise KeyError(title)

    def column(self, title):
        """Return the values of a column."""
        index = self.index(title)
        return [row[index] for row in self.rows]

    def sorted(self, *titles):
        """Return a table whose rows are sorted by columns; "-title" sorts downwards. None comes last in both orders."""
        result = self._like(self.rows)
        for title in reversed(titles):
            down = title.startswith("-")
            index = self.index(title[1:] if down else title)
            present = [row for row in result.rows if row[index] is not None]
            absent = [row for row in result.rows if row[index] is None]
            present.sort(key=lambda row: row[index], reverse=down)
            result.rows = present + absent
        return result

    def where(self, test):
        """Return a table with the rows for which test(dict of the row) is true."""
        titles = [column.title for column in self.columns]
        return self._like([row for row in self.rows if test(dict(zip(titles, row)))])

    def total(self, title):
        """Return the sum of the numbers of a column. Other values do not count, nor do truth values."""
        return sum(value for value in self.column(title) if _is_number(value))

    def mean(self, title):
        """Return the mean of the numbers of a column, or None if there are none."""
        numbers = [value for value in self.column(title) if _is_number(value)]
        return sum(numbers) / len(numbers) if numbers else None

    def grouped(self, by, *titles):
        """Return a table with one row per value of a column, in the order of first appearance, and sums of others."""
        places = {}
        for row in self.rows:
            places.setdefault(row[self.index(by)], []).append(row)
        result = Table([self.columns[self.index(title)] for title in (by, *titles)])
        for value, rows in places.items():
            group = self._like(rows)
            result.add(value, *(group.total(title) for title in titles))
        return result

    def render(self, border=True, totals=()):
        """Return the text of the table.

        border: whether there are lines around the table and between the columns; without them two spaces part the
        columns, and lines have no spaces at their end. totals: titles of columns whose sums are shown in a last row.
        """
        rows = [[column.text(value) for column, value in zip(self.columns, row)] for row in self.rows]
        if totals:
            sums = {self.index(title): self.total(title) for title in totals}
            last = [self.columns[i].text(sums[i]) if i in sums else "" for i in range(len(self.columns))]
            if 0 not in sums:
                last[0] = "total"
        else:
            last = None
        shown = rows + ([last] if last else [])
        sizes = [column.size([row[i] for row in shown]) for i, column in enumerate(self.columns)]
        aligns = [self._align(i) for i in range(len(self.columns))]
        rule = "+" + "+".join("-" * (size + 2) for size in sizes) + "+"
        if not border:
            rule = "  ".join("-" * size for size in sizes)
        lines = [rule] if border else []
        lines += _lines([column.title for column in self.columns], sizes, aligns, border)
        lines.append(rule)
        for row in rows:
            lines += _lines(row, sizes, aligns, border)
        if last:
            lines.append(rule)
            lines += _lines(last, sizes, aligns, border)
        if border:
            lines.append(rule)
        return "\n".join(lines)

    def _align(self, index):
        column = self.columns[index]
        if column.align is not None:
            return column.align
        values = [row[index] for row in self.rows if row[index] is not None]
        return "right" if values and all(_is_number(value) for value in values) else "left"

    def _like(self, rows):
        table = Table(self.columns)
        table.rows = [list(row) for row in rows]
        return table


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _lines(texts, sizes, aligns, border):
    """Return the lines of one row, whose cells may have several."""
    cells = [wrap(text, size) if size else [""] for text, size in zip(texts, sizes)]
    height = max((len(cell) for cell in cells), default=1)
    lines = []
    for number in range(height):
        parts = []
        for cell, size, align in zip(cells, sizes, aligns):
            parts.append(pad(cell[number] if number < len(cell) else "", size, align))
        lines.append("| " + " | ".join(parts) + " |" if border else "  ".join(parts).rstrip())
    return lines
