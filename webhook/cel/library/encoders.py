"""Base64 functions and string.reverse, which cel-go has and Kubernetes does not; for cel-spec's conformance only.

Sources: cel-go v0.26.0 ext/encoders.go, ext/strings.go version 3.

base64.encode(bytes) -> string
base64.decode(string) -> bytes, padded or not
string.reverse() -> string
"""

from __future__ import annotations

import base64
import binascii

from webhook.cel.library.declaration import Overload
from webhook.cel.types import BYTES, STRING
from webhook.errors import EvaluationError


def decode_base64(text: str) -> bytes:
    """Return the bytes of standard base64, with or without its padding."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("illegal base64 data") from None


FUNCTIONS = (
    Overload("base64.decode", "base64_decode_string", (STRING,), BYTES, decode_base64),
    Overload("base64.encode", "base64_encode_bytes", (BYTES,), STRING, lambda value: base64.b64encode(value).decode()),
    Overload("reverse", "string_reverse", (STRING,), STRING, lambda text: text[::-1], member=True),
)
