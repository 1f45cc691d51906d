"""Reviews with any JSON in the fields that no shipped policy reads, compared with the same reviews without it.

An API server keeps the bytes of fields that it does not read: `managedFields`, and parameters for drivers. It accepts
10,000 levels, bytes that are not UTF-8, halves of surrogate pairs, and any number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.fuzz.differential.answers import load
from tests.fuzz.doors.cases import Group, recorded_groups
from tests.fuzz.doors.comparison import Served
from tests.literals import TABLE
from webhook.admission import fixtures, wire
from webhook.admission.decode import decode_review_bytes, review_of_attributes
from webhook.admission.respond import encode_response
from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.errors import CallError
from webhook.policy.policy_set import PolicySet

LEAVES: Final = (
    *(b"null", b"true", b"0", b"-0", b"-0.0", b"1.5", b"1e308", b"9223372036854775808", b"-9223372036854775809"),
    *(b"1e999", b"-1e-999", b"1" * 400, b"0." + b"1" * 400, b'""', b"[]", b"{}"),
)
PIECES: Final = (
    *(b"a", "ä".encode(), "\U0001f600".encode(), b"\xff", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\x7f"),
    *(rb"\ud800", rb"\udc00", rb"\ud83d\ude00", rb"\u0000", rb"\\", rb"\"", rb"\/", rb"\ud800\\ud800", b"[{", b"}]"),
)


def text(random: Random) -> bytes:
    return b'"' + b"".join(random.choices(PIECES, k=random.randrange(8))) + b'"'


def value(random: Random, deepest: int = 5_000) -> bytes:
    """Return random JSON as bytes: mostly small, and sometimes deeply nested."""
    levels = min(deepest, random.choice((0, 1, 3, 10, 100, 190, 200, 210, 300, 980, deepest)))
    inner = random.choice(LEAVES) if random.random() < 0.5 else text(random)
    opened, closed = [], []
    for _ in range(levels):
        beside = random.choice(LEAVES) if random.random() < 0.1 else b""
        if random.random() < 0.5:
            opened.append(b"[" + (beside and beside + b","))
            closed.append(b"]")
        else:
            opened.append(b"{" + (beside and text(random) + b":" + beside + b",") + text(random) + b":")
            closed.append(b"}")
    return b"".join((*opened, inner, *reversed(closed)))


class Filling:
    def __init__(self, review: JSON, random: Random) -> None:
        self.request = json.loads(json.dumps(review["request"]))
        self._review = review
        self._random = random
        self._held: list[tuple[str, bytes]] = []

    def any_text(self) -> str:
        return self._mark(text(self._random))

    def any_object(self) -> str:
        return self._mark(b'{"f:x":' + value(self._random, 400) + b"}")

    def any_value(self) -> str:
        return self._mark(value(self._random))

    def body(self) -> bytes:
        written = json.dumps({**self._review, "request": self.request}).encode()
        for mark, held in self._held:
            written = written.replace(f'"{mark}"'.encode(), held)
        return written

    def _mark(self, held: bytes) -> str:
        mark = f"free-{len(self._held)}-field"
        self._held.append((mark, held))
        return mark


def with_free_fields(review: JSON, random: Random) -> bytes:
    filling = Filling(review, random)
    request = filling.request
    for obj in (request.get("object"), request.get("oldObject")):
        if not isinstance(obj, dict) or not isinstance(obj.setdefault("metadata", {}), dict):
            continue
        owner = {"manager": filling.any_text(), "operation": "Update", "fieldsV1": filling.any_object()}
        obj["metadata"]["managedFields"] = [owner]
        if isinstance(obj["metadata"].get("annotations"), dict):
            obj["metadata"]["annotations"]["example.com/free"] = filling.any_text()
        for holder in _holders(obj) if not request.get("oldObject") else ():  # rules compare the spec with the old spec
            # variables of a container, not of a plug-in of Volcano; Trainer forbids them in patches
            if isinstance(holder.get("env"), list) and "name" in holder and obj["kind"] != "TrainJob":
                holder["env"].append({"name": "FREE", "value": filling.any_text()})
            requests = holder.get("requests")  # in an entry of `config`, they are names
            if obj["kind"] == "ResourceClaim" and isinstance(requests, list) and any(map(_is_object, requests)):
                opaque = {"driver": "free.example.com", "parameters": filling.any_object()}
                holder.setdefault("config", []).append({"opaque": opaque})
    if isinstance(request.get("options"), dict):
        request["options"]["fieldManager"] = filling.any_text()
    if isinstance(request.get("userInfo"), dict):
        request["userInfo"]["extra"] = {"example.com/free": [filling.any_text()]}
    return filling.body()


def with_any_value(review: JSON, random: Random) -> bytes:
    """Return a review with random JSON in fields that no policy reads. In a custom resource, any JSON may replace a
    value.
    """
    filling = Filling(review, random)
    for name in ("object", "oldObject"):
        if isinstance(filling.request.get(name), dict):
            holders = [holder for holder in _holders(filling.request[name]) if holder]
            holder = random.choice(holders)
            holder[random.choice([*holder])] = random.choice((filling.any_text, filling.any_value))()
    return filling.body()


def _is_object(value: JSON) -> bool:
    return isinstance(value, dict)


def _holders(value: JSON) -> Iterator[dict[str, JSON]]:
    """Yield all maps inside a value, including the value itself."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for held in [*value.values()] if isinstance(value, dict) else value:
            yield from _holders(held)


