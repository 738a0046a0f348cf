# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
from itertools import product

from spans import (
    Calendar,
    Rule,
    Spans,
    add_days,
    add_months,
    date_of,
    day_number,
    days_in_month,
    free,
    is_leap,
    iso_week,
    meeting,
    weekday,
)

A = Spans([(0, 10), (20, 30), (40, 50)])
B = Spans([(5, 20), (22, 25), (30, 60)])


def samples():
    """All sets of up to three intervals between 0 and 7, by their numbers."""
    sets = []
    for bits in product((0, 1), repeat=7):
        sets.append(Spans([(n, n + 1) for n in range(7) if bits[n]]))
    return sets


def numbers(spans):
    return {n for start, end in spans for n in range(start, end)}


def results(function, *arguments):
    found = []
    for argument in arguments:
        try:
            found.append(function(*argument))
        except ValueError:
            found.append("ValueError")
    return found


def probe_joined():
    return [Spans([(5, 7), (1, 3), (2, 4)]), Spans([(1, 2), (2, 3)]), Spans([(1, 9), (2, 3), (4, 10)]), Spans([(3, 3)])]


def probe_contained():
    return [Spans([(1, 9), (2, 3)]), Spans([(1, 9), (2, 3), (8, 9)]), Spans([(1, 2), (1, 5), (1, 3)])]


def probe_wrong_interval():
    return results(Spans, ([(1, 2), (5, 4)],), ([(5, 5)],), ([(0, -1)],))


def probe_empty():
    empty = Spans()
    return [empty, len(empty), empty.total(), 0 in empty, empty | A == A, empty & A, A - empty == A, empty.longest()]


def probe_contains():
    return [[n in A for n in (-1, 0, 5, 9, 10, 15, 20, 30, 40, 49, 50)], [n in B for n in range(4, 62, 2)]]


def probe_totals():
    return [A.total(), B.total(), len(B), (A | B).total(), A.gaps(), B.gaps(), Spans([(1, 2)]).gaps()]


def probe_union():
    return [A | B, B | A, A | Spans([(10, 20)])]


def probe_intersection():
    return [A & B, B & A, A & Spans([(10, 20)]), A & Spans([(9, 21), (29, 41)])]


def probe_difference():
    return [A - B, B - A, A - A, A - Spans([(2, 3), (5, 6), (8, 45)]), Spans([(0, 9)]) - Spans([(0, 3), (6, 9)])]


def probe_symmetric_difference():
    return [A ^ B, A ^ A, A ^ Spans()]


def probe_operations_on_small_sets():
    sets = samples()[::3]
    wrong = 0
    for left, right in product(sets, sets):
        mine, others = numbers(left), numbers(right)
        wrong += numbers(left | right) != mine | others
        wrong += numbers(left & right) != mine & others
        wrong += numbers(left - right) != mine - others
        wrong += numbers(left ^ right) != mine ^ others
    return wrong


def probe_membership_of_small_sets():
    return sum((n in spans) != (n in numbers(spans)) for spans in samples() for n in range(-1, 9))


def probe_shifted():
    return [A.shifted(5), A.shifted(-5), A.shifted(0) == A]


def probe_widened():
    return [A.widened(2, 3), A.widened(5, 5), A.widened(-2, -3), A.widened(-5, -5), A.widened(0, 12), A.widened(-9, 0), A.widened(-6, -5), A.widened(3, -14)]


def probe_longest():
    return [A.longest(), B.longest(), Spans([(0, 1), (5, 9), (10, 14)]).longest()]


def probe_pieces():
    return [A.pieces(4), A.pieces(10), A.pieces(11), Spans([(1, 8)]).pieces(3), Spans([(1, 2.5)]).pieces(0.5)]


def probe_pieces_size():
    return results(A.pieces, (0,), (-1,))


def probe_set_equality():
    return [Spans([(1, 3)]) == Spans([(1, 2), (2, 3)]), A == B, A == 5, len({A, B, Spans(A)}), list(Spans([(1, 2)]))]


def probe_leap_years():
    return [year for year in (1600, 1700, 1900, 1904, 2000, 2023, 2024, 2100, 2400) if is_leap(year)]


def probe_month_lengths():
    lengths = [days_in_month(2023, month) for month in range(1, 13)]
    return [lengths, days_in_month(2024, 2), days_in_month(1900, 2), *results(days_in_month, (2023, 0), (2023, 13))]


