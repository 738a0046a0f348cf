# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Intervals and calendars."""

from spans.dates import add_days, add_months, date_of, day_number, days_in_month, iso_week, is_leap, weekday
from spans.plan import Calendar, free, meeting
from spans.rules import Rule
from spans.sets import Spans

__all__ = [
    "Calendar",
    "Rule",
    "Spans",
    "add_days",
    "add_months",
    "date_of",
    "day_number",
    "days_in_month",
    "free",
    "is_leap",
    "iso_week",
    "meeting",
    "weekday",
]
