"""Faults of spans, written by hand.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from gem.envs.computers.swe.repository import Defect, Edit

SETS, DATES, RULES, PLAN = "spans/sets.py", "spans/dates.py", "spans/rules.py", "spans/plan.py"
FAULTS = (
    Defect(
        "If a short meeting lies inside of a longer one, the rest of the longer one counts as free.",
        (
            Edit(
                SETS,
                "                self.pairs[-1] = (self.pairs[-1][0], max(end, self.pairs[-1][1]))\n",
                "                self.pairs[-1] = (self.pairs[-1][0], end)\n",
            ),
        ),
    ),
    Defect(
        "Two intervals of which one ends where the other starts are not joined, and two equal sets are unequal because "
        "of that. Intervals without any length are kept, too.",
        (
            Edit(
                SETS,
                "            if start == end:\n                continue\n"
                "            if self.pairs and start <= self.pairs[-1][1]:\n",
                "            if self.pairs and start < self.pairs[-1][1]:\n",
            ),
        ),
    ),
    Defect(
        "The end of an interval is taken as a member of the set: 10 is in the set of (0, 10).",
        (
            Edit(
                SETS,
                "            if self.pairs[middle][1] <= number:\n",
                "            if self.pairs[middle][1] < number:\n",
            ),
        ),
    ),
    Defect(
        "The times that two people have in common are incomplete if one of them has many short intervals inside of a "
        "long interval of the other: only the first of them is found.",
        (
            Edit(
                SETS,
                "            if self.pairs[mine][1] < other.pairs[others][1]:\n                mine += 1\n"
                "            else:\n                others += 1\n",
                "            if self.pairs[mine][1] <= other.pairs[others][1]:\n                mine += 1\n"
                "            else:\n                mine += 1\n                others += 1\n",
            ),
        ),
    ),
    Defect(
        "Taking several intervals away from one long interval only takes the first one away.",
        (
            Edit(
                SETS,
                "                start = max(start, other_end)\n"
                "                if start >= end:\n                    break\n",
                "                start = max(start, other_end)\n                break\n",
            ),
        ),
    ),
    Defect(
        "Making intervals shorter turns short ones around, and I get an error that an interval ends before it starts. "
        "They should vanish.",
        (
            Edit(
                SETS,
                "        return Spans([pair for pair in changed if pair[0] < pair[1]])\n",
                "        return Spans(changed)\n",
            ),
        ),
    ),
    Defect(
        "The last piece is missing if an interval has room for exactly a whole number of pieces.",
        (Edit(SETS, "            while start + size <= end:\n", "            while end - start > size:\n"),),
    ),
    Defect(
        "The year 1900 has a 29th of February. The weekdays before March 1900 are wrong by one as well, and so are "
        "those of other centuries.",
        (
            Edit(
                DATES,
                "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
                "    return year % 4 == 0\n",
            ),
            Edit(
                DATES,
                "    number = before * 365 + before // 4 - before // 100 + before // 400\n",
                "    number = before * 365 + before // 4\n",
            ),
        ),
    ),
    Defect(
        "Going some months back over the new year gives dates in the wrong year: one month before January is December "
        "of the same year.",
        (
            Edit(
                DATES,
                "    months = year * 12 + month - 1 + count\n    year, month = months // 12, months % 12 + 1\n",
                "    months = month - 1 + count\n    year, month = year + int(months / 12), months % 12 + 1\n",
            ),
        ),
    ),
    Defect(
        "Adding a month to the 31st raises an error if the next month is shorter. It should be its last day.",
        (
            Edit(
                DATES,
                "    return year, month, min(day, days_in_month(year, month))\n",
                "    return date_of(day_number((year, month, day)))\n",
            ),
        ),
    ),
    Defect(
        "Weeks at the turn of the year belong to the wrong year: December 31, 2018 is in the first week of 2019, not "
        "in week 53 of 2018.",
        (
            Edit(
                DATES,
                "    thursday = day_number(date) - weekday(date) + 3\n    year = date_of(thursday)[0]\n",
                "    thursday = day_number(date) - weekday(date) + 3\n    year = date[0]\n",
            ),
        ),
    ),
    Defect(
        "An event every second week on Monday and Friday drifts if the first date is in the middle of the week: the "
        "weeks are counted from the first date instead of from its Monday, and dates are in the wrong weeks or out of "
        "order.",
        (
            Edit(
                RULES,
                "            monday = start - weekday(first) + 7 * offset\n"
                "            return [monday + day for _, day in self.days or [(None, weekday(first))]]\n",
                "            begin = start + 7 * offset\n"
                "            return [begin + (day - weekday(first)) % 7 for _, day in "
                "self.days or [(None, weekday(first))]]\n",
            ),
        ),
    ),
    Defect(
        "A monthly event on the 31st moves to the last day of shorter months. Those months should be left out, as the "
        "documentation says.",
        (
            Edit(
                RULES,
                "            return [day_number((year, month, first[2]))] if first[2] <= size else []\n",
                "            return [day_number((year, month, min(first[2], size)))]\n",
            ),
        ),
    ),
    Defect(
        '"-1fri" gives the Friday before the last one of the month, and a fifth weekday that a month does not have '
        "raises an IndexError.",
        (
            Edit(
                RULES,
                "            elif abs(place) <= len(fitting):\n"
                "                found.append(fitting[place - 1 if place > 0 else place])\n",
                "            else:\n                found.append(fitting[place - 1])\n",
            ),
        ),
    ),
    Defect(
        "Dates that are left out do not count for the number of dates any more: an event with three dates, of which "
        "one is cancelled, gets a fourth one.",
        (
            Edit(
                RULES,
                "            taken += 1\n            date = date_of(number)\n            if date not in self.without:\n"
                "                found.append(date)\n",
                "            date = date_of(number)\n            if date not in self.without:\n"
                "                taken += 1\n                found.append(date)\n",
            ),
        ),
    ),
    Defect(
        "The last possible date of a rule is never used. If it is the third of January, the event ends on the second.",
        (
            Edit(
                RULES,
                "            end = min(end, day_number(self.last) + 1)\n",
                "            end = min(end, day_number(self.last))\n",
            ),
        ),
    ),
    Defect(
        "Between two busy times the pause is only kept after the first one, not before the second one.",
        (Edit(PLAN, "Spans([window]) - busy.widened(pause, pause)", "Spans([window]) - busy.widened(0, pause)"),),
    ),
    Defect(
        "A meeting is placed over the start of the next busy time if its own start had to be moved to a "
        "full quarter of "
        "an hour.",
        (
            Edit(
                PLAN,
                "        first = -(-start // step) * step\n        if first + length <= end:\n"
                "            return first, first + length\n",
                "        if start + length <= end:\n            first = -(-start // step) * step\n"
                "            return first, first + length\n",
            ),
        ),
    ),
    Defect(
        "One working day before a Monday is the same Monday, and longer times back over a weekend are wrong as well.",
        (
            Edit(
                PLAN,
                "            number += step\n"
                "            while not self._works(number):\n                number += step\n",
                "            number += step\n            while not self._works(number):\n                number += 1\n",
            ),
        ),
    ),
    Defect(
        "The last week of a report also counts working days after the end of the period.",
        (
            Edit(
                PLAN,
                "            days = range(max(monday, start), min(monday + 6, end) + 1)\n",
                "            days = range(max(monday, start), monday + 7)\n",
            ),
        ),
    ),
)
