# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""CSV: tables from text and to text."""

from tabular.table import Column, Table


def read_csv(text, separator=","):
    """Return a table. The first row has the titles; numbers become int or float, and empty cells None.

    Cells in quotes stay text and may have separators, line breaks, and quotes written twice.
    """
    rows = [row for row in _rows(text, separator) if row != [("", False)]]
    if not rows:
        raise ValueError("there is no row of titles")
    titles = [cell for cell, _ in rows[0]]
    table = Table([Column(title) for title in titles])
    for number, row in enumerate(rows[1:], 2):
        if len(row) > len(titles):
            raise ValueError(f"row {number} has {len(row)} cells for {len(titles)} titles")
        table.add(*(cell if quoted else _value(cell.strip()) for cell, quoted in row))
    return table


def write_csv(table, separator=","):
    """Return the text of a table, such that read_csv() gives the same values."""
    rows = [[column.title for column in table.columns], *table.rows]
    return "".join(separator.join(_cell(value, separator) for value in row) + "\n" for row in rows)


def _cell(value, separator):
    if value is None:
        return ""
    text = str(value)
    if not isinstance(value, str):
        return text
    special = any(char in text for char in (separator, '"', "\n"))
    if special or text != text.strip() or _value(text) != text:
        return '"' + text.replace('"', '""') + '"'
    return text


def _value(text):
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _rows(text, separator):
    """Return rows of (text, whether it was in quotes). Raises ValueError for a quote that is not closed."""
    rows = []
    row = []
    cell = ""
    quoted = False
    index = 0
    while index < len(text):
        char = text[index]
        if char == '"' and not cell.strip() and not quoted:
            end = index + 1
            cell = ""
            while True:
                close = text.find('"', end)
                if close < 0:
                    raise ValueError("a quote is not closed")
                cell += text[end:close]
                if text[close + 1 : close + 2] != '"':
                    break
                cell += '"'
                end = close + 2
            quoted = True
            index = close + 1
            continue
        if char == separator or char == "\n":
            row.append((cell, quoted))
            cell = ""
            quoted = False
            if char == "\n":
                rows.append(row)
                row = []
        elif not quoted:
            cell += char
        index += 1
    if cell or quoted or row:
        rows.append([*row, (cell, quoted)])
    return rows
