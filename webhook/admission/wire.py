"""The fields of an AdmissionReview as API servers send it, and the messages about invalid reviews.

Unknown fields are allowed and null means absent, as in Go's decoder; objects stay plain JSON. Source: k8s.io/api v0.36
admission/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from webhook.admission.private_api import type_mismatch_in_error

GROUP: Final = "admission.k8s.io"
API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
EXPECTED: Final = f"expected apiVersion `{API_VERSION}` and kind `{KIND}`"


class Kind(msgspec.Struct, gc=False):
    """meta/v1 GroupVersionKind."""

    group: str | None = None
    version: str | None = None
    kind: str | None = None


class Resource(msgspec.Struct, gc=False):
    """meta/v1 GroupVersionResource."""

    group: str | None = None
    version: str | None = None
    resource: str | None = None


class User(msgspec.Struct):
    """authentication/v1 UserInfo."""

    username: str | None = None
    uid: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str] | None] | None = None


class NamedUser(msgspec.Struct, gc=False):
    """authentication/v1 UserInfo without groups and extra, which can have megabytes."""

    username: str | None = None


class _Head(msgspec.Struct, rename="camel"):
    """admission/v1 AdmissionRequest without the parts that kube-apiserver writes last: the user and the objects."""

    uid: str | None = None
    kind: Kind | None = None
    resource: Resource | None = None
    sub_resource: str | None = None
    request_kind: Kind | None = None
    request_resource: Resource | None = None
    request_sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str | None = None
    dry_run: bool | None = None


class RequestHead(_Head, rename="camel"):
    """An AdmissionRequest and its user, without the objects."""

    user_info: NamedUser | None = None


class Request(_Head, rename="camel"):
    """admission/v1 AdmissionRequest; object, oldObject and options stay plain JSON."""

    user_info: User | None = None
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    options: dict[str, Any] | None = None


class Review(msgspec.Struct, rename="camel"):
    """admission/v1 AdmissionReview, the request side."""

    api_version: str | None = None
    kind: str | None = None
    request: Request | None = None


class ReviewHead(msgspec.Struct, rename="camel"):
    """An AdmissionReview without the objects."""

    api_version: str | None = None
    kind: str | None = None
    request: RequestHead | None = None


_WORDS: Mapping[str, str] = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def explain_parse_error(error: msgspec.ValidationError, *, root: str = "") -> str:
    """Return a message with the path, and the found and expected type in the words of JSON.

    `root` is the path of the decoded value in the review, such as `request`.
    """
    mismatch = type_mismatch_in_error(error)
    if mismatch is None:
        return f"{str(error)[:1].lower()}{str(error)[1:]}"
    path = (root + mismatch.path.removeprefix("$")).lstrip(".")
    wanted = _WORDS.get(mismatch.wanted.removesuffix(" | null"), mismatch.wanted)
    given = _WORDS.get(mismatch.given, mismatch.given)
    return f"{path or 'the body'}: expected {wanted}, found {given}"
