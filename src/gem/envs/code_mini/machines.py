"""Tasks in which something goes on by rules and is to be followed."""

from __future__ import annotations

import random

from gem.envs.code_mini.task import Function, Script, Task, integers, lines, word


def garden_robot(text: str) -> str:
    """A robot stands in the upper left corner of a garden and looks to the east. F moves it one field forward, L and R
    turn it to the left and to the right where it stands. It does not move where a tree (T) or the border of the garden
    is in its way.

    The first line holds the height and the width of the garden (1 to 50 each), then come the rows: T is a tree, .
    a free field. The upper left corner is free. The last line holds 1 to 1000 commands.

    Print the row and the column where the robot ends, counted from 0, the direction in which it looks (N, E, S or W),
    and how many of the moves were in vain.
    """
    height, width, *rows, commands = text.split()
    row, column, heading, vain = 0, 0, 1, 0
    for command in commands:
        if command != "F":
            heading = (heading + (1 if command == "R" else -1)) % 4
            continue
        i, j = row + (-1, 0, 1, 0)[heading], column + (0, 1, 0, -1)[heading]
        if 0 <= i < int(height) and 0 <= j < int(width) and rows[i][j] == ".":
            row, column = i, j
        else:
            vain += 1
    return f"{row} {column} {'NESW'[heading]} {vain}"


def draw_garden(rng: random.Random, size: int) -> str:
    height, width = 3 + size // 15, 3 + size // 12
    rows = [word(rng, width, "....T") for _ in range(height)]
    rows[0] = "." + rows[0][1:]
    return lines((height, width), *rows, word(rng, 2 * size, "FFFFRL"))


def counting_rhyme(text: str) -> str:
    """Children stand in a circle and count out. The count begins at the first child and goes round; the child at which
    it reaches the number leaves the circle, and the next count begins at the child after that one. The number itself
    changes: it is as large as the name of the child that left last has letters. For the first count it is given.

    The first line holds the first number (1 to 100), the second the names of the children (1 to 500), words of small
    letters, in the order of the circle.

    Print the names in the order in which the children leave, the last one left included, with blanks between them.
    """
    number, *circle = text.split()
    steps, place, left = int(number), 0, []
    while circle:
        place = (place + steps - 1) % len(circle)
        left.append(circle.pop(place))
        steps = len(left[-1])
    return " ".join(left)


def till_queues(tills: int, customers: list[list[int]]) -> list[int]:
    """Customers come to the tills of a shop. Each goes to the till with the fewest people, among whom the one being
    served counts; of several such tills to the one with the lowest number. Whoever is served is gone at the very second
    at which the time is over, before anybody who comes at that second looks at the queues.

    till_queues(tills, customers) takes the number of tills (1 to 20) and up to 1000 lists [second, time]: when a
    customer comes, and how many seconds (1 or more) it takes to serve this one. They come in this order, and their
    seconds never decrease. It returns the second at which each of them is gone.
    """
    queues: list[list[int]] = [[] for _ in range(tills)]
    gone = []
    for second, time in customers:
        queues = [[end for end in queue if end > second] for queue in queues]
        queue = min(queues, key=len)
        queue.append(max(second, queue[-1] if queue else 0) + time)
        gone.append(queue[-1])
    return gone


def draw_customers(rng: random.Random, size: int) -> list[object]:
    tills = rng.randint(1, 4)
    seconds = sorted(integers(rng, size, 0, 4 * size))
    return [tills, [[second, rng.randint(1, 9 * tills)] for second in seconds]]


def stack_machine(text: str) -> str:
    """A machine has a stack of integers, which is empty at first, and runs a program whose lines are numbered from 1.
    PUSH n puts n on top. ADD, SUB and MUL take two numbers off and put back the one below plus, minus or times the one
    on top. DUP puts the top number there once more, SWAP lets the two on top change places. PRINT takes the top number
    off and prints it. JUMP n takes the top number off, and goes on in line n where it was not 0. After its last line
    the program ends.

    The input is the program, 1 to 500 lines.

    Print what the machine prints, each number on a line. Where a line needs more numbers than there are, print
    "empty in line" and the number of the line as the last line, and stop. Where the program has not ended after 2000
    lines run, print "too long" as the last line, and stop.
    """
    program = [line.split() for line in text.strip().split("\n")]
    needs = {"PUSH": 0, "DUP": 1, "PRINT": 1, "JUMP": 1, "ADD": 2, "SUB": 2, "MUL": 2, "SWAP": 2}
    stack: list[int] = []
    printed: list[str] = []
    at = run = 0
    while at < len(program):
        name, *operand = program[at]
        if run == 2000:
            return "\n".join([*printed, "too long"])
        if len(stack) < needs[name]:
            return "\n".join([*printed, f"empty in line {at + 1}"])
        run, at = run + 1, at + 1
        if name == "PUSH":
            stack.append(int(operand[0]))
        elif name == "DUP":
            stack.append(stack[-1])
        elif name == "PRINT":
            printed.append(str(stack.pop()))
        elif name == "JUMP":
            at = int(operand[0]) - 1 if stack.pop() else at
        else:
            top, below = stack.pop(), stack.pop()
            results = {"ADD": [below + top], "SUB": [below - top], "MUL": [below * top], "SWAP": [top, below]}
            stack += results[name]
    return "\n".join(printed)


