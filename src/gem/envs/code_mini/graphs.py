"""Tasks about what is connected with what."""

from __future__ import annotations

import heapq
import random
from collections import defaultdict, deque

from gem.envs.code_mini.task import Function, Script, Task, lines, word


def spreading_rumour(friends: list[list[int]], people: int) -> int:
    """Person 0 knows a rumour. Every evening all who know it tell it to all their friends.

    spreading_rumour(friends, people) takes pairs of people who are friends, and the number of people (1 to 2000), who
    are numbered from 0. It returns after how many evenings everybody knows the rumour, or -1 where some never will.
    """
    near = defaultdict(list)
    for one, other in friends:
        near[one].append(other)
        near[other].append(one)
    evenings = {0: 0}
    queue = deque([0])
    while queue:
        person = queue.popleft()
        for friend in near[person]:
            if friend not in evenings:
                evenings[friend] = evenings[person] + 1
                queue.append(friend)
    return max(evenings.values()) if len(evenings) == people else -1


def draw_friends(rng: random.Random, size: int) -> list[object]:
    pairs = [[rng.randrange(max(0, person - 5), person), person] for person in range(1, size)]
    pairs += [rng.sample(range(size), 2) for _ in range(size // 8)]
    if size in (5, 40):
        pairs = [pair for pair in pairs if pair[1] != size - 1 and pair[0] != size - 1]
    rng.shuffle(pairs)
    return [pairs, size]


def cheapest_journey(text: str) -> str:
    """Buses run between towns, each in one direction and for a price. Find the cheapest journey from one town to
    another.

    The first line holds the number of buses n (0 to 2000), the town of departure and that of arrival. Each of the n
    lines that follow holds the town where a bus starts, the town to which it goes, and the price, an integer from 0 to
    1000. Names of towns are words of small letters.

    Print the price of the journey, or "no way". To stay where one is costs 0.
    """
    first, *rest = text.strip().split("\n")
    _, departure, arrival = first.split()
    buses = defaultdict(list)
    for line in rest:
        start, end, fare = line.split()
        buses[start].append((int(fare), end))
    queue, done = [(0, departure)], set()
    while queue:
        paid, town = heapq.heappop(queue)
        if town == arrival:
            return str(paid)
        if town not in done:
            done.add(town)
            for price, end in buses[town]:
                heapq.heappush(queue, (paid + price, end))
    return "no way"


def draw_buses(rng: random.Random, size: int) -> str:
    towns = sorted({word(rng, 3, "abcd") for _ in range(3 + size // 3)})
    rng.shuffle(towns)
    buses = [(*rng.sample(towns, 2), rng.randint(0, 60)) for _ in range(2 * size)]
    return lines((len(buses), *rng.sample(towns, 2)), *buses)


def first_build_order(text: str) -> str:
    """Parts of a program are built one after the other, and some need others to be built before. Whenever several parts
    could be built next, the alphabetically first of them is.

    The first line holds the number of parts n (1 to 500) and the number of needs m (0 to 3000). The second line holds
    the names of the parts, words of small letters. Each of the m lines that follow holds two names: the first part
    needs the second one. A need may be listed twice.

    Print the names in the order in which the parts are built, with blanks between them, or "impossible".
    """
    rows = [line.split() for line in text.strip().split("\n")]
    missing: dict[str, set[str]] = {part: set() for part in rows[1]}
    users = defaultdict(set)
    for part, needed in rows[2:]:
        missing[part].add(needed)
        users[needed].add(part)
    ready = [part for part in missing if not missing[part]]
    heapq.heapify(ready)
    order = []
    while ready:
        built = heapq.heappop(ready)
        order.append(built)
        for part in users[built]:
            missing[part].remove(built)
            if not missing[part]:
                heapq.heappush(ready, part)
    return " ".join(order) if len(order) == len(missing) else "impossible"


def draw_parts(rng: random.Random, size: int) -> str:
    order = sorted({word(rng, 2) for _ in range(size)})
    rng.shuffle(order)
    pairs = [sorted(rng.sample(range(len(order)), 2), reverse=True) for _ in range(size)]
    if size in (8, 40):
        pairs.append([0, len(order) - 1])
        pairs.append([len(order) - 1, 0])
    parts = rng.sample(order, len(order))
    return lines((len(parts), len(pairs)), parts, *((order[later], order[sooner]) for later, sooner in pairs))


def two_tables(guests: int, quarrels: list[list[int]]) -> list[int]:
    """Guests, numbered from 0, are to be seated at two tables so that nobody sits at the same table as somebody they
    have quarrelled with.

    two_tables(guests, quarrels) takes the number of guests (0 to 2000) and pairs of guests who have quarrelled. It
    returns a list with the table of each guest, 0 or 1: of all ways to seat them the one that comes first when such
    lists are compared number by number. Where there is no way it returns an empty list.
    """
    foes = defaultdict(list)
    for one, other in quarrels:
        foes[one].append(other)
        foes[other].append(one)
    tables = [-1] * guests
    for first in range(guests):
        if tables[first] >= 0:
            continue
        tables[first] = 0
        group = [first]
        for guest in group:
            for foe in foes[guest]:
                if tables[foe] < 0:
                    tables[foe] = 1 - tables[guest]
                    group.append(foe)
                elif tables[foe] == tables[guest]:
                    return []
    return tables


def draw_quarrels(rng: random.Random, size: int) -> list[object]:
    sides = [rng.randint(0, 1) for _ in range(size)]
    pairs = [rng.sample(range(size), 2) for _ in range(size)]
    if size not in (8, 80):
        pairs = [[one, other] for one, other in pairs if sides[one] != sides[other]]
    return [size, pairs]


def cable_plan(houses: list[list[int]]) -> int:
    """Houses are joined by cables so that current can flow from each to each, over others where need be. Cables run
    along streets: between the houses [a, b] and [c, d] one is |a - c| + |b - d| metres long.

    cable_plan(houses) takes the places of 1 to 300 houses as lists of two integers and returns the smallest number of
    metres of cable that does.
    """
    total, (x, y) = 0, houses[0]
    distance = {index: abs(x - a) + abs(y - b) for index, (a, b) in enumerate(houses) if index}
    while distance:
        nearest = min(distance, key=lambda index: distance[index])
        total += distance.pop(nearest)
        x, y = houses[nearest]
        for index in distance:
            distance[index] = min(distance[index], abs(x - houses[index][0]) + abs(y - houses[index][1]))
    return total


def kinship(text: str) -> str:
    """A family tells who is whose child; each child has one parent in the list. The distance of two members is the
    number of steps from child to parent or from parent to child that lead from one to the other.

    The first line holds the number of children n (1 to 1000) and the number of questions q (1 to 100). Each of the n
    lines that follow holds a child and the parent. Each of the q lines after them holds two members of the family.
    Names are words of small letters; nobody descends from themselves.

    Print for each question, on a line of its own, the distance and the name of the nearest common ancestor (who may be
    one of the two), or "strangers".
    """
    rows = [line.split() for line in text.strip().split("\n")]
    children = int(rows[0][0])
    parent = {child: elder for child, elder in rows[1 : children + 1]}
    answers = []
    for one, other in rows[children + 1 :]:
        steps, here = {one: 0}, one
        while here in parent:
            steps[parent[here]] = steps[here] + 1
            here = parent[here]
        climbed, here = 0, other
        while here not in steps and here in parent:
            climbed, here = climbed + 1, parent[here]
        answers.append(f"{climbed + steps[here]} {here}" if here in steps else "strangers")
    return "\n".join(answers)


def draw_family(rng: random.Random, size: int) -> str:
    members = sorted({word(rng, 4) for _ in range(size + 3)})
    rng.shuffle(members)
    first = 2 if size > 5 else 1  # members at the top
    pairs = [(members[i], members[rng.randint(max(0, i - 6), i - 1)]) for i in range(first, len(members))]
    rng.shuffle(pairs)
    known = sorted({name for pair in pairs for name in pair})
    questions = [(rng.choice(known), rng.choice(known)) for _ in range(3 + size // 10)]
    return lines((len(pairs), len(questions)), *pairs, *questions)


def growing_circles(people: int, meetings: list[list[int]]) -> list[int]:
    """People, numbered from 0, who know each other form a circle, and so do people who know each other over others. At
    first nobody knows anybody. Then pairs meet, one after the other.

    growing_circles(people, meetings) takes the number of people (1 to 2000) and the pairs that meet. It returns, for
    each meeting, the number of people in the largest circle after it.
    """
    circle = list(range(people))
    members = [[person] for person in range(people)]
    largest, answers = 1, []
    for one, other in meetings:
        small, large = sorted([circle[one], circle[other]], key=lambda name: len(members[name]))
        if small != large:
            for person in members[small]:
                circle[person] = large
            members[large] += members[small]
            largest = max(largest, len(members[large]))
        answers.append(largest)
    return answers


TASKS: tuple[Task, ...] = (
    Function(
        spreading_rumour,
        draw_friends,
        ([[[2, 0], [1, 2], [1, 3], [2, 4]], 5], 3),
        edges=[[[], 1], [[], 2], [[[0, 1], [1, 0]], 2]],
        difficulty=2,
    ),
    Script(
        cheapest_journey,
        draw_buses,
        ("4 ulm bonn\nulm mainz 30\nmainz bonn 15\nulm bonn 50\nbonn ulm 5\n", "45"),
        edges=["0 a b\n", "1 a a\na a 7\n", "1 a b\nb a 1\n"],
        difficulty=3,
    ),
    Script(
        first_build_order,
        draw_parts,
        ("4 3\nmain ui core log\nmain ui\nui core\nmain log\n", "core log ui main"),
        edges=["1 0\na\n", "2 2\na b\na b\nb a\n", "3 2\nc a b\na b\na b\n"],
        difficulty=3,
    ),
    Function(
        two_tables,
        draw_quarrels,
        ([5, [[1, 2], [3, 2], [4, 0]]], [0, 0, 1, 0, 1]),
        edges=[[0, []], [3, []], [3, [[0, 1], [1, 2], [2, 0]]]],
        difficulty=3,
    ),
    Function(
        cable_plan,
        lambda rng, size: [[[rng.randint(0, 99), rng.randint(0, 99)] for _ in range(size)]],
        ([[[0, 0], [5, 1], [1, 1], [5, 4]]], 9),
        edges=[[[[3, 3]]], [[[1, 1], [1, 1]]], [[[0, -4], [-3, 0]]]],
        difficulty=3,
    ),
    Script(
        kinship,
        draw_family,
        ("4 3\nada eve\nbob eve\ncid bob\nfay gus\nada cid\neve cid\nada fay\n", "3 eve\n2 eve\nstrangers"),
        edges=["1 2\na b\na a\nb a\n"],
        difficulty=2,
    ),
    Function(
        growing_circles,
        lambda rng, size: [size, [rng.sample(range(size), 2) for _ in range(size)]],
        ([5, [[0, 1], [2, 3], [1, 0], [3, 0]]], [2, 2, 2, 4]),
        edges=[[1, []], [2, [[0, 1]]]],
        difficulty=2,
    ),
)
