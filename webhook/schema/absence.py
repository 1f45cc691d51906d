"""Whether a value lacks something wherever it might stand, as nearly all do: told by its JSON.

msgspec writes the JSON of a value, and CPython searches it, some ten times as fast as Python walks it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from webhook.attributes import JSON
from webhook.deadline import Deadline

_encode: Final = msgspec.json.Encoder().encode


def lacks(value: JSON, deadline: Deadline, *texts: bytes) -> bool:
    """Whether none of some texts stands in the JSON of a value; False where nobody can tell so.

    A key that begins with a dollar has `b'"$'` in its JSON, and so have some other values: there one has to look.
    """
    deadline.look()  # msgspec cannot be interrupted
    try:
        written = _encode(value)
    except (ValueError, OverflowError, RecursionError):  # numbers of any length, halves of characters
        return False
    deadline.spend_text(written)
    return not any(text[-1:] in written and text in written for text in texts)  # one byte is found fastest
