"""Schedules as robfig/cron v3.0.1 ParseStandard reads them."""

from __future__ import annotations

import pytest

from webhook.facts.volcano.cron_job import never_occurs, schedule_error, zone_error


@pytest.mark.parametrize(
    "schedule",
    [
        "0 2 * * *",
        "*/5 0-23/2 1,15 jan-MAR mon,WED",
        "? ? ? ? ?",
        "5/15 * * * 0",
        "@daily",
        "@every 1h30m",
        "0 0 30 2 *",
        "  0   2 * * * ",
    ],
)
def test_a_valid_schedule_is_read(schedule: str) -> None:
    assert schedule_error(schedule) == ""


@pytest.mark.parametrize(
    "schedule",
    [
        "0 2 * *",
        "0 0 2 * * *",
        "60 * * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "5-1 * * * *",
        "*/0 * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "x * * * *",
        "-1 * * * *",
        "* * * mon *",
        "@reboot",
        "@every soon",
        "0 " * 600,
    ],
)
def test_an_invalid_schedule_is_refused(schedule: str) -> None:
    assert schedule_error(schedule)


@pytest.mark.parametrize(
    ("schedule", "never"),
    [
        ("0 0 30 2 *", True),
        ("0 0 31 4,6,9,11 *", True),
        ("0 0 29 2 *", False),
        ("0 0 31 4-5 *", False),
        ("0 0 30 2 1", False),
        ("@yearly", False),
    ],
)
def test_days_that_no_year_has(schedule: str, never: bool) -> None:
    assert never_occurs(schedule) is never


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("Europe/Berlin", True),
        ("UTC", True),
        ("Etc/GMT+5", True),
        ("europe/berlin", False),
        ("Local", False),
        ("Mars/Olympus", False),
        ("../etc/passwd", False),
        ("Europe", False),
        ("", False),
        ("/".join("a" * 1000), False),
    ],
)
def test_a_time_zone_is_valid_or_not(name: str, good: bool) -> None:
    assert (zone_error(name) == "") is good
