"""Writes an Event on the top owner of an object that breaks a rule and passes with a warning.

Users of controllers, GitOps and pipelines do not see warnings. An Event names the rule, its title and the field. It has
no message of a policy: a message may name objects of other namespaces, and more people read Events than the object.

Reviews do not wait for Events: an Event is appended to a bounded queue, or dropped. A background task writes a few
Events a second, and namespaces take turns. If the queue is full, the namespace with the most Events loses its newest
Event. A replica remembers its Events for an hour, as long as API servers keep Events. The name of an Event is computed
from its object and its rule, so the API server refuses the same Event from a second replica.
"""

from __future__ import annotations

import asyncio
import hashlib
import platform
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct, structs

from webhook.apimachinery.attributes import JSON, Attributes, Operation
from webhook.apimachinery.paths import get
from webhook.cluster.connection import Connection, ServerRefused
from webhook.errors import LookupFailed
from webhook.logs.structured import Log
from webhook.rules.decisions import ValidationAction, Verdict
from webhook.rules.text import shorten_text
from webhook.server.counters import Counters
from webhook.server.fair_queue import RoundRobin
from webhook.server.usage import BoundedMap
from webhook.text.terminal import one_line

WARNED: Final = "warned"
"""The field of a log record with the warnings of a review. The server writes Events from this field, and leaves it out
of the log line.
"""
MOST_WAITING: Final = 1000
"""The limit of Events that wait."""
PERIOD_S: Final = 0.2
"""Seconds between two Events."""
AGAIN_S: Final = 3600.0
"""Seconds until a warning about an object is repeated: --event-ttl of kube-apiserver v1.36."""
_MOST_RULES: Final = 5
_MOST_OWNERS: Final = 5
_LONGEST_NAME: Final = 253
_LONGEST_NOTE: Final = 1000
"""k8s.io/kubernetes v1.36 pkg/apis/core/validation/events.go: NoteLengthLimit is 1,024 bytes."""
_LONGEST_PATH: Final = 256
_WAIT_S: Final = 5.0
_EVENTS: Final = "events.k8s.io/v1"
OWNED: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "ReplicaSet"): "replicasets",
    ("apps", "StatefulSet"): "statefulsets",
    ("batch", "Job"): "jobs",
    ("jobset.x-k8s.io", "JobSet"): "jobsets",
    ("ray.io", "RayCluster"): "rayclusters",
}
"""Plurals of the kinds that own Pods, and that a controller makes for another object."""


