"""Writes conditions to the status of stored objects by server-side apply, a bounded number of times.

Every replica may write, under one field manager, and all would write the same. A replica that finds its own result in
the view writes nothing; the others wait a random moment, so that mostly one replica writes. A replica that was
overwritten (two versions of claimgate in a rollout) waits longer each time, so that two that disagree do not fight.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import quote

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.cluster.connection import ServerRefused
from webhook.errors import LookupFailed
from webhook.live_policies.conditions import add_transition_times, has_stored_conditions
from webhook.live_policies.objects import StoredPolicy, current_timestamp
from webhook.manifests.claimgate_kinds import API_VERSION, GROUP, VERSION
from webhook.workloads.plurals import plural_of_kind

MOST_WRITES: Final = 20
"""For one run: the status of 400 changed objects is written within a minute."""
SPREAD_S: Final = 3.0
"""The longest that a replica waits before the first write about something new."""
AGAIN_S: Final = (10.0, 1800.0)
"""First and longest wait before the same is written again, doubled in between."""
_WRITE_S: Final = 10.0

Conditions = Sequence[Mapping[str, Any]]


class ObjectApplier(Protocol):
    """A connection that applies parts of objects."""

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        """Apply part of an object by server-side apply; raise LookupFailed."""
        ...


@dataclass(slots=True)
class _StatusWriteAttempt:
    """The status to write for one object, how often it was written, and when it may be written again."""

    wanted: tuple[Conditions, JSON]
    not_before: float
    writes: int = 0


@dataclass(slots=True)
class StatusWriter:
    """Writes the conditions of one field manager. Used by one thread at a time.

    Attributes:
        manager: the field manager; conditions of others stay.
        error: why the last write failed, or "".
        written: how many writes there were.
    """

    connection: ObjectApplier
    manager: str
    clock: Callable[[], float] = time.monotonic
    spread: Callable[[], float] = lambda: random.uniform(0, SPREAD_S)  # noqa: S311 - spreads load, hides nothing
    error: str = ""
    written: int = 0
    _attempts: dict[str, _StatusWriteAttempt] = field(default_factory=dict)

    def write(self, wanted: Iterable[tuple[StoredPolicy, Conditions, JSON]]) -> None:
        """Write the conditions, and the last generations that compiled, that the stored objects do not have yet, within
        the limits on writes and retries. None as the last generation means that another writer owns it.
        """
        attempts: dict[str, _StatusWriteAttempt] = {}
        left = MOST_WRITES
        for stored, conditions, last in wanted:
            attempt = self._attempts.get(stored.uid)
            if attempt is None or attempt.wanted != (conditions, last):
                attempt = _StatusWriteAttempt((conditions, last), self.clock() + self.spread())
            attempts[stored.uid] = attempt
            is_stored = has_stored_conditions(conditions, stored) and last in (None, _stored_last_compiled(stored))
            if left and not is_stored and self.clock() >= attempt.not_before:
                left -= 1
                self._try_to_write_status(stored, attempt)
        self._attempts = attempts

    def _try_to_write_status(self, stored: StoredPolicy, attempt: _StatusWriteAttempt) -> None:
        first, longest = AGAIN_S
        attempt.writes += 1
        attempt.not_before = self.clock() + min(first * 2 ** min(attempt.writes - 1, 20), longest)
        try:
            self.connection.apply(*_status_path_and_body(stored, *attempt.wanted), self.manager, _WRITE_S)
        except ServerRefused as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):  # it was deleted or replaced
                self.error = str(error)
        except LookupFailed as error:
            self.error = str(error)
        else:
            self.written += 1
            self.error = ""


def _stored_last_compiled(stored: StoredPolicy) -> JSON:
    return get(stored.value, ("status", "lastCompiled"), None)


def _status_path_and_body(stored: StoredPolicy, conditions: Conditions, last: JSON) -> tuple[str, JSON]:
    """Return the path of the status and what is applied to it; the uid prevents a write to a new object with this
    name.
    """
    inside = f"/namespaces/{quote(stored.namespace, safe='')}" if stored.namespace else ""
    path = f"/apis/{GROUP}/{VERSION}{inside}/{plural_of_kind(stored.kind)}/{quote(stored.name, safe='')}/status"
    return path, {
        "apiVersion": API_VERSION,
        "kind": stored.kind,
        "metadata": {
            "name": stored.name,
            "uid": stored.uid,
            **({"namespace": stored.namespace} if stored.namespace else {}),
        },
        "status": {
            "conditions": add_transition_times(conditions, stored, current_timestamp()),
            **({"lastCompiled": last} if last is not None else {}),
        },
    }
