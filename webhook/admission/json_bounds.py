"""Finds integers outside int64, and bodies with many numbers that are slow to read. A search for runs of digits takes a
nanosecond a byte, so only objects that may have such an integer are walked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from webhook.apimachinery.attributes import JSON

_BLOCK: Final = 1 << 16


_SIGNS: Final = {**dict.fromkeys(b"0123456789", ord("0")), **dict.fromkeys(b"-:[, \t\r\n", ord(":"))}
_DIGITS: Final = bytes(_SIGNS.get(byte, ord("x")) for byte in range(256))
"""Maps digits to 0, and the characters before an integer in a list or an object to a colon."""
_LONG_NUMBER: Final = b":" + b"0" * 19
"""The least digits of an integer outside int64. In a text, other characters mostly come before as many digits."""
_INT64: Final = range(-(2**63), 2**63)


def has_long_number(body: bytes) -> bool:
    """Return whether there may be an integer outside int64; searches block by block, without a copy of a large body."""
    if len(body) <= _BLOCK:
        return _LONG_NUMBER in body.translate(_DIGITS)
    overlap = len(_LONG_NUMBER) - 1
    blocks = (body[max(0, start - overlap) : start + _BLOCK] for start in range(0, len(body), _BLOCK))
    return any(_LONG_NUMBER in block.translate(_DIGITS) for block in blocks)


_EXPONENTS: Final = bytes(
    {**dict.fromkeys(b"0123456789-+", ord("0")), **dict.fromkeys(b"eE", ord("e"))}.get(byte, ord("x"))
    for byte in range(256)
)
"""Digits and signs as 0, the letter before an exponent as e, so that one search finds every exponent."""
_NUMBER_WITH_EXPONENT: Final = re.compile(rb"[-:[,\s][0-9][0-9.]*[eE][-+]?[0-9]")
_MOST_EXPONENTS: Final = 300
_QUICK_BYTES: Final = 8 * 1024
"""As many bytes hold no more numbers than take 12 ms; looking for them would cost every ordinary review 12 us."""


def takes_long_to_decode(body: bytes) -> bool:
    """Return whether numbers of a body that is larger than usual may take more than 3 ms to decode.

    A double near the largest or the smallest double, such as 1e308, takes 6 to 10 us; other numbers take 20 ns. 127 KB
    of such numbers took 190 ms, and nothing interrupts a decoder. Only an exponent writes such a number in few bytes,
    so exponents are counted, at two nanoseconds a byte.
    """
    if len(body) <= _QUICK_BYTES:
        return False
    if body.translate(_EXPONENTS).count(b"0e0") <= _MOST_EXPONENTS:
        return False
    numbers = _NUMBER_WITH_EXPONENT.finditer(body)  # other texts have as many: hashes, escaped characters
    return next(islice(numbers, _MOST_EXPONENTS, None), None) is not None


def convert_large_integers_to_doubles(values: Iterable[JSON]) -> None:
    """Change integers outside int64 to doubles, as the API server reads JSON (k8s.io/apimachinery v0.36.1 util/json).

    Raises:
        OverflowError: an integer does not fit a double.
    """
    for value in values:
        pending: list[JSON] = [value]
        while pending:
            holder = pending.pop()
            if not isinstance(holder, dict | list):
                continue
            for key, held in holder.items() if isinstance(holder, dict) else enumerate(holder):
                if type(held) is int and held not in _INT64:
                    holder[key] = float(held)
                elif isinstance(held, dict | list):
                    pending.append(held)