class ObjectReference(Struct, frozen=True):
    """What an Event is about; `kubectl describe` finds Events by all these fields."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def describe_warned_review(attributes: Attributes, verdict: Verdict) -> dict[str, Any] | None:
    """Return the nearest owner and the rules that only warned, as JSON. Return None if the review becomes no Event:
    without a warning, on a dry run, and for a request other than the creation or update of a namespaced object.
    """
    if not verdict.allowed or attributes.dry_run or attributes.sub_resource or not attributes.namespace:
        return None
    if attributes.operation not in (Operation.CREATE, Operation.UPDATE):
        return None
    paths: dict[str, str] = {}
    for decision in verdict.decisions:
        if decision.action == "deny" and ValidationAction.WARN in decision.actions:
            paths.update({each.code: each.path for each in decision.problems} or {decision.rule or decision.policy: ""})
    owner = _nearest_owner(attributes) if paths else None
    if owner is None:
        return None
    rules = [(rule, shorten_text(path, _LONGEST_PATH)) for rule, path in paths.items()]
    return {"about": structs.asdict(owner), "rules": rules[:_MOST_RULES]}


def _nearest_owner(attributes: Attributes) -> ObjectReference | None:
    # None if neither the controller nor the object has a uid yet
    if owner := controller_of(attributes.object, attributes.namespace):
        return owner
    kind = attributes.kind
    metadata = get(attributes.object, ("metadata",), None) or {}
    return _reference(
        attributes.namespace,
        {
            "apiVersion": f"{kind.group}/{kind.version}".lstrip("/"),
            "kind": kind.kind,
            "name": attributes.name or metadata.get("name"),
            "uid": metadata.get("uid") or get(attributes.old_object, ("metadata", "uid"), None),
        },
    )


def controller_of(obj: JSON, namespace: str) -> ObjectReference | None:
    """Return the controller of an object; None without a readable reference to a controller."""
    owners = get(obj, ("metadata", "ownerReferences"), None)
    for each in owners if isinstance(owners, list) else ():
        if isinstance(each, dict) and each.get("controller") is True:
            return _reference(namespace, each)
    return None


def _reference(namespace: str, fields: Mapping[str, JSON]) -> ObjectReference | None:
    texts = [fields.get(key) for key in ("apiVersion", "kind", "name", "uid")]
    if not all(isinstance(each, str) and 0 < len(each) <= _LONGEST_NAME for each in texts):
        return None
    version, kind, name, uid = map(str, texts)
    return ObjectReference(version, kind, namespace, name, uid)


class _WaitingEvent(Struct, frozen=True):
    about: ObjectReference
    rule: str
    path: str


def _key_of_event(obj: ObjectReference, rule: str) -> tuple[str, str, str]:
    # with the namespace, because a user may write any uid
    return obj.namespace, obj.uid, rule


class WarningEvents:
    """The Events of one server. Only the requests to the API server run outside of the server's event loop."""

    def __init__(
        self,
        connection: Connection,
        title_of_rule: Callable[[str], str],
        counters: Counters,
        log: Log,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Write over `connection`; `title_of_rule` returns "" for a rule without a title."""
        self._connection = connection
        self._title_of_rule = title_of_rule
        self._counters = counters
        self._log = log
        self._clock = clock
        self._waiting: RoundRobin[_WaitingEvent] = RoundRobin(MOST_WAITING)
        self._queued_at: BoundedMap[tuple[str, ...], float] = BoundedMap()
        self._error = ""

    def offer(self, warned: Any) -> None:
        """Queue the result of `describe_warned_review`, without warnings that were already written."""
        obj = ObjectReference(**warned["about"])
        for rule, path in warned["rules"]:
            if not self._is_first(obj, rule):
                self._counters.events["repeated",] += 1
                continue
            dropped = self._waiting.add(obj.namespace, _WaitingEvent(obj, rule, path))
            if dropped is not None:
                self._counters.events["dropped",] += 1
                # the warning can be written later
                self._queued_at.discard(_key_of_event(dropped.about, dropped.rule))

    def describe_error(self) -> str:
        """Return why the last Event could not be written; "" if it was written."""
        return self._error

    async def write_periodically(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.write_next()

    async def write_next(self) -> None:
        event = self._waiting.pop()
        if event is None:
            return
        top = await asyncio.to_thread(self._top_owner, event.about)
        if top != event.about and not self._is_first(top, event.rule):
            self._counters.events["repeated",] += 1
            return
        try:
            await asyncio.to_thread(self._create, top, event)
        except ServerRefused as refused:
            if refused.code == HTTPStatus.CONFLICT:  # another replica wrote the Event
                self._counters.events["repeated",] += 1
            else:
                self._record_failure(str(refused))
        except LookupFailed as error:
            self._record_failure(str(error))
        else:
            self._error = ""
            self._counters.events["written",] += 1

    def _is_first(self, obj: ObjectReference, rule: str) -> bool:
        # and remembers the warning
        key, now = _key_of_event(obj, rule), self._clock()
        queued_at = self._queued_at.get(key)
        if queued_at is not None and now - queued_at < AGAIN_S:
            return False
        self._queued_at.set(key, now)
        return True

    def _record_failure(self, error: str) -> None:
        self._counters.events["failed",] += 1
        if error != self._error:
            self._log.warning("event cannot be written", error=error)
        self._error = error

    def _top_owner(self, nearest: ObjectReference) -> ObjectReference:
        # the top owner, or the last owner on the way whose own owner can be read
        top = nearest
        for _ in range(_MOST_OWNERS):
            group = top.api_version.rpartition("/")[0]
            plural = OWNED.get((group, top.kind))
            if plural is None:
                break
            path = f"/apis/{quote(top.api_version)}/namespaces/{quote(top.namespace, safe='')}/{plural}"
            try:
                stored = self._connection.get_metadata(f"{path}/{quote(top.name, safe='')}")
            except LookupFailed:
                break
            owner = controller_of(stored, top.namespace)
            if owner is None or get(stored, ("metadata", "uid"), None) != top.uid:
                break
            top = owner
        return top

    def _create(self, top: ObjectReference, event: _WaitingEvent) -> None:
        namespace = quote(top.namespace, safe="")
        body = event_body(top, event.rule, event.path, self._title_of_rule(event.rule))
        self._connection.post(f"/apis/{_EVENTS}/namespaces/{namespace}/events", body, _WAIT_S)


def event_body(obj: ObjectReference, rule: str, path: str, title: str) -> dict[str, Any]:
    """Return the Event of one rule on one object."""
    digest = hashlib.sha256(f"{obj.uid}/{rule}".encode()).hexdigest()[:16]
    if title:
        note = f"{title}{f': {one_line(path)}' if path else ''} ({rule}). `claimgate explain {rule}` says what to do."
    else:
        note = f"Policy {rule} warns. `kubectl apply --dry-run=server` prints its message."
    return {
        "apiVersion": _EVENTS,
        "kind": "Event",
        "metadata": {"name": f"{obj.name[:200].rstrip('-.')}.{digest}", "namespace": obj.namespace},
        "eventTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        "type": "Warning",
        "reason": "PolicyWarning",
        "action": "Admitted",
        "note": shorten_text(note, _LONGEST_NOTE),
        "reportingController": "claimgate.dev/server",
        "reportingInstance": shorten_text(platform.node() or "claimgate", 128),
        "regarding": {
            "apiVersion": obj.api_version,
            "kind": obj.kind,
            "namespace": obj.namespace,
            "name": obj.name,
            "uid": obj.uid,
        },
    }