def probe_day_numbers():
    return [
        day_number(date) for date in ((1, 1, 1), (1, 12, 31), (4, 12, 31), (1900, 3, 1), (2000, 12, 31), (2024, 2, 29))
    ]


def probe_no_dates():
    wrong = [(2023, 2, 29), (2024, 2, 30), (2023, 4, 31), (2023, 1, 0), (0, 1, 1), (2023, 13, 1), (2023, 12, 32)]
    return results(day_number, *([date] for date in wrong))


def probe_dates_of_numbers():
    return results(date_of, (1,), (365,), (366,), (1461,), (146097,), (146098,), (738000,), (0,), (-5,))


def probe_dates_and_back():
    return [number for number in range(1, 800000, 997) if day_number(date_of(number)) != number]


def probe_weekdays():
    return [weekday(date) for date in ((2024, 1, 1), (2024, 2, 29), (1999, 12, 31), (1, 1, 1), (2023, 12, 31))]


def probe_days_added():
    return [
        add_days((2023, 12, 31), 1),
        add_days((2024, 3, 1), -1),
        add_days((2024, 1, 1), 366),
        add_days((2024, 5, 5), 0),
    ]


def probe_months_added():
    return [
        add_months((2024, 1, 31), 1),
        add_months((2024, 11, 30), 3),
        add_months((2024, 1, 15), -1),
        add_months((2024, 12, 1), 12),
        add_months((2024, 3, 31), -13),
        add_months((2024, 5, 5), 0),
        add_months((2024, 12, 5), 1),
    ]


def probe_months_far_back():
    return [add_months((2024, 3, 31), count) for count in (-3, -14, -15, -27, -40, -120)]


def probe_weeks_of_years():
    dates = ((2021, 1, 3), (2021, 1, 4), (2020, 12, 31), (2018, 12, 31), (2024, 12, 30), (2023, 1, 1), (2024, 7, 4))
    return [iso_week(date) for date in dates]


def probe_daily():
    return [Rule("daily").dates((2024, 2, 27), (2024, 3, 2)), Rule("daily", every=3).dates((2024, 1, 1), (2024, 1, 10))]


def probe_daily_limits():
    rule = Rule("daily", count=3, without=[(2024, 1, 2)])
    return [rule.dates((2024, 1, 1), (2024, 2, 1)), Rule("daily", last=(2024, 1, 3)).dates((2024, 1, 1), (2024, 2, 1))]


def probe_rule_ends():
    return [Rule("daily").dates((2024, 1, 1), (2024, 1, 1)), Rule("daily", count=0).dates((2024, 1, 1), (2024, 1, 9))]


def probe_weekly():
    return [
        Rule("weekly").dates((2024, 1, 3), (2024, 1, 31)),
        Rule("weekly", every=2).dates((2024, 1, 3), (2024, 2, 1)),
    ]


def probe_weekly_days():
    rule = Rule("weekly", every=2, days=["fri", "mon", "wed"])
    return [
        rule.dates((2024, 1, 3), (2024, 1, 31)),
        Rule("weekly", days=["sun"], count=2).dates((2024, 1, 1), (2025, 1, 1)),
    ]


def probe_monthly():
    return [
        Rule("monthly").dates((2024, 1, 31), (2024, 8, 1)),
        Rule("monthly", every=5).dates((2024, 1, 2), (2025, 3, 1)),
        Rule("monthly", count=2).dates((2023, 12, 30), (2025, 1, 1)),
    ]


def probe_monthly_days():
    return [
        Rule("monthly", days=["2tue"]).dates((2024, 1, 1), (2024, 4, 1)),
        Rule("monthly", days=["-1fri"]).dates((2024, 1, 27), (2024, 5, 1)),
        Rule("monthly", days=["5wed"]).dates((2024, 1, 1), (2024, 8, 1)),
        Rule("monthly", days=["1mon", "-5mon"]).dates((2024, 1, 1), (2024, 5, 1)),
    ]


def probe_monthly_all_days():
    return Rule("monthly", every=2, days=["sat", "1sun"]).dates((2024, 1, 10), (2024, 3, 20))


def probe_yearly():
    return [
        Rule("yearly").dates((2024, 2, 29), (2033, 1, 1)),
        Rule("yearly", every=3).dates((2023, 5, 1), (2030, 1, 1)),
    ]


