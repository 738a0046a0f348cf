# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Free times and working days."""

from spans.dates import WEEKDAYS, date_of, day_number, weekday
from spans.sets import Spans


def free(busy, window, shortest=0, pause=0):
    """Return the free times in a window (start, end): at least this long, with a pause around busy times."""
    open_times = Spans([window]) - busy.widened(pause, pause)
    return Spans([(start, end) for start, end in open_times if end - start >= shortest])


def meeting(people, window, length, step=15):
    """Return the first time in a window at which all are free, a multiple of step, as (start, end), or None.

    people: busy times of each as Spans.
    """
    busy = Spans()
    for times in people:
        busy = busy | times
    for start, end in free(busy, window, length):
        first = -(-start // step) * step
        if first + length <= end:
            return first, first + length
    return None


class Calendar:
    """Working days. weekend: names of weekdays; holidays: dates."""

    def __init__(self, weekend=("sat", "sun"), holidays=()):
        self.weekend = {WEEKDAYS.index(name) for name in weekend}
        if len(self.weekend) == 7:
            raise ValueError("a week needs a working day")
        self.holidays = {day_number(date) for date in holidays}

    def is_working_day(self, date):
        return self._works(day_number(date))

    def _works(self, number):
        return (number - 1) % 7 not in self.weekend and number not in self.holidays

    def next(self, date):
        """Return the date itself if it is a working day, else the next one."""
        number = day_number(date)
        while not self._works(number):
            number += 1
        return date_of(number)

    def add(self, date, count):
        """Return the date that many working days later, or earlier below 0. The date itself does not count."""
        number = day_number(date)
        step = 1 if count > 0 else -1
        for _ in range(abs(count)):
            number += step
            while not self._works(number):
                number += step
        return date_of(number)

    def between(self, first, last):
        """Return the number of working days from first to last, both included; 0 if last is before first."""
        return sum(self._works(number) for number in range(day_number(first), day_number(last) + 1))

    def month_end(self, year, month):
        """Return the last working day of a month, or None."""
        number = day_number((year, month, 1))
        found = None
        while date_of(number)[1] == month:
            if self._works(number):
                found = date_of(number)
            number += 1
        return found

    def weeks(self, first, last):
        """Return (Monday, number of working days) of each week that has one of the days from first to last."""
        found = []
        start = day_number(first)
        end = day_number(last)
        monday = start - weekday(first)
        while monday <= end:
            days = range(max(monday, start), min(monday + 6, end) + 1)
            found.append((date_of(monday), sum(self._works(day) for day in days)))
            monday += 7
        return found