def draw_machine(rng: random.Random, size: int) -> str:
    program = ["PUSH 6"] * rng.randint(1, 3)
    for _ in range(size):
        number = rng.randint(-9, 9)
        program.append(rng.choice([f"PUSH {number}", f"PUSH {number}", "DUP", "DUP", "ADD", "SUB", "SWAP", "PRINT"]))
    countdown = [f"PUSH {rng.randint(2, 9)}", "DUP", "PRINT", "PUSH -1", "ADD", "DUP"]
    return lines(*countdown, "JUMP 2", *program, "DUP", "MUL", "PRINT")


# Runs exactly the 2000 lines that a stack machine runs.
COUNTDOWN = lines("PUSH 499", "PUSH -1", "ADD", "DUP", "JUMP 2", "PUSH 5", "PUSH 8", "PRINT")


def shelf_cache(capacity: int, requests: list[str]) -> list[str]:
    """A librarian keeps books on a small shelf at hand. Whenever a book is asked for that is not there, it is brought
    from the cellar and put on the shelf; where the shelf is full, the book on it that has not been asked for longest
    goes back first.

    shelf_cache(capacity, requests) takes the number of books for which the shelf has room (1 to 50), and the titles
    asked for, up to 5000 of them. It returns the titles that are on the shelf at the end, the one asked for last first.
    Before them stands the number of times the librarian went to the cellar, as a text.
    """
    shelf: list[str] = []
    trips = 0
    for title in requests:
        if title in shelf:
            shelf.remove(title)
        else:
            trips += 1
            shelf = shelf[: capacity - 1]
        shelf.insert(0, title)
    return [str(trips), *shelf]


def line_editor(text: str) -> str:
    """A line is typed, key by key. A letter appears at the cursor, which moves behind it. < moves the cursor to the
    left by one letter and > to the right, where there is a letter. - deletes the letter before the cursor, where
    there is one. ^ moves the cursor to the front of the line and $ to its end. ! undoes the last key that put in or
    deleted a letter and has not been undone yet, where there is one: the line is then as it was before that key, and
    the cursor is where it was then.

    One line holds the keys: 1 to 1000 of them, with small letters besides those named.

    Print the line, with a | where the cursor is.
    """
    line, cursor = "", 0
    earlier: list[tuple[str, int]] = []
    for key in text.strip():
        if key == "<":
            cursor = max(0, cursor - 1)
        elif key == ">":
            cursor = min(len(line), cursor + 1)
        elif key in "^$":
            cursor = 0 if key == "^" else len(line)
        elif key == "!":
            line, cursor = earlier.pop() if earlier else (line, cursor)
        elif key != "-":
            earlier.append((line, cursor))
            line, cursor = line[:cursor] + key + line[cursor:], cursor + 1
        elif cursor:
            earlier.append((line, cursor))
            line, cursor = line[: cursor - 1] + line[cursor:], cursor - 1
    return f"{line[:cursor]}|{line[cursor:]}"


def tennis_score(text: str) -> str:
    """Follow a tennis set. A game goes to the player who has won at least four points in it and two more than the
    other; the set to the player who has won at least six games and two more than the other. Points won after the end of
    the set do not count.

    One line holds the winners of the points, A or B, 1 to 2000 of them, in their order.

    Print the games of A and of B, with a colon between them. Where the set is over, a blank and the name of the winner
    follow. Else a blank and the score of the game at hand: the points of A and of B as 0, 15, 30 or 40, with a colon
    between them; but "deuce" where both have won three or more points and equally many, and "advantage A" or
    "advantage B" where both have won three or more and one has one more than the other.
    """
    games, points = {"A": 0, "B": 0}, {"A": 0, "B": 0}
    for winner in text.strip():
        loser = "B" if winner == "A" else "A"
        points[winner] += 1
        if points[winner] >= 4 and points[winner] >= points[loser] + 2:
            games[winner] += 1
            points = {"A": 0, "B": 0}
            if games[winner] >= 6 and games[winner] >= games[loser] + 2:
                return f"{games['A']}:{games['B']} {winner}"
    score = f"{games['A']}:{games['B']} "
    if min(points.values()) < 3:
        return score + ":".join(str((0, 15, 30, 40)[points[name]]) for name in "AB")
    if points["A"] == points["B"]:
        return score + "deuce"
    return score + f"advantage {max(points, key=lambda name: points[name])}"


