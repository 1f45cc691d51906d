"""IP addresses: kubernetes.net.ip, since 1.30. Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/ip.go, Go net/netip.

ip(string) -> net.IP
    Reads an IPv4 or IPv6 address. Zones and IPv4 inside IPv6 (`::ffff:1.2.3.4`) are refused.

    ip('192.168.0.1') == ip('192.168.0.1') // true
    ip('::ffff:1.2.3.4') // error: IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed
    ip('fe80::1%eth0') // error: IP address "fe80::1%eth0" with zone value is not allowed

isIP(string) -> bool

    isIP('2001:db8::1') // true
    isIP('127.0.0.01') // false
    isIP(dyn(1)) // error: no such overload

ip.isCanonical(string) -> bool
    Whether the address is written in the canonical form.

    ip.isCanonical('2001:db8::abcd') // true
    ip.isCanonical('2001:DB8::ABCD') // false
    ip.isCanonical('2001:db8:0:0:0:0:0:abcd') // false
    ip.isCanonical('no') // error: IP Address "no" parse error during conversion from string:

string(net.IP) -> string

    string(ip('2001:DB8::0:1')) // '2001:db8::1'
    [{}].map(m, string(dyn(m))) // error: no such overload

net.IP.family() -> int
    4 or 6.

    ip('127.0.0.1').family() // 4
    ip('::1').family() // 6
    dyn('::1').family() // error: no such overload

net.IP.isUnspecified() -> bool

    ip('0.0.0.0').isUnspecified() // true
    ip('::1').isUnspecified() // false
    dyn('::').isUnspecified() // error: no such overload

net.IP.isLoopback() -> bool

    ip('127.1.2.3').isLoopback() // true
    ip('::2').isLoopback() // false
    dyn('::1').isLoopback() // error: no such overload

net.IP.isLinkLocalMulticast() -> bool

    ip('224.0.0.1').isLinkLocalMulticast() // true
    ip('224.0.1.1').isLinkLocalMulticast() // false
    dyn('ff02::1').isLinkLocalMulticast() // error: no such overload

net.IP.isLinkLocalUnicast() -> bool

    ip('169.254.169.254').isLinkLocalUnicast() // true
    ip('fd80::1').isLinkLocalUnicast() // false
    dyn('fe80::1').isLinkLocalUnicast() // error: no such overload

net.IP.isGlobalUnicast() -> bool
    The address is not unspecified, loopback, multicast, link-local or broadcast; private addresses count as global.

    ip('10.0.0.1').isGlobalUnicast() // true
    ip('255.255.255.255').isGlobalUnicast() // false
    dyn('8.8.8.8').isGlobalUnicast() // error: no such overload
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import ClassVar, Final, TypeAlias

from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.library.go_text import quote_as_go
from webhook.cel.types import BOOL, INT, STRING, Type, opaque_type
from webhook.deadline import Deadline
from webhook.errors import EvaluationError

IP_TYPE = opaque_type("net.IP")

Address: TypeAlias = IPv4Address | IPv6Address
LONGEST = 45
"""The length of the longest address: six groups of IPv6 and an IPv4 address."""
_BROADCAST = IPv4Address("255.255.255.255")
_LINK_LOCAL_MULTICAST_4 = IPv4Network("224.0.0.0/24")
_LINK_LOCAL_4 = IPv4Network("169.254.0.0/16")
_LINK_LOCAL_6 = IPv6Network("fe80::/10")
_LOOPBACK_4 = IPv4Network("127.0.0.0/8")


class IP:
    """An IP address."""

    __slots__ = ("address",)
    cel_type: ClassVar[Type] = IP_TYPE

    def __init__(self, address: Address) -> None:
        self.address = address

    @property
    def cel_size(self) -> int:
        """Return the bytes of the address, for costs."""
        return 4 if self.address.version == 4 else 16

    def __eq__(self, other: object) -> bool:
        return type(other) is IP and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return str(self.address)

    def __repr__(self) -> str:
        return f"IP({self})"


def parse_address(text: str, deadline: Deadline | None = None) -> tuple[Address, bool]:
    """Return the address in a text as Go's netip.ParseAddr reads it, without its zone, and whether it has a zone.

    Raises:
        ValueError: the text is not an address; the message is that of ParseAddr.
    """
    address, percent, zone = text.partition("%")
    with suppress(AddressValueError):
        if ":" in address.partition(".")[0] and bool(percent) == bool(zone) and len(address) <= LONGEST:
            return IPv6Address(address), bool(zone)
        if len(text) <= LONGEST:
            return IPv4Address(text), False
    raise ValueError(address_error(text, deadline))


def ip(deadline: Deadline, text: str) -> IP:
    """Return the address in a text. An error quotes the whole text, so the quoting is charged."""
    return parse_ip(text, deadline)


def parse_ip(text: str, deadline: Deadline | None = None) -> IP:
    """Return the address in a text that ip() accepts.

    Raises:
        EvaluationError: the text is not an address, has a zone, or is an IPv4 address inside an IPv6 address.
    """
    try:
        parsed, has_zone = parse_address(text, deadline)
    except ValueError as error:
        raise EvaluationError(
            f"IP Address {quote_as_go(text, deadline)} parse error during conversion from string: {error}"
        ) from None
    if has_zone:
        raise EvaluationError(f"IP address {quote_as_go(text, deadline)} with zone value is not allowed")
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote_as_go(text)} is not allowed")
    return IP(parsed)


def is_ip(text: str) -> bool:
    """Return whether a text is an address that ip() accepts."""
    if len(text) > LONGEST:
        return False
    try:
        parse_ip(text)
    except EvaluationError:
        return False
    return True


def is_canonical(text: str) -> bool:
    """Return whether an address is written in the form in which Go prints it."""
    return str(parse_ip(text)) == text


def is_loopback(value: IP) -> bool:
    """Return whether an address is in 127.0.0.0/8 or is ::1."""
    address = value.address
    return address in _LOOPBACK_4 if isinstance(address, IPv4Address) else int(address) == 1


def is_unspecified(value: IP) -> bool:
    """Return whether an address is 0.0.0.0 or ::."""
    return int(value.address) == 0


def is_link_local_multicast(value: IP) -> bool:
    """Return whether an address is in 224.0.0.0/24 or in ff02::/16 with any flags."""
    address = value.address
    if isinstance(address, IPv4Address):
        return address in _LINK_LOCAL_MULTICAST_4
    return int(address) >> 112 & 0xFF0F == 0xFF02


def is_link_local_unicast(value: IP) -> bool:
    """Return whether an address is in 169.254.0.0/16 or fe80::/10."""
    address = value.address
    return address in (_LINK_LOCAL_4 if isinstance(address, IPv4Address) else _LINK_LOCAL_6)


def is_global_unicast(value: IP) -> bool:
    """Return whether an address is global unicast, as Go's netip.Addr.IsGlobalUnicast decides."""
    return not (
        is_unspecified(value)
        or value.address == _BROADCAST
        or is_loopback(value)
        or value.address.is_multicast
        or is_link_local_unicast(value)
    )


