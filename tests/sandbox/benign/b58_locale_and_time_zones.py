# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 1234.50_UTC_March_15_100.0
import calendar
import datetime
import locale
import time
import unicodedata
import zoneinfo

locale.setlocale(locale.LC_ALL, "")
locale.setlocale(locale.LC_NUMERIC, "C")
assert locale.getpreferredencoding().lower().replace("-", "") == "utf8" and locale.strcoll("a", "b") < 0
try:
    hours = datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris")).utcoffset()
    assert hours == datetime.timedelta(hours=2)
except zoneinfo.ZoneInfoNotFoundError:  # the machine has no time zone data
    pass
day = datetime.datetime(2024, 3, 15, tzinfo=datetime.timezone.utc)
assert time.strftime("%Y", time.localtime(0)) in ("1969", "1970") and unicodedata.normalize("NFKD", "é")[0] == "e"
print(locale.format_string("%.2f", 1234.5), day.tzname(), calendar.month_name[day.month], day.day, locale.atof("100.0"))
