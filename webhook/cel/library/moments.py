"""Reads timestamps and durations and returns their parts. Source: cel-go v0.26.0 common/types timestamp.go and
duration.go, Go's time.Parse(RFC3339) and time.ParseDuration.

timestamp('2024-02-29T12:30:00Z').getFullYear()                     // 2024
timestamp('2024-02-29T12:30:00Z').getMonth()                        // 1
timestamp('2024-02-29T12:30:00Z').getDate()                         // 29
timestamp('2024-02-29T12:30:00Z').getDayOfMonth()                   // 28
timestamp('2024-02-29T12:30:00Z').getDayOfWeek()                    // 4
timestamp('2024-02-29T12:30:00Z').getDayOfYear()                    // 59
timestamp('2024-02-29T12:30:00Z').getHours('America/New_York')      // 7
timestamp('2024-02-29T12:30:00Z').getMinutes('+05:45')              // 15
timestamp('2024-02-29T12:30:00Z').getHours('Nowhere')               // error: unknown time zone Nowhere
timestamp('2024-02-29T12:30:00.25Z').getMilliseconds()              // 250
duration('1h30m').getMinutes()                                      // 90
duration('1h30m').getSeconds()                                      // 5400
duration(dyn('1 h'))                                                // error: type conversion error from 'string' to …
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from webhook.cel.library.declaration import Overload
from webhook.cel.types import DURATION, INT, STRING, TIMESTAMP
from webhook.cel.values import INT_MAX, NANOSECONDS, Duration, Timestamp, civil_date_and_time
from webhook.deadline import Deadline
from webhook.errors import EvaluationError
from webhook.text.caches import cache_for_short_texts

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,]([0-9]+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_UNITS = {
    "h": 3600 * NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "s": NANOSECONDS,
    "ms": 1_000_000,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ns": 1,
}
_TERM = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)")
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+/-]{1,64}", re.ASCII)
"""The name of a zone. The limit keeps lookups short; IANA names have at most 32 characters."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def parse_timestamp(text: str) -> Timestamp:
    """Return the timestamp in RFC 3339 as Go reads it, also with a decimal comma or an hour of one digit."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise EvaluationError(f"type conversion error from 'string' to '{TIMESTAMP.name}'")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, hours, minutes = match.group(7, 8, 9, 10)
    offset = (int(hours or 0) * 3600 + int(minutes or 0) * 60) * (-1 if sign == "-" else 1)
    if not (hour < 24 and minute < 60 and second < 60 and int(hours or 0) <= 24 and int(minutes or 0) <= 60):
        raise EvaluationError(f"type conversion error from 'string' to '{TIMESTAMP.name}'")
    # datetime lacks the leap year 0, so this reads year 400 and subtracts 400 years; Timestamp then fails as Go does
    try:
        moment = datetime(year or 400, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise EvaluationError(f"type conversion error from 'string' to '{TIMESTAMP.name}'") from None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = since.days * 86_400 + since.seconds - (0 if year else 146_097 * 86_400) - offset
    return Timestamp(seconds * NANOSECONDS + int((fraction or "0")[:9].ljust(9, "0")), offset)


def duration(deadline: Deadline, text: str) -> Duration:
    return parse_duration(text, deadline)


def parse_duration(text: str, deadline: Deadline | None = None) -> Duration:
    """Return the duration in a text such as `1h30m`, `-1.5s`, `0`."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    total = 0 if rest == "0" else _sum_duration_terms(rest, deadline or Deadline())
    # int64 has one more negative number
    if total is None or total > INT_MAX + (text[:1] == "-"):
        raise EvaluationError(f"type conversion error from 'string' to '{DURATION.name}'")
    return Duration(-total if text[:1] == "-" else total)


def _sum_duration_terms(text: str, deadline: Deadline) -> int | None:
    total = position = 0
    while position < len(text) and total <= INT_MAX + 1:
        deadline.spend(1)
        match = _TERM.match(text, position)
        if match is None or not (match[1] or match[3]) or match[4] not in _UNITS or len(match[1]) > 40:
            return None
        unit = _UNITS[match[4]]
        total += int(match[1] or 0) * unit
        if match[3]:
            # Go keeps the digits that fit in 63 bits, and computes the fraction in floating point
            digits = match[3][:19] if int(match[3][:19]) <= INT_MAX else match[3][:18]
            total += int(int(digits) * (unit / 10.0 ** len(digits)))
        position = match.end()
    return total if position else None


# ---- parts


@cache_for_short_texts(128 << 10)
def time_zone(name: str) -> ZoneInfo | None:
    if name in ("", "UTC", "Local"):
        return None
    if not _ZONE_NAME.fullmatch(name) or name.startswith("/"):
        raise EvaluationError(f"unknown time zone {name}")
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise EvaluationError(f"unknown time zone {name}") from None


