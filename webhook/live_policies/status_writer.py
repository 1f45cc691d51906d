"""Writes conditions to the status of stored objects by server-side apply, with a bounded number of writes.

Every replica may write, under one field manager, and normally all replicas have the same result. A replica first waits
a random time, and writes only if the status lacks its result. So usually one replica writes. During a rollout, replicas
of two releases may overwrite each other. Each time, the overwritten replica waits longer before its next write.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import quote

from webhook.apimachinery.attributes import JSON, plural_of_kind
from webhook.apimachinery.paths import get
from webhook.cluster.connection import ServerRefused
from webhook.errors import LookupFailed
from webhook.live_policies.conditions import add_transition_times, has_stored_conditions
from webhook.live_policies.objects import StoredPolicy, current_timestamp
from webhook.manifests.claimgate_kinds import API_VERSION, GROUP, VERSION

MOST_WRITES: Final = 20
"""The maximum number of writes in one run. With this limit, the status of 400 changed objects takes a minute."""
SPREAD_S: Final = 3.0
"""The longest wait before the first write of a new result."""
AGAIN_S: Final = (10.0, 1800.0)
"""The first and the longest wait before the same result is written again; the wait doubles."""
_WRITE_S: Final = 10.0

Conditions = Sequence[Mapping[str, Any]]


class ObjectApplier(Protocol):
    """Sends a server-side apply."""

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        """Apply part of an object; raises LookupFailed."""
        ...


@dataclass(slots=True)
class _StatusWriteAttempt:
    """The status for one object, the number of writes, and the next allowed time."""

    new_status: tuple[Conditions, JSON]
    not_before: float
    writes: int = 0


@dataclass(slots=True)
class StatusWriter:
    """Writes the conditions of one field manager; one thread at a time.

    Attributes:
        manager: the field manager. Conditions of other managers stay.
        error: why the last write failed, or "".
        written: the number of successful writes.
    """

    connection: ObjectApplier
    manager: str
    clock: Callable[[], float] = time.monotonic
    spread: Callable[[], float] = lambda: random.uniform(0, SPREAD_S)  # noqa: S311 - spreads load, hides nothing
    error: str = ""
    written: int = 0
    _attempts: dict[str, _StatusWriteAttempt] = field(default_factory=dict)

    def write(self, statuses: Iterable[tuple[StoredPolicy, Conditions, JSON]]) -> None:
        """Write the conditions and `lastCompiled` to the stored objects that lack them, within the limits.

        If `lastCompiled` is None, it is not written, because another writer sets it.
        """
        attempts: dict[str, _StatusWriteAttempt] = {}
        left = MOST_WRITES
        for stored, conditions, last in statuses:
            attempt = self._attempts.get(stored.uid)
            if attempt is None or attempt.new_status != (conditions, last):
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
            self.connection.apply(*_status_path_and_body(stored, *attempt.new_status), self.manager, _WRITE_S)
        except ServerRefused as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):  # the object was deleted or replaced
                self.error = str(error)
        except LookupFailed as error:
            self.error = str(error)
        else:
            self.written += 1
            self.error = ""


def _stored_last_compiled(stored: StoredPolicy) -> JSON:
    return get(stored.value, ("status", "lastCompiled"), None)


def _status_path_and_body(stored: StoredPolicy, conditions: Conditions, last: JSON) -> tuple[str, JSON]:
    # the uid prevents a write to a new object with the same name
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
