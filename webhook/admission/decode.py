"""Decodes AdmissionReviews from bytes, or from parsed JSON, to Attributes, and converts Attributes back to a review.

An error about a field names the path, what was found and what was expected. In an object, only metadata.name is read.
Integers outside int64 are rare. So the bytes are searched for runs of digits, which takes a nanosecond a byte. Only an
object that may have such an integer is walked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final, TypeVar

import msgspec

from webhook.admission import wire
from webhook.apimachinery.attributes import (
    JSON,
    NOBODY,
    Attributes,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
    UserInfo,
)
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.deadline import Deadline
from webhook.errors import CallError
from webhook.evaluation.request_context import request_as_cel_value
from webhook.rules.text import shorten_text
from webhook.yamltext.jsontext import decode_any_json, is_deeper_than

_REVIEW: Final = msgspec.json.Decoder(wire.Review)
_HEAD: Final = msgspec.json.Decoder(wire.ReviewHead)
_HEAD_BYTES: Final = 4 * 1024 * 1024
"""The key of the object is searched within this many bytes. A name before the object can have 3 MB."""
_OBJECT_KEY: Final = re.compile(rb'"object"\s*:')
"""Matches the key of the object. Within a string, a quote has a backslash; after a string value comes no colon."""
_WHOLE_BYTES: Final = 1024 * 1024
"""The largest body that is decoded as a whole to find its head, which takes some milliseconds."""
_SLOW_S_PER_BYTE: Final = 5e-7
"""The most seconds for a byte of a body that msgspec refuses; brackets and escaped characters take longest."""
Names = TypeVar("Names", bound=tuple[str, ...])
_LONGEST_NAME: Final = 253
"""The most characters of a group, kind, resource or namespace that an API server serves."""
_OPERATIONS: Final = {operation.value: operation for operation in Operation}


def decode_review_bytes(body: bytes, deadline: Deadline | None = None) -> Attributes:
    """Return the request of one AdmissionReview from its bytes.

    API servers also store bytes that are not UTF-8, halves of surrogate pairs, and numbers that do not fit a double.
    msgspec refuses such bodies, so a slower decoder reads them. The slower decoder also reads bodies with up to 10,000
    levels.

    Raises:
        CallError: 400 if the body is not JSON, not an AdmissionReview of version v1, or lacks a required field.
        Exception: the error of the deadline, if the slower decoder needs more time than is left.
    """
    if is_deeper_than(MAX_DEPTH, body):
        return _decode_slowly(body, deadline)
    try:
        review = _REVIEW.decode(body)
        if review.request is not None and has_long_number(body):
            convert_large_integers_to_doubles(
                (review.request.object, review.request.old_object, review.request.options)
            )
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError):
        return _decode_slowly(body, deadline)
    return _attributes_of_review(review)


def _decode_slowly(body: bytes, deadline: Deadline | None) -> Attributes:
    until = deadline or Deadline()
    until.require_time_for_call(len(body) * _SLOW_S_PER_BYTE)
    try:
        value = decode_any_json(body, until)
    except ValueError as error:
        raise _bad_request_error(f"the body is not JSON: {_error_in_lower_case(error)}; {wire.EXPECTED}") from None
    return decode_review(value)


def decode_request_without_objects(body: bytes) -> Attributes | None:
    """Return the request without its objects, and without groups and extra of its user; None if the head is unreadable.

    kube-apiserver writes the objects last (k8s.io/api v0.36 admission/v1/types.go). The result has the uid, the user
    and the operation of a review before its objects are decoded.
    """
    key = _OBJECT_KEY.search(body, 0, _HEAD_BYTES)
    if key is not None:
        head = _decode_head_or_none(body[: key.start()].rstrip(b", \t\r\n") + b"}}")
        if head is not None:
            return head
    return _decode_head_or_none(body) if len(body) <= _WHOLE_BYTES else None


def _decode_head_or_none(text: bytes) -> Attributes | None:
    try:
        review = _HEAD.decode(text)
        if review.request is None or not review.request.operation or not _is_answered(review):
            return None
        fields = {name: getattr(review.request, name) for name in wire.RequestHead.__struct_fields__}
        named = fields.pop("user_info")
        user = None if named is None else wire.User(username=named.username)
        return _attributes_of_request(wire.Request(**fields, user_info=user))
    except (CallError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # the decoder of the whole body reports the mistake


def _is_answered(review: wire.ReviewHead) -> bool:
    return review.kind in (None, wire.KIND) and review.api_version in (None, wire.API_VERSION)


def decode_review(review: JSON) -> Attributes:
    """Return the request of a parsed AdmissionReview.

    Raises:
        CallError: 400, as `decode_review_bytes`.
    """
    try:
        return _attributes_of_review(msgspec.convert(review, wire.Review))
    except msgspec.ValidationError as error:
        raise _bad_request_error(wire.explain_parse_error(error)) from None


def decode_request(request: JSON) -> Attributes:
    """Return the request of a parsed bare `request`.

    Raises:
        CallError: 400, as `decode_review_bytes`.
    """
    try:
        return _attributes_of_request(msgspec.convert(request, wire.Request))
    except msgspec.ValidationError as error:
        raise _bad_request_error(wire.explain_parse_error(error, root="request")) from None


def _attributes_of_review(review: wire.Review) -> Attributes:
    group, _, version = (review.api_version or "").rpartition("/")
    if review.kind != wire.KIND or group != wire.GROUP:
        given = f"apiVersion `{_shortened_value(review.api_version)}` and kind `{_shortened_value(review.kind)}`"
        raise _bad_request_error(f"the body is not an AdmissionReview: found {given}, {wire.EXPECTED}")
    if version != "v1":
        hint = "list `v1` in admissionReviewVersions of the webhook configuration"
        raise _bad_request_error(
            f"apiVersion: `{_shortened_value(review.api_version)}` is not served, expected `{wire.API_VERSION}`; {hint}"
        )
    if review.request is None:
        raise _bad_request_error(
            "request: expected an object, found none; the body must carry the request to be reviewed"
        )
    return _attributes_of_request(review.request)


def _attributes_of_request(request: wire.Request) -> Attributes:
    if not request.uid:
        raise _bad_request_error("request.uid: expected a string, found none; the answer must echo it")
    operation = _OPERATIONS.get(request.operation or "")
    if operation is None:
        given = f"`{_shortened_value(request.operation)}`" if request.operation else "none"
        raise _bad_request_error(f"request.operation: expected one of {', '.join(_OPERATIONS)}, found {given}")
    kind = _group_version_kind(request.kind, "request.kind")
    resource = _group_version_resource(request.resource, "request.resource")
    sub_resource = _check_one_name_length(request.sub_resource or "", "request.subResource")
    was_kind, was_resource = request.request_kind, request.request_resource
    same_kind = was_kind is None or was_kind == request.kind
    same_resource = was_resource is None or was_resource == request.resource
    return Attributes(
        uid=request.uid,
        kind=kind,
        resource=resource,
        operation=operation,
        sub_resource=sub_resource,
        request_kind=kind if same_kind else _group_version_kind(was_kind, "request.requestKind"),
        request_resource=resource
        if same_resource
        else _group_version_resource(was_resource, "request.requestResource"),
        request_sub_resource=sub_resource if was_resource is None else request.request_sub_resource or "",
        name=request.name or _request_name_from_object(request, operation),
        namespace=_check_one_name_length(request.namespace or "", "request.namespace"),
        user_info=_user_info(request.user_info),
        object=request.object,
        old_object=request.old_object,
        options=request.options,
        dry_run=bool(request.dry_run),
        is_decoded=True,  # an API server has decoded the object
    )


def _request_name_from_object(request: wire.Request, operation: Operation) -> str:
    # API servers may send no name for a creation, and for the deletion of a collection
    named = request.old_object if operation is Operation.DELETE else request.object
    metadata = named.get("metadata") if named else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and not request.sub_resource else ""


def _group_version_kind(kind: wire.Kind | None, path: str) -> GroupVersionKind:
    if kind is None or not kind.kind or not kind.version:
        raise _bad_request_error(f"{path}: expected group, version and kind, found none or empty texts")
    named = GroupVersionKind(kind.group or "", kind.version, kind.kind)
    return named if sum(map(len, named)) <= _LONGEST_NAME else _check_name_lengths(named, path)


def _group_version_resource(resource: wire.Resource | None, path: str) -> GroupVersionResource:
    if resource is None or not resource.resource or not resource.version:
        raise _bad_request_error(f"{path}: expected group, version and resource, found none or empty texts")
    named = GroupVersionResource(resource.group or "", resource.version, resource.resource)
    return named if sum(map(len, named)) <= _LONGEST_NAME else _check_name_lengths(named, path)


def _check_name_lengths(names: Names, path: str) -> Names:
    # these names are keys of the index of policies, and the index bounds the number of keys but not their length
    longest = max(map(len, names))
    if longest > _LONGEST_NAME:
        raise _bad_request_error(f"{path}: expected at most {_LONGEST_NAME} characters in a name, found {longest}")
    return names


def _check_one_name_length(name: str, path: str) -> str:
    return name if len(name) <= _LONGEST_NAME else _check_name_lengths((name,), path)[0]


def _user_info(user: wire.User | None) -> UserInfo:
    if user is None:
        return NOBODY
    extra = {key: tuple(values or ()) for key, values in user.extra.items()} if user.extra else NOBODY.extra
    return UserInfo(user.username or "", user.uid or "", tuple(user.groups or ()), extra)


def _shortened_value(given: str | None) -> str:
    # a wrong value can have 2 MB, and the message is logged and sent
    return shorten_text(given or "", _LONGEST_NAME)


def _bad_request_error(message: str) -> CallError:
    return CallError(400, "BadRequest", message)


def _error_in_lower_case(error: Exception) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]


def review_of_attributes(attributes: Attributes) -> JSON:
    """Return the AdmissionReview that an API server would send for these attributes."""
    sent = {
        "uid": attributes.uid,
        **request_as_cel_value(attributes, attributes.resource, attributes.kind),
        "object": attributes.object,
        "oldObject": attributes.old_object,
    }
    return {"apiVersion": wire.API_VERSION, "kind": wire.KIND, "request": sent}


_BLOCK: Final = 1 << 16


_SIGNS: Final = {**dict.fromkeys(b"0123456789", ord("0")), **dict.fromkeys(b"-:[, \t\r\n", ord(":"))}
_DIGITS: Final = bytes(_SIGNS.get(byte, ord("x")) for byte in range(256))
"""Maps digits to 0, and the characters that may precede an integer to a colon."""
_LONG_NUMBER: Final = b":" + b"0" * 19
"""The fewest digits of an integer outside int64, after a colon; rare in texts."""
_INT64: Final = range(-(2**63), 2**63)


def has_long_number(body: bytes) -> bool:
    """Return whether a body may have an integer outside int64."""
    if len(body) <= _BLOCK:
        return _LONG_NUMBER in body.translate(_DIGITS)
    overlap = len(_LONG_NUMBER) - 1
    blocks = (body[max(0, start - overlap) : start + _BLOCK] for start in range(0, len(body), _BLOCK))
    return any(_LONG_NUMBER in block.translate(_DIGITS) for block in blocks)


_EXPONENTS: Final = bytes(
    {**dict.fromkeys(b"0123456789-+", ord("0")), **dict.fromkeys(b"eE", ord("e"))}.get(byte, ord("x"))
    for byte in range(256)
)
"""Maps digits and signs to 0, and both letters of an exponent to e: one search finds every exponent."""
_NUMBER_WITH_EXPONENT: Final = re.compile(rb"[-:[,\s][0-9][0-9.]*[eE][-+]?[0-9]")
_MOST_EXPONENTS: Final = 300
_QUICK_BYTES: Final = 8 * 1024
"""Bodies up to this size are not searched: the slowest body takes 12 ms to decode, and the search would take 12 us for
an ordinary review."""


def takes_long_to_decode(body: bytes) -> bool:
    """Return whether numbers of a body above 8 KiB may take more than 3 ms to decode.

    A very large or very small double, such as 1e308, takes 6 to 10 us. Other numbers take 20 ns. A body with 127 KB of
    such doubles took 190 ms, and a decoder cannot be interrupted. Only an exponent makes such doubles short, so this
    function counts exponents, at two nanoseconds a byte.
    """
    if len(body) <= _QUICK_BYTES:
        return False
    if body.translate(_EXPONENTS).count(b"0e0") <= _MOST_EXPONENTS:
        return False
    numbers = _NUMBER_WITH_EXPONENT.finditer(body)  # hashes and escapes also look like exponents
    return next(islice(numbers, _MOST_EXPONENTS, None), None) is not None


def convert_large_integers_to_doubles(values: Iterable[JSON]) -> None:
    """Change integers outside int64 to doubles, as the API server reads JSON (k8s.io/apimachinery v0.36.1 util/json).

    Raises:
        OverflowError: an integer is too large for a double.
    """
    for value in values:
        pending: list[JSON] = [value]
        while pending:
            holder = pending.pop()
            if not isinstance(holder, dict | list):
                continue
            for key, inner in holder.items() if isinstance(holder, dict) else enumerate(holder):
                if type(inner) is int and inner not in _INT64:
                    holder[key] = float(inner)
                elif isinstance(inner, dict | list):
                    pending.append(inner)
