"""Rules of Volcano's webhook for a CronJob, and schedules that never run.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/cronjobs/validate/admit_cronjob.go. The Job of its
template is not validated there: checks.py does it, and warns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.cron_schedule import never_occurs, schedule_error, zone_error
from webhook.facts.volcano.groups import VOLCANO_CRON_JOB
from webhook.facts.volcano_objects.types import CronJob, CronJobSpec
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

SCHEDULE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/schedule",
    title="The schedule of a CronJob is one that cron has.",
    why="It has five fields, or is a word such as @daily. The word @reboot is not known.",
    function="validateCronjobSpec",
)
SCHEDULE_ZONE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/schedule-zone",
    title="The time zone of a CronJob stands in timeZone.",
    why="Volcano refuses TZ= and CRON_TZ= in a schedule.",
    function="validateCronjobSpec",
)
TIME_ZONE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/time-zone",
    title="The time zone of a CronJob is one of the IANA database.",
    why="Names have upper and lower case letters as in Europe/Berlin.",
    function="validateCronjobSpec",
)
NAME_LENGTH: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/name-length",
    title="The name of a CronJob has at most 52 characters.",
    why="The names of its Jobs begin with it.",
    function="validateCronJobName",
)
SCHEDULE_NEVER: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/schedule-never",
    title="The schedule of a CronJob names days that exist.",
    why="By a schedule for 30 February nothing ever runs.",
    refused_by="nobody; the job never runs",
    level="warn",
    fails="silent",
)
STARTING_DEADLINE: Final = VOLCANO_CRON_JOB.rule(
    "volcano-cron-job/starting-deadline",
    title="A CronJob may start at least 10 seconds late.",
    why=(
        "The controller looks at schedules every 10 seconds. With a shorter startingDeadlineSeconds it may miss every "
        "start."
    ),
    refused_by="nobody; starts are missed",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/",
    level="warn",
    fails="silent",
)

_LONGEST_NAME: Final = 52
_SHORTEST_DEADLINE: Final = 10
_FIX: Final = "write a schedule such as `0 2 * * *`"


def check_cron_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a CronJob's schedule, time zone and name."""
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
        message = "must not name a time zone because spec.timeZone sets the time zone"
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
        message = f"must have at most {_LONGEST_NAME} characters because the names of its Jobs begin with it"
        fix = f"remove {counted(len(name) - _LONGEST_NAME, 'character')}"
        yield NAME_LENGTH.problem("metadata.name", message, fix, name)


def _check_starting_deadline(spec: CronJobSpec) -> Iterator[Problem]:
    seconds = spec.starting_deadline_seconds
    if seconds and seconds < _SHORTEST_DEADLINE:
        message = "is so short that the controller, which checks every 10 seconds, may miss every start"
        path = spec.path("startingDeadlineSeconds")
        yield STARTING_DEADLINE.problem(path, message, f"set {_SHORTEST_DEADLINE} or more", seconds)
