"""Limits how deeply JSON is nested, how large its integers are, and how many numbers take long to read.

Brackets and runs of digits are looked for in the bytes, at a nanosecond each: nothing recurses into a body that is
nested too deeply, and only objects that may hold an integer outside int64 are walked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate, islice
from typing import Final

from webhook.admission import wire
from webhook.attributes import JSON
from webhook.errors import CallError
from webhook.paths import MAX_DEPTH

_BLOCK: Final = 1 << 16


_SIGNS: Final = {**dict.fromkeys(b"0123456789", ord("0")), **dict.fromkeys(b"-:[, \t\r\n", ord(":"))}
_DIGITS: Final = bytes(_SIGNS.get(byte, ord("x")) for byte in range(256))
"""Digits as 0, and as a colon what stands before an integer in a list or an object."""
_LONG_NUMBER: Final = b":" + b"0" * 19
"""The least digits of an integer outside int64. In a text, other characters mostly stand before as many digits."""
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

    A double near the largest or the smallest one, as 1e308, takes 6 to 10 us where others take 20 ns: 127 KB of them
    took 190 ms, and nothing interrupts a decoder. Only an exponent writes such a number in few bytes, so exponents are
    counted, at two nanoseconds a byte.
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
        OverflowError: no double can hold one.
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


_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""An opening bracket is one level more, a closing one is one less: -1 as a signed byte."""
_NO_OPENING_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b"{[")
_NO_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')
_STRETCH: Final = 32
_ROUNDS: Final = 8


def refuse_deep_json(body: bytes) -> None:
    """Refuse JSON nested deeper than MAX_DEPTH before anything recurses into it.

    Bodies with few brackets, nearly all of them, are settled by counting: an object that follows another one in a list
    is no deeper, and those in strings are counted on both sides. Of the others only the brackets are kept, as
    steps down and up, and those are added up: stretch by stretch, one by one only where a stretch comes near the bound.
    A bracket that closes nothing is the decoder's to refuse, which reads no further.

    Raises:
        CallError: 400 when it is nested too deeply, or when its brackets do not match.
    """
    opening = len(body.translate(None, _NO_OPENING_BRACKET))
    if opening <= MAX_DEPTH or opening - body.count(b"},{") <= MAX_DEPTH:
        return
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # the quotes between two strings, or of an empty one, say nothing: without them, no text makes many pieces below
    steps = unescaped.translate(_STEPS, _NO_BRACKET).replace(b'""', b"")
    depth, in_string = 0, 0
    for start in range(0, len(steps), _BLOCK):
        pieces = steps[start : start + _BLOCK].split(b'"')
        depth = _depth_after_brackets(b"".join(pieces[in_string::2]), depth)
        in_string = (in_string + len(pieces) - 1) % 2
    if depth:
        raise CallError(400, "BadRequest", f"the body is not JSON: its brackets do not match; {wire.EXPECTED}")


def _depth_after_brackets(steps: bytes, depth: int) -> int:
    """Return the depth after some brackets that begin at a depth."""
    rest, rounds = _remove_innermost_bracket_pairs(steps)
    down = rest.count(b"\x01")
    if depth + down + rounds <= MAX_DEPTH:
        return depth + 2 * down - len(rest)
    signed = memoryview(steps).cast("b")
    for start in range(0, len(steps), _STRETCH):
        down = steps.count(b"\x01", start, start + _STRETCH)
        if depth + down > MAX_DEPTH and max(accumulate(signed[start : start + _STRETCH], initial=depth)) > MAX_DEPTH:
            text = f"the body is nested deeper than {MAX_DEPTH} levels; {wire.EXPECTED}"
            raise CallError(400, "BadRequest", text)
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
