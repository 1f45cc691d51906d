"""Reads schedules of CronJobs as robfig/cron v3 does, and time zones as Go does. Knows no object.

Source: github.com/robfig/cron v3.0.1 parser.go ParseStandard, getField, getRange, parseDescriptor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from webhook.schema.forms import is_duration
from webhook.short_texts import cache_for_short_texts

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DESCRIPTORS: Final = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_EVERY: Final = "@every "
_NUMBER: Final = re.compile(r"[+]?[0-9]+")
_LONGEST: Final = 1000
"""The most characters of a schedule; useful ones have some hundreds at most."""
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_LONGEST_ZONE: Final = 64
"""Characters of a time zone that is looked for, which imports a package for each part; the IANA database has 32."""
_UNKNOWN_ZONE: Final = "must be a time zone of the IANA database, written as it is there"


@dataclass(frozen=True, slots=True)
class _CronField:
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()
    first: int = 0


_FIELDS: Final = (
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _CronField("day of the month", 1, 31),
    _CronField("month", 1, 12, _MONTHS, 1),
    _CronField("day of the week", 0, 6, _DAYS),
)


@cache_for_short_texts(128 << 10)
def schedule_error(schedule: str) -> str:
    """Return why a schedule is invalid; "" for a valid one."""
    if len(schedule) > _LONGEST:
        return f"has more than {_LONGEST} characters"
    if schedule.startswith("@"):
        is_known = schedule in _DESCRIPTORS
        is_interval = schedule.startswith(_EVERY) and is_duration(schedule.removeprefix(_EVERY))
        return "" if is_known or is_interval else f"is not one of {', '.join(sorted(_DESCRIPTORS))} or `@every 1h`"
    try:
        _parse_schedule(schedule)
    except ValueError as error:
        return str(error)
    return ""


@cache_for_short_texts(128 << 10)
def never_occurs(schedule: str) -> bool:
    """Return whether a valid schedule names only days that no year has, such as 30 February."""
    if schedule.startswith("@"):
        return False
    _, _, days, months, weekdays = _parse_schedule(schedule)
    if not weekdays.is_any:  # a day of the week is enough
        return False
    return all(day > _LONGEST_MONTHS[month - 1] for day in days.values for month in months.values)


@dataclass(frozen=True, slots=True)
class _FieldValues:
    values: frozenset[int]
    is_any: bool


def _parse_schedule(schedule: str) -> list[_FieldValues]:
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"has {len(fields)} fields where 5 belong")
    return [_parse_field(text, field) for text, field in zip(fields, _FIELDS, strict=True)]


def _parse_field(text: str, field: _CronField) -> _FieldValues:
    values: set[int] = set()
    is_any = False
    for part in filter(None, text.split(",")):
        numbers, star = _parse_range(part, field)
        values.update(numbers)
        is_any = is_any or star
    return _FieldValues(frozenset(values), is_any)


def _parse_range(text: str, field: _CronField) -> tuple[range, bool]:
    bounds, slash, steps = text.partition("/")
    low, dash, high = bounds.partition("-")
    if "/" in steps or "-" in high:
        raise ValueError(f"has `{text}` as {field.name}, which is not a range")
    step = _parse_number(steps, field) if slash else 1
    if low in ("*", "?") and not dash:
        start, end = field.least, field.most
    else:
        start = _parse_value(low, field)
        end = _parse_value(high, field) if dash else (field.most if slash else start)
    if start < field.least or end > field.most or start > end or step == 0:
        raise ValueError(f"has `{text}` as {field.name}, which is not within {field.least} to {field.most}")
    return range(start, end + 1, step), low in ("*", "?") and step == 1


def _parse_value(text: str, field: _CronField) -> int:
    word = text.lower()
    return field.words.index(word) + field.first if word in field.words else _parse_number(text, field)


def _parse_number(text: str, field: _CronField) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"has `{text}` as {field.name}, which is not a number")
    return int(text)


@cache_for_short_texts(128 << 10)
def zone_error(name: str) -> str:
    """Return why a time zone is rejected; "" for a valid one, and if no time zones are installed."""
    if len(name) > _LONGEST_ZONE:
        return _UNKNOWN_ZONE
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part) for part in name.split("/")):
        return "must be the name of a time zone"
    if name.lower() == "local":
        return "must not be Local, which is another zone on each machine"
    if name == "UTC" or _is_zone_installed(name) or not _is_zone_installed("Europe/Berlin"):
        return ""
    return _UNKNOWN_ZONE


def _is_zone_installed(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
