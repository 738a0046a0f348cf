"""An example MCP server with tools for dates and times.

  python -m gem.tools.mcp.time_server                               over stdin and stdout
  python -m gem.tools.mcp.time_server --transport http --port 8000  at http://127.0.0.1:8000/mcp
  python -m gem.tools.mcp.time_server --transport sse --port 8000   at http://127.0.0.1:8000/sse

The server has no state, so that environments may share it. Requires the extra [mcp].
"""

from __future__ import annotations

import argparse
import calendar
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from functools import wraps
from typing import Any, TypedDict
from zoneinfo import ZoneInfo

from gem._internal.http_server import ServerLimits, bind_socket, make_server
from gem.errors import BadValue, require

LIMITS = ServerLimits(body_bytes=4 << 20)
INSTRUCTIONS = (
    "Times are written as ISO 8601, like 2025-03-23T12:30:00. Time zones are names like Asia/Shanghai, or UTC."
)
_LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_DIRECTIVES = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_LETTERS = re.compile("|".join(_DIRECTIVES))
UNITS = [("year", 31_536_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)]


class CurrentTime(TypedDict):
    utc: str
    local: str
    timezone: str


class ConvertedTime(TypedDict):
    source: str
    target: str
    difference_hours: float


class Week(TypedDict):
    week: int
    iso_week: int
    iso_year: int


def current_time(format: str = "YYYY-MM-DD HH:mm:ss", timezone: str | None = None) -> CurrentTime:
    """Get the current date and time in UTC and in a time zone, in a format of YYYY, MM, DD, HH, mm and ss, or of
    strftime.
    """
    now, zone = datetime.now(tz=_zone("UTC")), timezone or "UTC"
    pattern = _LETTERS.sub(lambda found: _DIRECTIVES[found[0]], format)
    return {"utc": now.strftime(pattern), "local": now.astimezone(_zone(zone)).strftime(pattern), "timezone": zone}


def relative_time(time: str) -> str:
    """Describe how far a time is from now, such as "3 days ago" or "in 2 hours"."""
    return say_distance(_moment(time) - datetime.now(tz=_zone("UTC")))


def days_in_month(date: str | None = None) -> int:
    """Get the number of days in the month of a date; default: the current month."""
    moment = _moment(date)
    return calendar.monthrange(moment.year, moment.month)[1]


def get_timestamp(time: str | None = None) -> int:
    """Get the Unix timestamp of a time in milliseconds; default: now. A time without an offset is in UTC."""
    return round(_moment(time).timestamp() * 1000)


def convert_time(sourceTimezone: str, targetTimezone: str, time: str) -> ConvertedTime:
    """Convert a time to another time zone."""
    source = _moment(time, sourceTimezone).astimezone(_zone(sourceTimezone))
    target = source.astimezone(_zone(targetTimezone))
    difference = (target.utcoffset() or timedelta()) - (source.utcoffset() or timedelta())
    return {
        "source": source.isoformat(),
        "target": target.isoformat(),
        "difference_hours": difference.total_seconds() / 3600,
    }


def get_week_year(date: str | None = None) -> Week:
    """Get the week of the year of a date; default: today. Weeks begin on Sunday, ISO weeks on Monday."""
    moment = _moment(date)
    first = moment.replace(month=1, day=1)
    iso_year, iso_week, _ = moment.isocalendar()
    week = (moment.timetuple().tm_yday - 1 + (first.weekday() + 1) % 7) // 7 + 1
    return {"week": week, "iso_week": iso_week, "iso_year": iso_year}


TOOLS: list[Callable[..., Any]] = [
    current_time,
    relative_time,
    days_in_month,
    get_timestamp,
    convert_time,
    get_week_year,
]


def say_distance(distance: timedelta) -> str:
    """Describe a time difference from now in the largest unit that fits, rounded down.

    A month counts as 30 days and a year as 365 days.

    >>> say_distance(timedelta(days=-3, hours=-5)), say_distance(timedelta(hours=2))
    ('3 days ago', 'in 2 hours')
    """
    seconds = round(distance.total_seconds())
    if seconds == 0:
        return "now"
    unit, size = next((unit, size) for unit, size in UNITS if abs(seconds) >= size)
    count = abs(seconds) // size
    amount = f"{count} {unit}{'s' if count > 1 else ''}"
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


def build_server(log_level: str = "WARNING") -> Any:
    """Build the server, an MCPServer of the SDK."""
    server = require("mcp.server.mcpserver", extra="mcp").MCPServer(
        "time_mcp", instructions=INSTRUCTIONS, log_level=log_level
    )
    for function in TOOLS:
        server.add_tool(_with_tool_errors(function))
    return server


def __getattr__(name: str) -> Any:
    """Build the server on the first use of ``app``, its published name."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = server = build_server()
    return server


def _with_tool_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert ValueError and OverflowError to the SDK's ToolError.

    ToolError is the only exception whose message the SDK sends to the client.
    """
    tool_error = require("mcp.server.mcpserver.exceptions", extra="mcp").ToolError

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (ValueError, OverflowError) as e:
            raise tool_error(str(e)) from e

    return wrapped


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return timezone.utc  # timezone.utc does not need a time zone database
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):  # unknown name, or a path outside the time zone database
        raise ValueError(f"unknown time zone {name!r}; use a name such as Asia/Shanghai or UTC") from None


def _moment(text: str | None, zone: str = "UTC") -> datetime:
    if text is None:
        return datetime.now(tz=_zone(zone))
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"cannot parse the time {text!r}; use a format such as 2025-03-23T12:30:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=_zone(zone))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", choices=["stdio", "http", "streamable-http", "sse"], default="stdio")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--path", help="path of the URL; default: /mcp, or /sse with --transport sse")
    parser.add_argument("--log-level", "--log_level", type=str.upper, choices=_LOG_LEVELS, default="WARNING")
    args = parser.parse_args(argv)
    server = build_server(args.log_level)
    if args.transport == "stdio":
        server.run("stdio")
        return
    if args.transport == "sse":
        app = server.sse_app(sse_path=args.path or "/sse", host=args.host)
    else:
        app = server.streamable_http_app(streamable_http_path=args.path or "/mcp", host=args.host)
    try:
        listening = bind_socket(args.host, args.port)
    except BadValue as e:
        parser.exit(2, f"error: {e}\n")
    make_server(app, listening, args.host, LIMITS, extra="mcp").run(sockets=[listening])


if __name__ == "__main__":
    main()