def probe_wrong_rules():
    wrong = [("hourly",), ("daily", 0), ("daily", 1, ["mon"]), ("weekly", 1, ["2mon"]), ("weekly", 1, ["day"])]
    wrong += [("monthly", 1, ["6mon"]), ("monthly", 1, ["0mon"]), ("yearly", 1, ["mon"]), ("monthly", 1, ["xmon"])]
    return results(lambda *arguments: Rule(*arguments).every, *wrong, ("monthly", 1, ["-5sun"]))


def probe_free():
    busy = Spans([(540, 600), (615, 660), (700, 800)])
    return [free(busy, (480, 720)), free(busy, (480, 720), 40), free(busy, (550, 590)), free(busy, (480, 900), 100)]


def probe_free_with_pause():
    busy = Spans([(540, 600), (615, 660)])
    return [free(busy, (480, 720), 0, 10), free(busy, (480, 720), 60, 5), free(busy, (480, 720), 50, 10)]


def probe_meetings():
    people = [Spans([(480, 545), (600, 660)]), Spans([(560, 590)]), Spans()]
    return [meeting(people, (480, 720), length) for length in (10, 15, 20, 45, 60, 75)]


def probe_meeting_steps():
    people = [Spans([(0, 7)])]
    return [meeting(people, (0, 30), 10, step) for step in (1, 5, 7, 20, 30)]


def probe_meeting_alone():
    return [
        meeting([], (5, 40), 10),
        meeting([], (0, 30), 30, 30),
        meeting([], (1, 30), 29, 1),
        meeting([], (1, 30), 30, 1),
    ]


def probe_working_days():
    calendar = Calendar(holidays=[(2024, 1, 1), (2024, 1, 6)])
    return [calendar.is_working_day((2024, 1, day)) for day in range(1, 9)]


def probe_next_working_day():
    calendar = Calendar(holidays=[(2024, 1, 1), (2024, 4, 1)])
    return [calendar.next(date) for date in ((2023, 12, 30), (2024, 1, 1), (2024, 1, 3), (2024, 3, 30))]


def probe_working_days_added():
    calendar = Calendar(holidays=[(2024, 1, 1)])
    return [
        calendar.add(date, n)
        for date, n in (((2023, 12, 29), 1), ((2024, 1, 2), -1), ((2024, 1, 6), 0), ((2024, 1, 6), 5))
    ]


def probe_many_working_days_added():
    return [
        Calendar().add((2024, 1, 31), 20),
        Calendar(["fri"]).add((2024, 1, 31), -12),
        Calendar([]).add((2024, 1, 31), 3),
    ]


def probe_working_days_between():
    calendar = Calendar(holidays=[(2024, 1, 1), (2024, 1, 7)])
    pairs = (
        ((2024, 1, 1), (2024, 1, 31)),
        ((2024, 1, 5), (2024, 1, 5)),
        ((2024, 1, 6), (2024, 1, 7)),
        ((2024, 2, 1), (2024, 1, 1)),
    )
    return [calendar.between(first, last) for first, last in pairs]


def probe_month_ends():
    calendar = Calendar(holidays=[(2024, 5, 31), (2024, 2, 29)])
    return [calendar.month_end(2024, month) for month in (1, 2, 3, 5, 6, 12)]


def probe_month_without_working_day():
    return Calendar(holidays=[(2024, 2, day) for day in range(1, 30)]).month_end(2024, 2)


def probe_weeks():
    calendar = Calendar(holidays=[(2024, 1, 1)])
    return [calendar.weeks((2024, 1, 1), (2024, 1, 16)), calendar.weeks((2024, 1, 5), (2024, 1, 6))]


def probe_weeks_of_other_weekends():
    return [
        Calendar(["sun"]).weeks((2023, 12, 31), (2024, 1, 7)),
        Calendar(["fri", "sat"]).weeks((2024, 2, 29), (2024, 2, 29)),
    ]


def probe_week_without_working_day():
    return results(Calendar, (["mon", "tue", "wed", "thu", "fri", "sat", "sun"],))


def probe_contains_parts_of_units():
    return [[n in A for n in (-0.5, 0.5, 9.5, 9.999, 10.0, 19.75, 29.25, 30.5, 49.5)], 4.5 in B, 19.5 in B, 59.5 in B]
