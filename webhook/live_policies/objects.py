"""Reads the policies and bindings of claimgate.dev that a cluster stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.cluster.connection import Connection
from webhook.cluster.decoding import is_too_deep
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.interest import Interest, interest_in_fields
from webhook.cluster.lookup import NOT_SERVED, OMITTED, Cluster, namespace_and_name
from webhook.cluster.watch import WAIT_S, WatchCluster
from webhook.errors import LookupFailed
from webhook.logs.structured import Log
from webhook.manifests.claimgate_kinds import GROUP, KINDS, VERSION

_READ: Final = (
    "metadata.annotations",
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.uid",
    "spec",
    "status",
)
GVKS: Final = tuple(GroupVersionKind(GROUP, VERSION, kind) for kind in KINDS)
MOST_BYTES: Final = 64 << 10
"""The maximum number of bytes of an object as JSON; the longest shipped policy has 6 KB. The view keeps a stub of a
larger object.
"""
INTERESTS: Final[tuple[Interest, ...]] = tuple(
    replace(interest_in_fields(gvk, *_READ), most_bytes=MOST_BYTES) for gvk in GVKS
)
MOST_VIEW_BYTES: Final = 16 << 20
"""The maximum number of bytes of the view as Python values: 32 times MOST_BYTES_TOGETHER of compile.py."""


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """One stored object of a kind of claimgate.dev."""

    value: JSON

    @property
    def kind(self) -> str:
        """Return the kind: ValidatingPolicy, MutatingPolicy, PolicyBinding or PolicyException."""
        return str(self.value["kind"])

    @property
    def namespace(self) -> str:
        """Return the namespace of a PolicyException; "" for other kinds, which are cluster-scoped."""
        return namespace_and_name(self.value)[0]

    @property
    def name(self) -> str:
        return str(self.value["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Return the uid, which distinguishes the object from an earlier object of the same name."""
        return str(get(self.value, ("metadata", "uid"), ""))

    @property
    def generation(self) -> int:
        return int(get(self.value, ("metadata", "generation"), 0) or 0)

    @property
    def omitted_bytes(self) -> int:
        """Return the bytes of an object that is too large for the view; otherwise 0."""
        return int(self.value.get(OMITTED, 0))

    @property
    def age_order(self) -> tuple[str, str, str]:
        """Return a sort key: the oldest first, in the same order on every replica."""
        return str(get(self.value, ("metadata", "creationTimestamp"), "")), self.kind, self.name

    @property
    def last_compiled(self) -> StoredPolicy | None:
        """Return the object with the spec of the last generation that compiled, from its status, or None."""
        last = get(self.value, ("status", "lastCompiled"), None) or {}
        try:
            generation, spec = int(last["generation"]), json.loads(last["spec"])
        except (KeyError, TypeError, ValueError, RecursionError):  # users may write any status
            return None
        if is_too_deep(spec):  # the view refuses such an object too
            return None
        metadata = {**self.value["metadata"], "generation": generation}
        return StoredPolicy({**self.value, "metadata": metadata, "spec": spec})

    @property
    def registration(self) -> str:
        """Return the status of condition Registered: "True", "False", or ""."""
        conditions = get(self.value, ("status", "conditions"), None) or ()
        return next((str(each.get("status")) for each in conditions if each.get("type") == "Registered"), "")

    def spec_as_last_compiled(self) -> JSON:
        """Return the value of status.lastCompiled for this generation, which has compiled."""
        text = json.dumps(self.value.get("spec"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return {"generation": self.generation, "spec": text}

    def canonical_text(self) -> str:
        """Return a text of the parts that are compiled. Objects with equal texts compile to equal policies."""
        parts = [self.kind, self.name, self.value["metadata"].get("annotations"), self.value.get("spec")]
        parts += [self.omitted_bytes] if self.omitted_bytes else []
        return json.dumps(parts, sort_keys=True, ensure_ascii=False)

    def digest(self) -> bytes:
        """Return a hash of the canonical text."""
        return sha256(self.canonical_text().encode(errors="replace")).digest()


class StoredPolicies:
    """The stored policies and bindings, from a view of the cluster."""

    def __init__(self, view: Cluster) -> None:
        """`view` must include INTERESTS."""
        self._view = view

    def list_oldest_first(self) -> tuple[StoredPolicy, ...]:
        """Return all objects of the kinds that are served, the oldest first.

        Raises:
            LookupFailed: the objects are unknown.
        """
        return tuple(sorted(map(StoredPolicy, self._list_objects_of_all_kinds()), key=lambda each: each.age_order))

    def _list_objects_of_all_kinds(self) -> Iterator[JSON]:
        for gvk in GVKS:
            try:
                yield from self._view.list(gvk, None)
            except LookupFailed as error:
                if NOT_SERVED not in str(error):
                    raise

    def revision(self) -> object:
        """Return a value that changes whenever an object changes."""
        return tuple(self._view.revision(gvk) for gvk in GVKS)

    def explain_unknown_objects(self) -> str:
        """Return why the objects are unknown, or ""."""
        try:
            self.list_oldest_first()
        except LookupFailed as error:
            return str(error)
        return ""

    def explain_kinds_not_served(self) -> str:
        """Return a sentence about the kinds that are not installed; "" if all are installed, or if the objects are
        unknown.
        """
        unserved = [gvk.kind for gvk in GVKS if not self._view.is_synced(gvk)]
        return f"{', '.join(unserved)}: {NOT_SERVED}" if unserved and not self.explain_unknown_objects() else ""


def watch_stored_policies(connection: Connection, log: Log, failure_log: FailureLog | None = None) -> StoredPolicies:
    """Watch the objects and wait for the first lists. With a `failure_log`, an unreachable server ends the wait."""
    view = WatchCluster(connection, INTERESTS, log, most_bytes=MOST_VIEW_BYTES, failure_log=failure_log)
    view.start()
    if failure_log is None:
        view.wait_until_synced(WAIT_S)
    else:
        view.wait_for_first_lists(WAIT_S)
    return StoredPolicies(view)


def current_timestamp() -> str:
    """Return the present time in the format of conditions."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