@dataclass
class Outcome:
    """Counts of answers, the answers that differ, and the answers that show a bug of claimgate."""

    answers: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


_CONTAINER: Final = {"name": "pytorch", "image": "i", "env": [], "resources": {"requests": {"nvidia.com/gpu": "1"}}}
_TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER]}}
_NEVER: Final = {
    "apiVersion": "resource.nvidia.com/v1beta1",
    "kind": "GpuConfig",
    "sharing": {"strategy": "Never"},
}
_REQUEST: Final = {"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
DENIED: Final = (
    ("v1", "Pod", _TEMPLATE["spec"]),
    ("apps/v1", "Deployment", {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}),
    ("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": _TEMPLATE}}}),
    (
        "resource.k8s.io/v1",
        "ResourceClaim",
        {
            "devices": {
                "requests": [_REQUEST],
                "config": [{"opaque": {"driver": "gpu.nvidia.com", "parameters": _NEVER}}],
            }
        },
    ),
)
"""Objects that a shipped policy denies: apiVersion, kind, spec"""


def denied_objects() -> Group:
    made = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "annotations": {}}, "spec": spec}
        for version, kind, spec in DENIED
    ]
    return Group(tuple(made), ())


def recorded(rounds: int) -> Iterator[Group]:
    """Yield reviews that a real API server sent, and reviews of denied objects, in this number of rounds."""
    return chain.from_iterable(repeat([*recorded_groups(), denied_objects()], rounds))


def compare(asked: Iterable[Group], seed: int) -> Outcome:
    outcome, random, served = Outcome(), Random(seed), Served()
    policies: dict[tuple[Path, ...], PolicySet] = {}
    for group in asked:
        if group.policies not in policies:
            policies[group.policies] = load(group.policies)
        served.hold(policies[group.policies], group.context)
        for review in _reviews(group):
            plain = answer(served, group, json.dumps(review).encode())
            outcome.answers["allowed" if plain["response"]["allowed"] else "denied"] += 1
            filled = with_free_fields(review, random)
            if group.has_shipped_policies and (found := answer(served, group, filled)) != plain:
                outcome.differences.append(f"{filled[:2000]!r}\nplain: {plain}\nfilled: {found}")
            filled = with_any_value(review, random)
            if "bug of claimgate" in str(found := answer(served, group, filled)):
                outcome.faults.append(f"{filled[:2000]!r}\n{found}")
    return outcome


def _reviews(group: Group) -> Iterator[JSON]:
    for fixture in group.fixtures:
        try:
            made = fixtures.attributes_of_fixture(fixture, TABLE.row)
        except CallError:
            continue
        if made.is_decoded or not fixtures.is_review(fixture):
            sent = fixture if fixtures.is_review(fixture) else review_of_attributes(made)
            if sent["apiVersion"] == wire.API_VERSION:
                yield sent


def answer(served: Served, group: Group, body: bytes) -> Any:
    attributes = decode_review_bytes(body)
    verdict = served.review(attributes, group.phase, Deadline())
    return json.loads(encode_response(attributes.uid, verdict, group.phase, attributes.operation))
