"""Explains why a text is not an IP address, in the words of Go's netip.ParseAddr, which the API server's messages
quote.

Reads from the left and names the first mistake; the rest of the text from there on is quoted where Go does. Source:
net/netip/netip.go of Go 1.26. Nothing here reads more than some forty characters of a text.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.cel.library.go_text import quote_as_go
from webhook.deadline import Deadline

_FIRST_SIGN: Final = re.compile("[.:%]")
_GROUP: Final = re.compile("[0-9a-fA-F]{0,5}")
_DIGITS: Final = frozenset("0123456789")
_GROUPS = 8
_GROUPS_BEFORE_IPV4 = 6
_NO_DIGIT = "each colon-separated field must have at least one digit"
_IPV4_BEFORE_END = "embedded IPv4 address must replace the final 2 fields of the address"
_IPV4_AFTER_END = "too many hex fields to fit an embedded IPv4 at the end of the address"


class _AddressMistake(Exception):
    """The mistake in an address, and the text from there on, which may be empty."""

    def __init__(self, reason: str, rest: str = "") -> None:
        super().__init__(reason)
        self.rest = rest


def address_error(text: str, deadline: Deadline | None = None) -> str:
    """Return the error of Go's ParseAddr for a text that is not an address; "" when Go accepts the text."""
    try:
        _check_address(text)
    except _AddressMistake as mistake:
        place = f" (at {quote_as_go(mistake.rest, deadline)})" if mistake.rest else ""
        return f"ParseAddr({quote_as_go(text, deadline)}): {mistake}{place}"
    return ""


def _check_address(text: str) -> None:
    sign = _FIRST_SIGN.search(text)
    if sign is None:
        raise _AddressMistake("unable to parse IP")
    if sign[0] == ".":
        _check_ipv4(text)
    elif sign[0] == ":":
        _check_ipv6(text)
    else:
        raise _AddressMistake("missing IPv6 address")


def _check_ipv4(text: str) -> None:
    digits, dots, last = "", 0, len(text) - 1
    for index, character in enumerate(text):
        if character in _DIGITS:
            if digits == "0":
                raise _AddressMistake("IPv4 field has octet with leading zero")
            digits += character
            if int(digits) > 255:
                raise _AddressMistake("IPv4 field has value >255")
        elif character != ".":
            raise _AddressMistake("unexpected character", text[index:])
        elif not digits or index == last:
            raise _AddressMistake("IPv4 field must have at least one digit", text[index:])
        elif dots == 3:
            raise _AddressMistake("IPv4 address too long")
        else:
            digits, dots = "", dots + 1
    if dots < 3:
        raise _AddressMistake("IPv4 address too short")


def _check_ipv6(text: str) -> None:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _AddressMistake("zone must be a non-empty string")
    has_gap = rest.startswith("::")
    rest = rest.removeprefix("::")
    groups = 0
    while groups < _GROUPS and (rest or not has_gap):
        behind = _text_after_group(rest)
        if behind.startswith("."):
            if not has_gap and groups != _GROUPS_BEFORE_IPV4:
                raise _AddressMistake(_IPV4_BEFORE_END, rest)
            if groups > _GROUPS_BEFORE_IPV4:
                raise _AddressMistake(_IPV4_AFTER_END, rest)
            _check_ipv4(rest)
            groups, rest = groups + 2, ""
            break
        groups, rest = groups + 1, behind
        if not rest:
            break
        rest = _text_after_colon(rest)
        if rest.startswith(":"):
            if has_gap:
                raise _AddressMistake("multiple :: in address", rest)
            has_gap, rest = True, rest[1:]
    _check_group_count(groups, rest, has_gap=has_gap)


def _text_after_group(rest: str) -> str:
    match = _GROUP.match(rest)
    end = match.end() if match else 0
    if end > 4:
        raise _AddressMistake("each group must have 4 or less digits", rest)
    if not end:
        raise _AddressMistake(_NO_DIGIT, rest)
    return rest[end:]


def _text_after_colon(rest: str) -> str:
    if not rest.startswith(":"):
        raise _AddressMistake("unexpected character, want colon", rest)
    if rest == ":":
        raise _AddressMistake("colon must be followed by more characters", rest)
    return rest[1:]


def _check_group_count(groups: int, rest: str, *, has_gap: bool) -> None:
    if rest:
        raise _AddressMistake("trailing garbage after address", rest)
    if groups < _GROUPS and not has_gap:
        raise _AddressMistake("address string too short")
    if groups == _GROUPS and has_gap:
        raise _AddressMistake("the :: must expand to at least one field of zeros")
