"""Whether a value has neither nulls nor keys of merge directives anywhere, as nearly none has: told by its MessagePack.

msgspec writes it, and CPython searches it, far faster than Python walks the value: MessagePack has texts as they are.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from webhook.attributes import JSON
from webhook.deadline import Deadline

_encode: Final = msgspec.msgpack.Encoder().encode
_NIL: Final = b"\xc0"
"""How a null is written (MessagePack specification, "nil format"). No UTF-8 has this byte; lengths and numbers may."""
_DIRECTIVE: Final = re.compile(rb"[\xa0-\xbf]\$|\xd9.\$|\xda..\$|\xdb....\$", re.DOTALL)
"""A text that begins with a dollar, after its length ("str format family"); the end of others may look like it."""


def is_bare(value: JSON, deadline: Deadline) -> bool:
    """Whether a value has no null and no key that begins with a dollar; False where nobody can tell so."""
    deadline.look()  # msgspec cannot be interrupted
    try:
        written = _encode(value)
    except (ValueError, OverflowError, RecursionError):  # numbers of any length, halves of characters
        return False
    deadline.spend_text(written)
    return _NIL not in written and not (b"$" in written and _DIRECTIVE.search(written))
