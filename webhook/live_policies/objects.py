"""The objects of claimgate.dev in a cluster: a view of the three kinds, with the fields that are read."""

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
"""For one object as JSON; the longest shipped policy has 6 KB. The view keeps a stub of a larger one."""
INTERESTS: Final[tuple[Interest, ...]] = tuple(
    replace(interest_in_fields(gvk, *_READ), most_bytes=MOST_BYTES) for gvk in GVKS
)
MOST_VIEW_BYTES: Final = 16 << 20
"""For all objects in the view: eight times the bytes that are compiled of them (compile.py), as values of Python."""


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """One object, of any of the kinds of claimgate.dev, as the API server stores it."""

    value: JSON

    @property
    def kind(self) -> str:
        """Return the object's kind: ValidatingPolicy, MutatingPolicy, PolicyBinding or PolicyException."""
        return str(self.value["kind"])

    @property
    def namespace(self) -> str:
        """Return the namespace of a PolicyException; "" for the other kinds, which have none."""
        return namespace_and_name(self.value)[0]

    @property
    def name(self) -> str:
        """Return the object's name, which no other object of its kind and namespace has."""
        return str(self.value["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Return the uid, which distinguishes the object from an earlier one of its name."""
        return str(get(self.value, ("metadata", "uid"), ""))

    @property
    def generation(self) -> int:
        """Return the generation of the object's spec."""
        return int(get(self.value, ("metadata", "generation"), 0) or 0)

    @property
    def omitted_bytes(self) -> int:
        """Return how many bytes an object has that the view does not keep; 0 for an object that it keeps."""
        return int(self.value.get(OMITTED, 0))

    @property
    def age_order(self) -> tuple[str, str, str]:
        """Return a key that sorts the oldest object first, the same for every replica."""
        return str(get(self.value, ("metadata", "creationTimestamp"), "")), self.kind, self.name

    @property
    def last_compiled(self) -> StoredPolicy | None:
        """Return the object with the spec of the last generation that compiled, which its status stores, or None."""
        last = get(self.value, ("status", "lastCompiled"), None) or {}
        try:
            generation, spec = int(last["generation"]), json.loads(last["spec"])
        except (KeyError, TypeError, ValueError, RecursionError):  # a user who may write the status can write any value
            return None
        if is_too_deep(spec):  # as the view refuses such an object
            return None
        metadata = {**self.value["metadata"], "generation": generation}
        return StoredPolicy({**self.value, "metadata": metadata, "spec": spec})

    @property
    def registration(self) -> str:
        """Return the condition in the status about calls of API servers for the policy: "True", "False" or ""."""
        conditions = get(self.value, ("status", "conditions"), None) or ()
        return next((str(each.get("status")) for each in conditions if each.get("type") == "Registered"), "")

    def spec_as_last_compiled(self) -> JSON:
        """Return what the status keeps of a generation that compiled."""
        text = json.dumps(self.value.get("spec"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return {"generation": self.generation, "spec": text}

    def canonical_text(self) -> str:
        """Return the text that the object is compiled from: the same text compiles to the same policy."""
        read = [self.kind, self.name, self.value["metadata"].get("annotations"), self.value.get("spec")]
        read += [self.omitted_bytes] if self.omitted_bytes else []
        return json.dumps(read, sort_keys=True, ensure_ascii=False)

    def digest(self) -> bytes:
        """Return a hash of the text."""
        return sha256(self.canonical_text().encode(errors="replace")).digest()


class StoredPolicies:
    """The policies and bindings that the API server stores, as a view of the cluster has them."""

    def __init__(self, view: Cluster) -> None:
        """Args: view: it holds INTERESTS."""
        self._view = view

    def list_oldest_first(self) -> tuple[StoredPolicy, ...]:
        """Return all objects, the oldest first; none of a kind that the API server does not serve.

        Raises:
            LookupFailed: the objects are not known.
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
        """Say why it is not known which objects there are, or return ""; kinds that are not served have none."""
        try:
            self.list_oldest_first()
        except LookupFailed as error:
            return str(error)
        return ""

    def explain_kinds_not_served(self) -> str:
        """Say which kinds are not installed, or return ""."""
        unserved = [gvk.kind for gvk in GVKS if not self._view.is_synced(gvk)]
        return f"{', '.join(unserved)}: {NOT_SERVED}" if unserved and not self.explain_unknown_objects() else ""


def watch_stored_policies(connection: Connection, log: Log, failure_log: FailureLog | None = None) -> StoredPolicies:
    """Watch the objects and wait for the first lists.

    A server has a `failure_log`, and does not wait for an API server that is away.
    """
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
