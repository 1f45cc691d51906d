"""Finds quickly, in the MessagePack encoding of a value, whether the value has no nulls and no keys of merge
directives.

msgspec encodes the value and CPython searches the bytes far faster than Python walks the value. MessagePack does not
change texts.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline

_encode: Final = msgspec.msgpack.Encoder().encode
_NIL: Final = b"\xc0"
"""The encoding of null (MessagePack specification, "nil format"). UTF-8 texts never contain this byte, but lengths
and numbers may."""
_DIRECTIVE: Final = re.compile(rb"[\xa0-\xbf]\$|\xd9.\$|\xda..\$|\xdb....\$", re.DOTALL)
"""Matches the length of a text and a dollar at its beginning ("str format family"). Other bytes may match, too."""


def has_no_null_or_dollar_key(value: JSON, deadline: Deadline) -> bool:
    """Return whether a value certainly has no null and no key that begins with a dollar."""
    deadline.check_clock()  # msgspec cannot be interrupted
    try:
        written = _encode(value)
    except (ValueError, OverflowError, TypeError):  # integers above 64 bits, halves of surrogate pairs, unread parts
        return False
    deadline.spend_text(written)
    return _NIL not in written and not (b"$" in written and _DIRECTIVE.search(written))
