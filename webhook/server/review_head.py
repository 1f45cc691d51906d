"""Finds out whose review a body is before it is decoded whole."""

from __future__ import annotations

from webhook.admission.decode import decode_request_without_objects
from webhook.apimachinery.attributes import Attributes
from webhook.server.large_body import LargeBody


def read_head(body: bytes | LargeBody) -> Attributes | None:
    """Return the request that the beginning of a body names, without its objects; None if it names none.

    Of a large body a longer beginning is tried when the first is not enough.
    """
    beginnings = body.beginnings() if isinstance(body, LargeBody) else (body,)
    return next(filter(None, map(decode_request_without_objects, beginnings)), None)
