"""Tells quickly, by its MessagePack encoding, whether a value has neither nulls nor keys of merge directives.

msgspec writes it, and CPython searches it, far faster than Python walks the value: MessagePack has texts unchanged.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline

_encode: Final = msgspec.msgpack.Encoder().encode
_NIL: Final = b"\xc0"
"""The encoding of a null (MessagePack specification, "nil format"). No UTF-8 has this byte; lengths and numbers may."""
_DIRECTIVE: Final = re.compile(rb"[\xa0-\xbf]\$|\xd9.\$|\xda..\$|\xdb....\$", re.DOTALL)
"""Matches a text that begins with a dollar, after its length ("str format family"); other bytes may match too."""


def has_no_null_or_dollar_key(value: JSON, deadline: Deadline) -> bool:
    """Return whether a value has no null and no key that begins with a dollar; False if that is not certain."""
    deadline.check_clock()  # msgspec cannot be interrupted
    try:
        written = _encode(value)
    except (ValueError, OverflowError, TypeError):  # numbers of any length, halves of characters, what was not read
        return False
    deadline.spend_text(written)
    return _NIL not in written and not (b"$" in written and _DIRECTIVE.search(written))