def zone_offset(seconds: int, name: str) -> int:
    """Return how many seconds a zone is east of UTC at a moment. `name` is a zone or `+hh:mm`."""
    hours, colon, minutes = name.partition(":")
    if colon:
        for part in (hours, minutes):
            if not _INTEGER.fullmatch(part):
                raise EvaluationError(f'strconv.Atoi: parsing "{part}": invalid syntax')
        return (int(hours) * 60 + (-int(minutes) if name.startswith("-") else int(minutes))) * 60
    zone = time_zone(name)
    if zone is None:
        return 0
    # near the ends of datetime's range, the offset of a zone would overflow
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=max(-62_135_510_400, min(seconds, 253_402_214_400)))
    offset = moment.astimezone(zone).utcoffset()
    return 0 if offset is None else offset.days * 86_400 + offset.seconds


def _local_seconds(value: Timestamp, name: str) -> int:
    seconds = value.nanoseconds // NANOSECONDS
    return seconds + zone_offset(seconds, name)


def year(value: Timestamp, name: str = "") -> int:
    return civil_date_and_time(_local_seconds(value, name))[0]


def month(value: Timestamp, name: str = "") -> int:
    """Return the month, from 0."""
    return civil_date_and_time(_local_seconds(value, name))[1] - 1


def date_of_month(value: Timestamp, name: str = "") -> int:
    """Return the day of the month, from 1."""
    return civil_date_and_time(_local_seconds(value, name))[2]


def day_of_month(value: Timestamp, name: str = "") -> int:
    """Return the day of the month, from 0."""
    return civil_date_and_time(_local_seconds(value, name))[2] - 1


def day_of_week(value: Timestamp, name: str = "") -> int:
    """Return the day of the week; 0 is Sunday."""
    return (_local_seconds(value, name) // 86_400 + 4) % 7


def day_of_year(value: Timestamp, name: str = "") -> int:
    """Return the day of the year, from 0."""
    year_, month_, day_ = civil_date_and_time(_local_seconds(value, name))[:3]
    is_leap_year = year_ % 4 == 0 and (year_ % 100 != 0 or year_ % 400 == 0)
    return (
        (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)[month_ - 1] + day_ - 1 + (is_leap_year and month_ > 2)
    )


def hours(value: Timestamp, name: str = "") -> int:
    return _local_seconds(value, name) % 86_400 // 3600


def minutes(value: Timestamp, name: str = "") -> int:
    return _local_seconds(value, name) % 3600 // 60


def seconds(value: Timestamp, name: str = "") -> int:
    return _local_seconds(value, name) % 60


def milliseconds(value: Timestamp, name: str = "") -> int:
    _local_seconds(value, name)
    return value.nanoseconds % NANOSECONDS // 1_000_000


def _whole_units_function(unit: int) -> Callable[[Duration], int]:
    return lambda value: abs(value.nanoseconds) // unit * (1 if value.nanoseconds >= 0 else -1)


def _time_part_overloads(
    name: str, words: str, implementation: Callable[..., int], zoned: str = ""
) -> tuple[Overload, ...]:
    def part_in_zone(value: Any, zone: Any) -> int:
        return implementation(value, zone)

    suffix = zoned or f"timestamp_to_{words}_with_tz"
    return (
        Overload(name, f"timestamp_to_{words}", (TIMESTAMP,), INT, implementation, member=True),
        Overload(name, suffix, (TIMESTAMP, STRING), INT, part_in_zone, member=True),
    )


def _overload_of_duration(name: str, words: str, unit: int) -> Overload:
    return Overload(name, f"duration_to_{words}", (DURATION,), INT, _whole_units_function(unit), member=True)


FUNCTIONS = (
    *_time_part_overloads("getFullYear", "year", year),
    *_time_part_overloads("getMonth", "month", month),
    *_time_part_overloads("getDayOfYear", "day_of_year", day_of_year),
    *_time_part_overloads("getDayOfMonth", "day_of_month", day_of_month),
    *_time_part_overloads("getDate", "day_of_month_1_based", date_of_month),
    *_time_part_overloads("getDayOfWeek", "day_of_week", day_of_week),
    *_time_part_overloads("getHours", "hours", hours),
    _overload_of_duration("getHours", "hours", 3600 * NANOSECONDS),
    *_time_part_overloads("getMinutes", "minutes", minutes),
    _overload_of_duration("getMinutes", "minutes", 60 * NANOSECONDS),
    *_time_part_overloads("getSeconds", "seconds", seconds, "timestamp_to_seconds_tz"),
    _overload_of_duration("getSeconds", "seconds", NANOSECONDS),
    *_time_part_overloads("getMilliseconds", "milliseconds", milliseconds),
    _overload_of_duration("getMilliseconds", "milliseconds", 1_000_000),
)
