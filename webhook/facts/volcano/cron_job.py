"""Rules of Volcano's webhook for a CronJob, and schedules that never run.

Schedules are read as robfig/cron v3 reads them, time zones as Go reads them. The webhook does not validate the Job of
the template. checks.py validates this Job, and reports its problems as warnings.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/cronjobs/validate/admit_cronjob.go;
github.com/robfig/cron v3.0.1 parser.go ParseStandard, getField, getRange, parseDescriptor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_CRON_JOB
from webhook.facts.volcano_objects.types import CronJob, CronJobSpec
from webhook.rules.problem import Problem
from webhook.schema.values import is_duration
from webhook.text.caches import cache_for_short_texts
from webhook.text.wording import counted
from webhook.yamltext.placeholders import is_placeholder

SCHEDULE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/schedule",
    title="The schedule is not a valid cron schedule",
    why="A schedule has five fields, or is a word such as @daily. Volcano does not know @reboot.",
    function="validateCronjobSpec",
)
SCHEDULE_ZONE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/schedule-zone",
    title="The schedule contains a time zone",
    why="Volcano refuses TZ= and CRON_TZ= in a schedule.",
    function="validateCronjobSpec",
)
TIME_ZONE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/time-zone",
    title="timeZone is not the name of a time zone",
    why="The names of time zones are case-sensitive, as in Europe/Berlin.",
    function="validateCronjobSpec",
)
NAME_LENGTH: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/name-length",
    title="The name of the CronJob is longer than 52 characters",
    why="The names of the Jobs begin with the name of the CronJob.",
    function="validateCronJobName",
)
SCHEDULE_NEVER: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/schedule-never",
    title="The schedule names a day that never comes",
    why="A schedule for 30 February, for example, starts no Job.",
    refused_by="nothing; the job never runs",
    level="warn",
    fails="silent",
)
STARTING_DEADLINE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/starting-deadline",
    title="startingDeadlineSeconds is below 10",
    why="The controller reads schedules every 10 seconds, so with a shorter deadline every start may be missed.",
    refused_by="nothing; starts are missed",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/",
    level="warn",
    fails="silent",
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MOST_DAYS_OF_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DESCRIPTORS: Final = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_EVERY: Final = "@every "
_NUMBER: Final = re.compile(r"[+]?[0-9]+")
_LONGEST: Final = 1000
"""Longer schedules count as invalid. Real schedules have at most some hundred characters."""
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_LONGEST_ZONE: Final = 64
"""Longer time zones are not looked up, because a lookup imports a package for each part of the name. Names in the IANA
database have at most 32 characters.
"""
_UNKNOWN_ZONE: Final = "must be the exact name of a time zone of the IANA database"
_LONGEST_NAME: Final = 52
_SHORTEST_DEADLINE: Final = 10
_FIX: Final = "write a schedule such as `0 2 * * *`"


def check_cron_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a CronJob's schedule, time zone, name and starting deadline."""
    cron_job = subject.typed(CronJob)
    yield from _validate_schedule(cron_job.spec)
    yield from _check_time_zone(cron_job.spec)
    yield from _check_name_length(cron_job)
    yield from _check_starting_deadline(cron_job.spec)


def _validate_schedule(spec: CronJobSpec) -> Iterator[Problem]:
    schedule, path = spec.schedule, spec.path("schedule")
    if not schedule or is_placeholder(schedule):
        return
    if "TZ" in schedule:
        message = "must not name a time zone because Volcano reads the time zone only from spec.timeZone"
        yield SCHEDULE_ZONE.problem(path, message, "move the time zone to spec.timeZone", schedule)
    elif error := schedule_error(schedule):
        yield SCHEDULE.problem(path, f"is not a schedule because it {error}", _FIX, schedule)
    elif never_occurs(schedule):
        message = "is for days that no year has, so the job never runs"
        yield SCHEDULE_NEVER.problem(path, message, "correct the day or the month", schedule)


def _check_time_zone(spec: CronJobSpec) -> Iterator[Problem]:
    zone = spec.time_zone
    if not spec.has("timeZone") or is_placeholder(zone):
        return
    message = zone_error(zone) if zone else "must not be an empty string"
    if message:
        fix = "write a name such as Europe/Berlin, or remove timeZone"
        yield TIME_ZONE.problem(spec.path("timeZone"), message, fix, zone)


def _check_name_length(cron_job: CronJob) -> Iterator[Problem]:
    name = cron_job.name
    if len(name) > _LONGEST_NAME and not is_placeholder(name):
        message = f"must have at most {_LONGEST_NAME} characters because the names of its Jobs begin with this name"
        fix = f"remove {counted(len(name) - _LONGEST_NAME, 'character')}"
        yield NAME_LENGTH.problem("metadata.name", message, fix, name)


def _check_starting_deadline(spec: CronJobSpec) -> Iterator[Problem]:
    seconds = spec.starting_deadline_seconds
    if seconds and seconds < _SHORTEST_DEADLINE:
        message = (
            "is below 10 s, the interval at which the controller reads schedules, so the controller may miss every "
            "start"
        )
        path = spec.path("startingDeadlineSeconds")
        yield STARTING_DEADLINE.problem(path, message, f"set {_SHORTEST_DEADLINE} or more", seconds)


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
    """Return why a schedule is invalid; "" for a valid schedule."""
    if len(schedule) > _LONGEST:
        return f"has more than {_LONGEST} characters"
    if schedule.startswith("@"):
        is_known = schedule in _DESCRIPTORS
        is_interval = schedule.startswith(_EVERY) and is_duration(schedule.removeprefix(_EVERY))
        allowed = f"{', '.join(sorted(_DESCRIPTORS))}, or @every with a duration, such as `@every 1h`"
        return "" if is_known or is_interval else f"is not one of {allowed}"
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
    if not weekdays.is_any:  # a day of the week occurs in every year
        return False
    return all(day > _MOST_DAYS_OF_MONTHS[month - 1] for day in days.values for month in months.values)


@dataclass(frozen=True, slots=True)
class _FieldValues:
    values: frozenset[int]
    is_any: bool


def _parse_schedule(schedule: str) -> list[_FieldValues]:
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"has {len(fields)} fields instead of 5")
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
    """Return why a time zone is rejected; "" for a valid time zone, and if this machine has no time zones."""
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
