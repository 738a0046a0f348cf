# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Tokens of an expression."""

SYMBOLS = ("==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "(", ")", ",", "?", ":")


class ParseError(ValueError):
    """A text is not an expression. position: index of the first character that is wrong."""

    def __init__(self, message, position):
        super().__init__(f"{message} at {position}")
        self.position = position


def tokens(text):
    """Return (kind, value, position) of each token, kind being "number", "name", "symbol", and "end" for the last.

    Numbers have digits, one point and an exponent; underscores between digits are left out. A # starts a comment.
    """
    found = []
    index = 0
    while index < len(text):
        char = text[index]
        if char.isspace():
            index += 1
        elif char == "#":
            end = text.find("\n", index)
            index = len(text) if end < 0 else end + 1
        elif char.isdigit() or (char == "." and text[index + 1 : index + 2].isdigit()):
            value, end = _number(text, index)
            found.append(("number", value, index))
            index = end
        elif char.isalpha() or char == "_":
            end = index
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            found.append(("name", text[index:end], index))
            index = end
        else:
            for symbol in SYMBOLS:
                if text.startswith(symbol, index):
                    found.append(("symbol", symbol, index))
                    index += len(symbol)
                    break
            else:
                raise ParseError(f"unexpected {char!r}", index)
    found.append(("end", "", len(text)))
    return found


def _number(text, start):
    end = _digits(text, start)
    whole = True
    if text[end : end + 1] == ".":
        whole = False
        end = _digits(text, end + 1)
    if text[end : end + 1] in ("e", "E"):
        first = end + 1
        if text[first : first + 1] in ("+", "-"):
            first += 1
        last = _digits(text, first)
        if last > first:
            whole = False
            end = last
    if text[end - 1] == "_":
        raise ParseError("an underscore must be between digits", end - 1)
    digits = text[start:end].replace("_", "")
    return (int(digits) if whole else float(digits)), end


def _digits(text, index):
    while index < len(text) and (text[index].isdigit() or text[index] == "_"):
        index += 1
    return index
