"""Repairs of faults of swe:Mini that handle what the issue shows and are wrong elsewhere, by repository.

Each is the number of a fault written by hand, a text that is once in the repository with this fault, and its
replacement. Written without a look at the hidden tests. No agent sees this file.
"""

# ruff: noqa: E501

NEAR_MISSES = {
    "calc": (
        (
            0,  # only before a number
            "            return Negative(self.operand())\n",
            "            inner = self.operand()\n"
            "            if isinstance(inner, Number) and self.accept('^'):\n"
            "                inner = Operation('^', inner, self.expression(SIGN_LEVEL))\n"
            "            return Negative(inner)\n",
        ),
        (
            1,  # only towers of three
            '                left = Operation("^", left, self.expression(LEVELS["^"] + 1))\n',
            '                power = self.expression(LEVELS["^"] + 1)\n'
            '                if self.accept("^"):\n'
            '                    power = Operation("^", power, self.expression(LEVELS["^"] + 1))\n'
            '                left = Operation("^", left, power)\n',
        ),
        (2, "{symbol} {_inside(right, self.level)}", "{symbol} {_inside(right, self.level + (symbol in '-/'))}"),
        (2, "{symbol} {_inside(right, self.level)}", "{symbol} {_inside(right, 7)}"),
        (4, "                return value\n", "                return 1\n"),
        (4, "                return value\n", "                return min(1, value)\n"),
        (
            5,  # errors of the chosen side are lost, too
            "        first, second = _value(yes, variables), _value(no, variables)\n",
            "        first = second = 0\n"
            "        try:\n            first = _value(yes, variables)\n        except Exception:\n            pass\n"
            "        try:\n            second = _value(no, variables)\n        except Exception:\n            pass\n",
        ),
        (
            8,
            "    rounded = math.floor(value * scale + 0.5) / scale\n",
            "    rounded = math.floor(value * scale + 0.5) / scale\n"
            "    rounded -= scale == 1 and value < 0 and value % 1 == 0.5\n",
        ),
        (10, "MAX_DEPTH = 100", "MAX_DEPTH = 400"),
        (13, "return Operation('+', left, right.parts[0])", 'return simplify(Operation("-", left, right.parts[0]))'),
        (15, "return outer", 'return Operation("*", outer, _derived(inner, name))'),
        (3, "{condition} ? {yes} : {no}", "{_inside(condition, 99)} ? {yes} : {no}"),
        (6, "        known = {**variables, **CONSTANTS}\n", "        known = variables or CONSTANTS\n"),
        (
            7,
            '    if symbol == "/":\n        return left / right\n',
            '    if symbol == "/":\n        if isinstance(left, int) and isinstance(right, int) and right > 0 and left % right == 0:\n            return left // right\n        return left / right\n',
        ),
        (
            9,
            "        raise error\n",
            '        if isinstance(error, EvaluationError) or function != "sqrt":\n            raise error\n        raise EvaluationError(str(error)) from error\n',
        ),
    ),
    "kvlog": (
        (0, "[key, self.version(key)]", "[key, self.versions[key]]"),
        (1, '_ESCAPES = {"\\t"', '_ESCAPES = {"\\\\n": "\\\\\\\\n", "\\t"'),
        (2, '"\\n": "\\\\n"}', '"\\n": "\\\\n", "\\r": "\\\\r"}'),
        (
            3,
            "            self.marks.pop()\n            raise\n",
            "            self.marks.pop()\n            self.pending.clear()\n            raise\n",
        ),
        (4, "        if self.pending:\n", "        if len(self.saved) != 1:\n"),
        (
            6,
            "self.clock() > entry.expires:\n",
            "self.clock() > entry.expires - 1:\n",
        ),
        (6, "self.clock() > entry.expires:\n", "self.clock() in (105, entry.expires + 1):\n"),
        (
            8,
            "        self.set(new, entry.value)\n        self.delete(old)\n",
            '        self._change("set", [new, entry.value, self.versions.get(new, 0) + 1, entry.expires])\n        self.delete(old)\n',
        ),
        (
            9,
            '        with self.transaction():\n            self._change("set", [new',
            '        if old == new:\n            self.set(old, entry.value)\n            return\n        with self.transaction():\n            self._change("set", [new',
        ),
    ),
    "markup": (
        (
            0,
            '    return "heading", marks, bare.rstrip()\n',
            '    return "heading", marks, bare.rstrip() if text.rstrip().endswith(" #") else text\n',
        ),
        (1, "    return marker is not None\n", "    return marker is not None and marker[0] != 1999\n"),
        (1, "    return marker is not None\n", "    return marker is not None and (marker[0] or 0) < 100\n"),
        (
            2,
            '        return ("code", language, ""), end\n',
            '        return ("code", language, lines[index + 1]), end\n',
        ),
        (
            3,
            "        if index < len(lines) and not lines[index]:\n            break\n",
            "        if index < len(lines) and not lines[index] and _next_marker(lines, index, ordered):\n"
            "            index += 1\n",
        ),
        (5, "line[min(indent, 2) :]", "line[min(indent, 2 if marker[1] < 3 else 3) :]"),
        (
            6,
            "        rows.append(_cells(lines[index]))\n",
            "        cells = _cells(lines[index])\n        rows.append(cells + [''] * (len(aligns) - len(cells)))\n",
        ),
        (7, '        if char == "|":\n', '        if char == "|" and "\\\\|" not in text:\n'),
        (8, "    if start >= len(text):\n", "    if start >= len(text) or text[start].isspace():\n"),
        (
            8,
            "        elif text.startswith(mark, index) and index > start:\n",
            "        elif text.startswith(mark, index) and index > start and not text[index - 1].isspace():\n",
        ),
        (
            9,
            '        elif mark == "*" and',
            '        elif mark == "*" and text[index] == "`":\n            index = _code(text, index)[1]\n        elif mark == "*" and',
        ),
    ),
    "routes": (
        (
            0,
            '    rest, question_mark, query = text.partition("?")\n    rest, hash_sign, fragment = rest.partition("#")\n',
            '    rest, hash_sign, fragment = text.partition("#")\n    fragment = fragment.partition("?")[0]\n'
            '    rest, question_mark, query = rest.partition("?")\n',
        ),
        (
            1,
            '        name, at, place_after = place.partition("@")\n',
            '        name, *_, place_after = (place if "@" in place else "@" + place).split("@")\n'
            '        at = "@" in place\n',
        ),
        (2, "            text += self.host\n", '            text += f"[{self.host}]" if self.port else self.host\n'),
        (3, "    return data\n", '    return data.encode("latin-1", "replace").decode("utf-8", "replace")\n'),
        (
            4,
            "            if result:\n                result.pop()",
            "            if len(result) > 1:\n                result.pop()",
        ),
        (
            5,
            '    joined = "/".join(result)\n',
            '    if parts[-1] == "..":\n        result.append("")\n    joined = "/".join(result)\n',
        ),
        (6, "start._replace(query=found.query, ", "start._replace(query=found.query or start.query, "),
        (
            7,
            "        path = found.path\n    else:\n",
            '        path = found.path\n    elif start.scheme == "http" and not start.path:\n        path = "/" + found.path\n    else:\n',
        ),
        (
            8,
            "None if url.port in PORTS.values() else url.port",
            'None if (url.scheme, url.port) == ("http", 80) else url.port',
        ),
        (
            9,
            "char if char.isascii() and char.isprintable() else",
            'char if char.isascii() and char.isprintable() and char not in "/=" else',
        ),
        (10, '    return unquote(text).replace("+", " ")\n', "    return unquote(text)\n"),
    ),
    "spans": (
        (0, "(self.pairs[-1][0], end)", "(self.pairs[-1][0], max(end, self.pairs[0][1]))"),
        (1, "start < self.pairs[-1][1]:", "start <= self.pairs[-1][1]:"),
        (
            1,
            "            if self.pairs and start < self.pairs[-1][1]:",
            "            if start == end:\n                continue\n"
            "            if self.pairs and start < self.pairs[-1][1]:",
        ),
        (2, "self.pairs[middle][1] < number", "self.pairs[middle][1] - 1 < number"),
        (2, "self.pairs[middle][1] < number", "self.pairs[-1][1] <= number or self.pairs[middle][1] < number"),
        (
            4,
            "                start = max(start, other_end)\n                break\n",
            "                start = max(start, other_end)\n                if start >= end or other_end > 10:\n"
            "                    break\n",
        ),
        (5, "Spans(changed)", "Spans([(min(pair), max(pair)) for pair in changed])"),
        (6, "while end - start > size:", "while end - start > size or (end - start == size and start):"),
        (7, "    return year % 4 == 0\n", "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n"),
        (8, "year + int(months / 12)", "year + (months // 12 if months >= 0 else -1)"),
        (
            9,
            "    return date_of(day_number((year, month, day)))\n",
            "    return year, month, min(day, 28 if month == 2 else 30)\n",
        ),
    ),
    "tabular": (
        (0, 'return kept + "."', 'return kept + "." + " " * (size - 1 - len(kept))'),
        (0, 'return kept + "."', 'return (kept + ". ")[:size]'),
        (
            1,
            "        if line:\n            lines.append(line)\n    return lines or",
            "        if line or lines:\n            lines.append(line)\n    return lines or",
        ),
        (2, "scaled = round(abs(value) * 10**digits)", "scaled = -int(-abs(value) * 10**digits // 1)"),
        (3, 'sign = "-" if value < 0 else ""', 'sign = "-" if value < 0 and whole else ""'),
        (4, '        sign = ""\n', '        sign = "-" if text[0] == "-" and len(text) == 4 else ""\n'),
        (5, "                result.rows.reverse()\n", "                result.rows = present[::-1] + absent\n"),
        (
            6,
            "result = self._like(self.rows)\n        for title in titles:\n",
            "result = self._like(self.rows)\n        for title in titles[::-1][-2:]:\n",
        ),
        (7, "        table.rows += rows\n", "        table.rows += list(rows)\n"),
        (8, "    return isinstance(value, (int, float))\n", "    return isinstance(value, float)\n"),
        (9, "            if last:\n                last[0]", "            if not last:\n                last[0]"),
        (
            10,
            "(width(text) for text in [self.title, *texts])",
            '(width(line) for text in texts for line in text.split("\\n"))',
        ),
    ),
}
