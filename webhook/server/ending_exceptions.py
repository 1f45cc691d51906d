"""Announces exceptions and exemptions of the configuration, and PolicyExceptions, before they end: a log line a day,
and a gauge of the days.

An exception in an annotation of an object is not known before the object is reviewed, so it is not announced. Users of
namespaces write PolicyExceptions: these have a bound of their own, and each is announced once a day.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Final

from webhook.logs.structured import Log
from webhook.manifests.claimgate_kinds import POLICY_EXCEPTION
from webhook.manifests.configuration_file import ConfigurationFile
from webhook.manifests.leave_alone import NOTICE_DAYS, current_day
from webhook.manifests.policy_exceptions import PolicyException, one_of_each_namespace_in_turn
from webhook.server.counters import Counters, Labels

LOOK_S: Final = 60.0
"""Seconds between two looks whether the day or the configuration has changed."""
MOST: Final = 100
"""How many exceptions are announced, in the order of their ends. Namespaces take turns for PolicyExceptions, because
there may be thousands.
"""
_MOST_OF_NAMESPACE: Final = 10
"""How many lines a day are about PolicyExceptions of one namespace: its owner may write new ones all day."""
_ENDED: Final = dt.timedelta(days=NOTICE_DAYS)
"""For so long PolicyExceptions that have ended are announced; later ones only fill the list."""


class EndingExceptions:
    """Looks at the exceptions and exemptions of a configuration once a day, and when the configuration has changed; and
    at PolicyExceptions each time.
    """

    def __init__(
        self,
        configuration: Callable[[], ConfigurationFile],
        counters: Counters,
        log: Log,
        stored: Callable[[dt.date, dt.date], Sequence[PolicyException]] = lambda _, __: (),
    ) -> None:
        """Begin without announcements.

        Args:
            configuration: the current configuration.
            counters: get the days.
            log: gets the lines.
            stored: returns the PolicyExceptions with an effect on a day, and those that ended after another day.
        """
        self._configuration = configuration
        self._stored = stored
        self._told: tuple[dt.date, dict[str, set[str]]] = dt.date.min, {}
        self._days: dict[Labels, int] = {}
        self._counters = counters
        self._log = log
        self._seen: tuple[dt.date, ConfigurationFile] | None = None

    async def watch(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.to_thread(self.announce, current_day())
            await asyncio.sleep(LOOK_S)

    def announce(self, day: dt.date) -> None:
        """Write the gauge of each of them, and a line for each that ends soon or has expired."""
        file = self._configuration()
        if self._seen is None or self._seen[0] != day or self._seen[1] is not file:
            self._seen = day, file
            self._days = self._announce_configured(file, day)
        self._counters.exception_days = {**self._days, **self._announce_stored(day)}

    def _announce_configured(self, file: ConfigurationFile, day: dt.date) -> dict[Labels, int]:
        listed = sorted(file.value.time_limits, key=lambda each: each[1].expires)[:MOST]
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
        return {(each.word, each.owner, each.expires.isoformat()): each.days_left(day) for _, each in listed}

    def _announce_stored(self, day: dt.date) -> dict[Labels, int]:
        ending = sorted(self._stored(day, day - _ENDED), key=lambda each: each.spec.expires)
        listed = one_of_each_namespace_in_turn(ending, lambda each: each.namespace)[:MOST]
        if self._told[0] != day:
            self._told = day, {}
        for each in listed:
            left = each.spec.days_left(day)
            told = self._told[1].setdefault(each.namespace, set())
            line = f"{each.name} {each.spec.expires}"
            if left <= NOTICE_DAYS and len(told) < _MOST_OF_NAMESPACE and line not in told:
                told.add(line)
                self._log.warning(
                    f"exception {'ends soon' if left >= 0 else 'has expired'}",
                    place=each.place,
                    subjects=list(each.spec.subjects),
                    owner=each.spec.owner,
                    expires=each.spec.expires.isoformat(),
                    days_left=left,
                )
        return {
            (POLICY_EXCEPTION, each.spec.owner, each.spec.expires.isoformat()): each.spec.days_left(day)
            for each in listed
        }
