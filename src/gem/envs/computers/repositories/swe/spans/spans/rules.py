# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Rules of repeated events."""

from spans.dates import WEEKDAYS, add_months, date_of, day_number, days_in_month, weekday

UNITS = ("daily", "weekly", "monthly", "yearly")


class Rule:
    """Dates that repeat.

    unit: "daily", "weekly", "monthly" or "yearly". every: each how many units. days: names of weekdays; for weekly
    rules the days of each week, for monthly ones "2mon" is the second Monday and "-1fri" the last Friday. count: the
    number of dates at most. last: the last possible date. without: dates that are left out; they count for count.

    A monthly or yearly rule without days takes the day of the first date; months without this day are left out.
    """

    def __init__(self, unit, every=1, days=(), count=None, last=None, without=()):
        if unit not in UNITS:
            raise ValueError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        if days and unit not in ("weekly", "monthly"):
            raise ValueError(f"a {unit} rule has no days")
        self.unit = unit
        self.every = every
        self.days = [_day(name, unit) for name in days]
        self.count = count
        self.last = last
        self.without = set(without)

    def dates(self, first, until):
        """Return the dates from first on, before until. The first date is one of them only if the rule has it."""
        end = day_number(until)
        if self.last is not None:
            end = min(end, day_number(self.last) + 1)
        found = []
        taken = 0
        for number in self._numbers(first):
            if number >= end or (self.count is not None and taken >= self.count):
                break
            taken += 1
            date = date_of(number)
            if date not in self.without:
                found.append(date)
        return found

    def _numbers(self, first):
        """Yield the numbers of the days, without an end."""
        start = day_number(first)
        step = 0
        while True:
            for number in sorted(set(self._period(first, step * self.every))):
                if number >= start:
                    yield number
            step += 1

    def _period(self, first, offset):
        """Return the numbers of the days in the unit that comes offset units after the first one."""
        start = day_number(first)
        if self.unit == "daily":
            return [start + offset]
        if self.unit == "weekly":
            monday = start - weekday(first) + 7 * offset
            return [monday + day for _, day in self.days or [(None, weekday(first))]]
        months = offset * 12 if self.unit == "yearly" else offset
        year, month, _ = add_months((first[0], first[1], 1), months)
        size = days_in_month(year, month)
        if not self.days:
            return [day_number((year, month, first[2]))] if first[2] <= size else []
        found = []
        for place, day in self.days:
            fitting = [number for number in range(1, size + 1) if weekday((year, month, number)) == day]
            if place is None:
                found += fitting
            elif abs(place) <= len(fitting):
                found.append(fitting[place - 1 if place > 0 else place])
        return [day_number((year, month, number)) for number in found]


def _day(name, unit):
    """Return (place or None, number of the weekday)."""
    place, day = name[:-3], name[-3:]
    if day not in WEEKDAYS or (place and unit != "monthly"):
        raise ValueError(f"unknown day {name!r}")
    if not place:
        return None, WEEKDAYS.index(day)
    number = int(place)
    if not 1 <= abs(number) <= 5:
        raise ValueError(f"the place in a month must be from 1 to 5 or -1 to -5, got {name!r}")
    return number, WEEKDAYS.index(day)