def standing_orders(text: str) -> str:
    """A bank carries out transfers in their order. One for which there is not enough money on the account waits. After
    every transfer that is carried out, the bank looks at those that wait, from the oldest on, and carries out the first
    for which there is enough money now; then it looks again from the oldest on, until none can be carried out.

    The first line holds the number of accounts n (1 to 50) and the number of transfers m (0 to 300). The second holds
    the n balances, integers of at least 0. Each of the m lines that follow holds a transfer: the account from which the
    money goes, the one to which it goes, both counted from 1, and the amount, a positive integer.

    Print the balances at the end on one line, and on a second one how many transfers still wait.
    """
    (count, _), balances, *transfers = [[int(token) for token in line.split()] for line in text.strip().split("\n")]
    waiting: list[list[int]] = []
    for transfer in transfers:
        waiting.append(transfer)
        while True:
            ready = [order for order in waiting if balances[order[0] - 1] >= order[2]]
            if not ready:
                break
            giver, taker, amount = ready[0]
            waiting.remove(ready[0])
            balances[giver - 1] -= amount
            balances[taker - 1] += amount
    return f"{' '.join(map(str, balances[:count]))}\n{len(waiting)}"


def draw_transfers(rng: random.Random, size: int) -> str:
    count = 2 + size // 10
    transfers = [(*rng.sample(range(1, count + 1), 2), rng.randint(1, 60)) for _ in range(size)]
    return lines((count, size), integers(rng, count, 0, 50), *transfers)


TASKS: tuple[Task, ...] = (
    Script(
        garden_robot,
        draw_garden,
        ("2 3\n..T\n...\nFFRFLF\n", "1 2 E 1"),
        edges=["1 1\n.\nFLFL\n", "3 1\n.\n.\n.\nRFFFRR\n"],
        difficulty=2,
    ),
    Script(
        counting_rhyme,
        lambda rng, size: lines(rng.randint(1, 20), [word(rng, rng.randint(2, 6)) for _ in range(size)]),
        ("3\nann bob carla dee\n", "carla ann bob dee"),
        edges=["1\na\n", "100\nx yy zzz\n"],
        difficulty=2,
    ),
    Function(
        till_queues,
        draw_customers,
        ([2, [[0, 5], [1, 9], [2, 2], [7, 1]]], [5, 10, 7, 8]),
        edges=[[1, []], [1, [[0, 3], [3, 1], [3, 1]]], [3, [[4, 1], [4, 1], [4, 1], [4, 1]]]],
        difficulty=3,
    ),
    Script(
        stack_machine,
        draw_machine,
        ("PUSH 2\nDUP\nPRINT\nPUSH 1\nSUB\nDUP\nJUMP 2\nADD\n", "2\n1\nempty in line 8"),
        edges=[COUNTDOWN, f"{COUNTDOWN}PRINT\n", "PUSH 0\nJUMP 1\nSWAP\n", "PUSH 1\nPUSH 2\nSWAP\nPRINT\nPRINT\n"],
        difficulty=3,
    ),
    Function(
        shelf_cache,
        lambda rng, size: [2 + size // 12, [word(rng, 2, "abc" if size < 40 else "abcd") for _ in range(size)]],
        ([2, ["oz", "emma", "oz", "kim", "emma"]], ["4", "emma", "kim"]),
        edges=[[3, []], [1, ["a", "a", "b", "a"]], [5, ["a", "b", "a"]]],
        difficulty=2,
    ),
    Script(
        line_editor,
        lambda rng, size: lines(word(rng, 2 * size, "abcdefgh<<<>--^$!")),
        ("cat<<o-!h\n", "coh|at"),
        edges=["-\n", "!a\n", "ab!!!c\n", "ab^-x\n", "abc<->!d\n"],
        difficulty=3,
    ),
    Script(
        tennis_score,
        lambda rng, size: lines(word(rng, size, rng.choice(["AB", "AAB", "ABB", "AB"]))),
        ("AAAABBBAAA\n", "1:0 deuce"),
        edges=["A\n", "A" * 30 + "\n", "ABABABA\n", "ABABABBB\n", "AAAABBBB" * 5 + "AAAAAAAABB\n"],
        difficulty=3,
    ),
    Script(
        standing_orders,
        draw_transfers,
        ("3 3\n5 0 2\n2 3 4\n3 1 9\n1 2 4\n", "1 0 6\n1"),
        edges=["1 0\n7\n", "2 2\n0 9\n1 2 5\n2 1 6\n"],
        difficulty=3,
    ),
)
