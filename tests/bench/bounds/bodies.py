"""Bodies that are hostile as bytes: brackets, texts of megabytes, broken JSON, wrong types."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.bench.bounds.reviews import JSON, container, pod, review

MB = 1_000_000
DEPTH = 190


def nested(size: int, depth: int = DEPTH) -> bytes:
    """Return a valid review with many lists in lists, each as deep as allowed."""
    whole = review(pod({"x": "HERE"}))
    return whole.replace(b'"HERE"', b"[" + b",".join([b"[" * depth + b"]" * depth] * (size // (2 * depth + 1))) + b"]")


def nested_maps(size: int, depth: int = DEPTH) -> bytes:
    """Return a valid review with deeply nested maps, and with brackets in keys."""
    whole = review(pod({"x": "HERE"}))
    one = b'{"[":' * depth + b"0" + b"}" * depth
    return whole.replace(b'"HERE"', b"[" + b",".join([one] * (size // len(one))) + b"]")


def quotes(size: int) -> bytes:
    """Return a valid review with a long text of escaped quotes, backslashes and brackets."""
    return review(pod(metadata={"annotations": {"text": '\\"[{' * (size // 7)}}))


def pod_text(size: int, piece: str, *, script: bool = False, end: str = "") -> JSON:
    """Return a Pod with one long argument or shell script. `end` makes the text unique."""
    words = ["/bin/bash", "-c"] if script else ["torchrun"]
    return pod({"containers": [container("main", command=words, args=[piece * (size // len(piece)) + end])]})


def long_names(size: int) -> JSON:
    """Return a Pod with texts of megabytes as names, images and labels."""
    text = "a" * (size // 5)
    return pod({"containers": [{"name": text, "image": text}], "nodeName": text}, {"name": text, "labels": {"a": text}})


def wrong_types(n: int) -> JSON:
    """Return a Pod with n containers in which fields have values of a wrong type."""
    wrong: list[JSON] = [None, True, 1, -1.5, "", "x", [], {}, [[]], {"a": None}]
    fields = ("name", "image", "env", "resources", "args", "ports", "volumeMounts", "command", "securityContext")
    containers = [{field: wrong[(i + k) % len(wrong)] for k, field in enumerate(fields)} for i in range(n)]
    return pod({"containers": containers, "volumes": wrong * 9, "tolerations": {"a": 1}, "resourceClaims": wrong * 9})


def twice(size: int) -> bytes:
    """Return the review of an update that changes one field of an object of this size."""
    new = pod({"containers": [container(f"c-{i}", env=[{"name": "A", "value": "b"}]) for i in range(size // 200)]})
    old = json.loads(json.dumps(new))
    old["spec"]["containers"][-1]["image"] = "registry.example/other:1"
    return review(new, old=old)


NOT_REVIEWS: dict[str, Callable[[], bytes]] = {
    "20 MB of garbage": lambda: bytes(range(1, 256)) * (20 * MB // 255),
    "20 MB of brackets": lambda: b"[" * (20 * MB),
    "20 MB of one text": lambda: b'"' + b"a" * (20 * MB),
    "20 MB of spaces": lambda: b" " * (20 * MB),
    "20 MB of digits": lambda: b'{"a":' + b"9" * (20 * MB),
    "20 MB of zeros": lambda: b"[" + b"0," * (10 * MB - 1) + b"0]",
    "truncated JSON, 3 MB": lambda: nested(3 * MB)[:-7],
    "not UTF-8, 3 MB": lambda: b'{"a":"' + b"\xff" * (3 * MB) + b'"}',
}
