"""Faults of tabular, written by hand.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from gem.envs.computers.swe.repository import Defect, Edit

CELLS, TABLE, CSV = "tabular/cells.py", "tabular/table.py", "tabular/csvtext.py"
FAULTS = (
    Defect(
        "We have product names in Japanese. Where a name is too long for its column and is cut, the line "
        "often ends one "
        "column early, so that the border to its right is not straight. Names that fit are fine, and Latin ones too.",
        (Edit(CELLS, 'return kept + "." + " " * (size - 1 - width(kept))', 'return kept + "."'),),
    ),
    Defect(
        "Addresses in my cells have several lines, and some have an empty line in the middle. In the table the empty "
        "lines are gone, and all that follows has moved up.",
        (
            Edit(
                CELLS,
                "        lines.append(line)\n    return lines",
                "        if line:\n            lines.append(line)\n    return lines or ['']",
            ),
        ),
    ),
    Defect(
        "Amounts that end in a 5 are rounded in different directions: with two digits 0.375 is shown as "
        "0.38, but 0.125 "
        "as 0.12. The documentation promises that halves go away from zero.",
        (
            Edit(
                CELLS,
                "        scaled = int(abs(value) * 10**digits * 2 + 1) // 2\n"
                "        whole, fraction = divmod(scaled, 10**digits)\n",
                "        scaled = round(abs(value) * 10**digits)\n"
                "        whole, fraction = scaled // 10**digits, scaled % 10**digits\n",
            ),
        ),
    ),
    Defect(
        "A very small loss, like -0.001, is shown as -0.00 in my report. It should be 0.00. The same happens in every "
        "format with fixed digits, also with none.",
        (
            Edit(
                CELLS,
                '        text = f"{whole}.{fraction:0{digits}d}" if digits else str(whole)\n'
                '        if value < 0 and scaled:\n            text = "-" + text\n',
                '        sign = "-" if value < 0 else ""\n'
                '        text = f"{sign}{whole}.{fraction:0{digits}d}" if digits else f"{sign}{whole}"\n',
            ),
        ),
    ),
    Defect(
        "Negative amounts get a comma in the wrong place if thousands are grouped: minus one hundred and twenty-three "
        "is shown as -,123. Larger ones are sometimes right.",
        (Edit(CELLS, '        sign = "-" if text.startswith("-") else ""\n', '        sign = ""\n'),),
    ),
    Defect(
        "When I sort by price downwards, the articles without a price come first. Upwards they come last, as they "
        "should in both.",
        (
            Edit(
                TABLE,
                "            present.sort(key=lambda row: row[index], reverse=down)\n"
                "            result.rows = present + absent\n",
                "            present.sort(key=lambda row: row[index])\n"
                "            result.rows = present + absent\n"
                "            if down:\n"
                "                result.rows.reverse()\n",
            ),
        ),
    ),
    Defect(
        "Sorting by two columns gives a strange order. I ask for the shelf first and for the item within a shelf, and "
        "the table is sorted by item; shelves matter only for items with the same name.",
        (
            Edit(
                TABLE,
                "        result = self._like(self.rows)\n        for title in reversed(titles):\n",
                "        result = self._like(self.rows)\n        for title in titles:\n",
            ),
        ),
    ),
    Defect(
        "I sorted a copy of my table, or selected rows of it, and changed a cell of the result. The cell of the first "
        "table has changed as well.",
        (Edit(TABLE, "        table.rows = [list(row) for row in rows]\n", "        table.rows += rows\n"),),
    ),
    Defect(
        "A column of yes and no has a sum now: the number of yes. It also moved to the right side, like a column of "
        "numbers. Truth values never were numbers here.",
        (
            Edit(
                TABLE,
                "    return isinstance(value, (int, float)) and not isinstance(value, bool)\n",
                "    return isinstance(value, (int, float))\n",
            ),
        ),
    ),
    Defect(
        "If the first column is a column of numbers and I ask for its sum, the last row has the word total where the "
        "sum should be.",
        (
            Edit(
                TABLE,
                "            if 0 not in sums:\n                last[0]",
                "            if last:\n                last[0]",
            ),
        ),
    ),
    Defect(
        "A cell with several short lines makes its column as wide as if all its text were in one line.",
        (
            Edit(
                TABLE,
                '(width(line) for text in [self.title, *texts] for line in text.split("\\n"))',
                "(width(text) for text in [self.title, *texts])",
            ),
        ),
    ),
    Defect(
        'I write article numbers like "0012" and words like "1e5" as text. After writing the table as CSV and '
        "reading it again they are numbers, and the zeros are lost. An empty text comes back as nothing, too.",
        (
            Edit(
                CSV,
                "if special or text != text.strip() or _value(text) != text:",
                "if special or text != text.strip():",
            ),
        ),
    ),
    Defect(
        "We use semicolons in our CSV files. A text with a semicolon in it is written without quotes, so the row has "
        "too many cells when it is read. Texts with commas have quotes that they do not need.",
        (
            Edit(CSV, "(_cell(value, separator) for value in row)", "(_cell(value) for value in row)"),
            Edit(CSV, "def _cell(value, separator):", 'def _cell(value, separator=","):'),
        ),
    ),
    Defect(
        "Quotes inside of texts are not read back as they were. A text with one quote in the middle has two after "
        "writing and reading a CSV file; I think that reading is at fault.",
        (
            Edit(
                CSV,
                "                cell += '\"'\n                end = close + 2\n",
                "                cell += '\"\"'\n                end = close + 2\n",
            ),
        ),
    ),
)
