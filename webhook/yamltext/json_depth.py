"""Tells from the bytes of JSON whether it is nested deeper than a bound, before anything recurses into it.

Brackets are counted at a nanosecond each, and nothing is decoded.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

_BLOCK: Final = 1 << 16
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""An opening bracket adds one level, a closing bracket removes one: -1 as a signed byte."""
_NO_OPENING_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b"{[")
_NO_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')
_STRETCH: Final = 32
_ROUNDS: Final = 8


def is_deeper_than(bound: int, body: bytes) -> bool:
    """Return whether JSON is nested deeper than `bound` levels. Also true for many brackets that do not match.

    Nearly all bodies have few brackets, and are decided by counting the opening ones. `},{` adds no level, so it is
    subtracted. The count is still an upper bound, because it includes brackets in strings and closed brackets. For
    other bodies, only the brackets are kept, as steps down and up. They are added up part by part, and one by one only
    in a part that is near the bound.
    """
    opening = len(body.translate(None, _NO_OPENING_BRACKET))
    if opening <= bound or opening - body.count(b"},{") <= bound:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # the quotes between two strings, or of an empty one, do not matter: without them, no text makes many pieces below
    steps = unescaped.translate(_STEPS, _NO_BRACKET).replace(b'""', b"")
    depth, in_string = 0, 0
    for start in range(0, len(steps), _BLOCK):
        pieces = steps[start : start + _BLOCK].split(b'"')
        after = _depth_after_brackets(b"".join(pieces[in_string::2]), depth, bound)
        if after is None:
            return True
        depth = after
        in_string = (in_string + len(pieces) - 1) % 2
    return depth != 0


def _depth_after_brackets(steps: bytes, depth: int, bound: int) -> int | None:
    """Return the depth after some brackets that begin at a depth; None if they go deeper than `bound`."""
    rest, rounds = _remove_innermost_bracket_pairs(steps)
    down = rest.count(b"\x01")
    if depth + down + rounds <= bound:
        return depth + 2 * down - len(rest)
    signed = memoryview(steps).cast("b")
    for start in range(0, len(steps), _STRETCH):
        down = steps.count(b"\x01", start, start + _STRETCH)
        if depth + down > bound and max(accumulate(signed[start : start + _STRETCH], initial=depth)) > bound:
            return None
        depth += 2 * down - min(_STRETCH, len(steps) - start)
    return depth


def _remove_innermost_bracket_pairs(steps: bytes) -> tuple[bytes, int]:
    """Return the brackets without innermost pairs, and the number of rounds, which is how much deeper they were at
    most.
    """
    for rounds in range(_ROUNDS):
        shorter = steps.replace(b"\x01\xff", b"")
        if len(shorter) * 4 > len(steps) * 3:
            return steps, rounds
        steps = shorter
    return steps, _ROUNDS