# ---- why a text is not an address, with the messages of Go's netip.ParseAddr


_FIRST_SIGN: Final = re.compile("[.:%]")
_GROUP: Final = re.compile("[0-9a-fA-F]{0,5}")
_DIGITS: Final = frozenset("0123456789")
_GROUPS = 8
_GROUPS_BEFORE_IPV4 = 6
_NO_DIGIT = "each colon-separated field must have at least one digit"
_IPV4_BEFORE_END = "embedded IPv4 address must replace the final 2 fields of the address"
_IPV4_AFTER_END = "too many hex fields to fit an embedded IPv4 at the end of the address"


class _AddressMistake(Exception):
    """A mistake in an address. `rest` is the text from the mistake on, "" if Go does not quote this text."""

    def __init__(self, reason: str, rest: str = "") -> None:
        super().__init__(reason)
        self.rest = rest


def address_error(text: str, deadline: Deadline | None = None) -> str:
    """Return the error of Go's ParseAddr, or "" if Go accepts the text.

    The error names the first mistake. Source: net/netip/netip.go of Go 1.26.
    """
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
        after_group = _text_after_group(rest)
        if after_group.startswith("."):
            if not has_gap and groups != _GROUPS_BEFORE_IPV4:
                raise _AddressMistake(_IPV4_BEFORE_END, rest)
            if groups > _GROUPS_BEFORE_IPV4:
                raise _AddressMistake(_IPV4_AFTER_END, rest)
            _check_ipv4(rest)
            groups, rest = groups + 2, ""
            break
        groups, rest = groups + 1, after_group
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


# ---- signatures


def _method_overload(name: str, id_: str, implementation: Callable[[IP], bool | int], result: Type = BOOL) -> Overload:
    return Overload(name, id_, (IP_TYPE,), result, implementation, member=True, since=(1, 30))


FUNCTIONS = (
    Overload("ip", "string_to_ip", (STRING,), IP_TYPE, ip, since=(1, 30), cost=costs.walk_target_cost, metered=True),
    Overload("isIP", "is_ip", (STRING,), BOOL, is_ip, since=(1, 30), cost=costs.walk_target_cost),
    Overload(
        "ip.isCanonical",
        "ip_is_canonical",
        (STRING,),
        BOOL,
        is_canonical,
        since=(1, 30),
        cost=costs.walk_target_twice_cost,
    ),
    Overload("string", "ip_to_string", (IP_TYPE,), STRING, str, since=(1, 30)),
    _method_overload("family", "ip_family", lambda value: value.address.version, INT),
    _method_overload("isUnspecified", "ip_is_unspecified", is_unspecified),
    _method_overload("isLoopback", "ip_is_loopback", is_loopback),
    _method_overload("isLinkLocalMulticast", "ip_is_link_local_multicast", is_link_local_multicast),
    _method_overload("isLinkLocalUnicast", "ip_is_link_local_unicast", is_link_local_unicast),
    _method_overload("isGlobalUnicast", "ip_is_global_unicast", is_global_unicast),
)
