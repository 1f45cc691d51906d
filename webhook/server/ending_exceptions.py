"""Announces exceptions and exemptions of the configuration before they end: a log line a day, and a gauge of the days.

An exception in an annotation of an object is not known before the object is reviewed, so it is not announced.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Final

from webhook.logs.structured import Log
from webhook.manifests.configuration_file import ConfigurationFile
from webhook.manifests.leave_alone import NOTICE_DAYS, current_day
from webhook.server.counters import Counters

LOOK_S: Final = 60.0
"""Seconds between two looks whether the day or the configuration has changed."""
MOST: Final = 100
"""How many of them are announced, those first that end first: a file may have thousands of them."""


class EndingExceptions:
    """Looks at the exceptions and exemptions of a configuration once a day, and when the configuration has changed."""

    def __init__(self, configuration: Callable[[], ConfigurationFile], counters: Counters, log: Log) -> None:
        self._configuration = configuration
        self._counters = counters
        self._log = log
        self._seen: tuple[dt.date, ConfigurationFile] | None = None

    async def watch(self) -> None:
        """Look for ever."""
        while True:
            self.announce(current_day())
            await asyncio.sleep(LOOK_S)

    def announce(self, day: dt.date) -> None:
        """Write the gauge of each of them, and a line for each that ends soon or has expired."""
        file = self._configuration()
        if self._seen is not None and self._seen[0] == day and self._seen[1] is file:
            return
        self._seen = day, file
        listed = sorted(file.value.time_limits, key=lambda each: each[1].expires)[:MOST]
        self._counters.exception_days = {
            (each.word, each.owner, each.expires.isoformat()): each.days_left(day) for _, each in listed
        }
        for path, each in listed:
            left = each.days_left(day)
            if left <= NOTICE_DAYS:
                self._log.warning(
                    f"{each.word} {'ends soon' if left >= 0 else 'has expired'}",
                    place=str(file.problem(path, "")),
                    subjects=list(each.subjects),
                    owner=each.owner,
                    expires=each.expires.isoformat(),
                    days_left=left,
                )
