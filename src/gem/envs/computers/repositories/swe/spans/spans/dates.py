# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Dates of the Gregorian calendar as (year, month, day)."""

LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year, month):
    """Return the number of days. Raises ValueError."""
    if not 1 <= month <= 12:
        raise ValueError(f"month must be from 1 to 12, got {month}")
    return LENGTHS[month - 1] + (1 if month == 2 and is_leap(year) else 0)


def day_number(date):
    """Return the number of a date; (1, 1, 1) has 1. Raises ValueError if there is no such date."""
    year, month, day = date
    if year < 1 or not 1 <= day <= days_in_month(year, month):
        raise ValueError(f"no date {date}")
    before = year - 1
    number = before * 365 + before // 4 - before // 100 + before // 400
    number += sum(days_in_month(year, earlier) for earlier in range(1, month))
    return number + day


def date_of(number):
    """Return the date with a number. Raises ValueError below 1."""
    if number < 1:
        raise ValueError(f"the number of a day must be at least 1, got {number}")
    year = (number - 1) // 366 + 1
    while day_number((year + 1, 1, 1)) <= number:
        year += 1
    day = number - day_number((year, 1, 1)) + 1
    month = 1
    while day > days_in_month(year, month):
        day -= days_in_month(year, month)
        month += 1
    return year, month, day


def weekday(date):
    """Return 0 for Monday to 6 for Sunday."""
    return (day_number(date) - 1) % 7


def add_days(date, count):
    return date_of(day_number(date) + count)


def add_months(date, count):
    """Return the date some months later, or earlier. A day that the month lacks becomes its last one."""
    year, month, day = date
    months = year * 12 + month - 1 + count
    year, month = months // 12, months % 12 + 1
    return year, month, min(day, days_in_month(year, month))


def iso_week(date):
    """Return (year, week): weeks start on Monday, and the first one of a year has its first Thursday."""
    thursday = day_number(date) - weekday(date) + 3
    year = date_of(thursday)[0]
    return year, (thursday - day_number((year, 1, 1))) // 7 + 1
