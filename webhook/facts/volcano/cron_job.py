"""What Volcano's webhook refuses of a CronJob, and schedules by which it never runs.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/cronjobs/validate/admit_cronjob.go. The Job of its
template is not validated there: checks.py does it, and warns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.volcano.cron_schedule import is_never, schedule_error, zone_error
from webhook.facts.volcano.job import spec_of
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

problem: Final = Group("volcano-cron-job").problem
_LONGEST_NAME: Final = 52
_SHORTEST_DEADLINE: Final = 10
_FIX: Final = "write a schedule such as `0 2 * * *`"


def cron_job(subject: Subject) -> Iterator[Problem]:
    """Schedule, time zone and name."""
    spec = spec_of(subject.object)
    yield from _validate_schedule(str(spec.get("schedule", "")))
    zone = spec.get("timeZone")
    if zone is not None and not is_placeholder(zone):
        message = zone_error(zone) if zone else "must not be an empty string"
        if message:
            fix = "write a name such as Europe/Berlin, or remove timeZone"
            yield problem("time-zone", ("spec", "timeZone"), message, fix, zone)
    name = get(subject.object, ("metadata", "name"), "")
    if len(name) > _LONGEST_NAME and not is_placeholder(name):
        message = f"must have at most {_LONGEST_NAME} characters because the names of its Jobs begin with it"
        fix = f"remove {counted(len(name) - _LONGEST_NAME, 'character')}"
        yield problem("name-length", "metadata.name", message, fix, name)
    deadline = spec.get("startingDeadlineSeconds")
    if deadline and deadline < _SHORTEST_DEADLINE:
        message = "is so short that the controller, which checks every 10 seconds, may miss every start"
        path = ("spec", "startingDeadlineSeconds")
        yield problem("starting-deadline", path, message, f"set {_SHORTEST_DEADLINE} or more", deadline)


def _validate_schedule(schedule: str) -> Iterator[Problem]:
    path = ("spec", "schedule")
    if not schedule or is_placeholder(schedule):
        return
    if "TZ" in schedule:
        message = "must not name a time zone because spec.timeZone sets the time zone"
        yield problem("schedule-zone", path, message, "move the time zone to spec.timeZone", schedule)
    elif error := schedule_error(schedule):
        yield problem("schedule", path, f"is not a schedule because it {error}", _FIX, schedule)
    elif is_never(schedule):
        message = "is for days that no year has, so the job never runs"
        yield problem("schedule-never", path, message, "correct the day or the month", schedule)
