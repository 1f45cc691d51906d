"""Network ranges: kubernetes.net.cidr, since 1.30.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/cidr.go, Go net/netip.

cidr(string) -> net.CIDR
    Reads an address with a prefix length. Bits after the prefix may be set.

    cidr('192.168.0.0/16') == cidr('192.168.0.0/16') // true
    cidr('192.168.0.0/33') // error: network address parse error during conversion from string:

isCIDR(string) -> bool

    isCIDR('fd00::/8') // true
    isCIDR('10.0.0.0') // false
    isCIDR(dyn(1)) // error: no such overload

string(net.CIDR) -> string

    string(cidr('10.1.2.3/8')) // '10.1.2.3/8'
    [{}].map(m, string(dyn(m))) // error: no such overload

net.CIDR.containsIP(net.IP) -> bool
    The argument may be a string with the address.

    cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) // true
    cidr('192.168.0.0/24').containsIP('192.168.1.1') // false
    cidr('192.168.0.0/24').containsIP('no') // error: no such overload

net.CIDR.containsCIDR(net.CIDR) -> bool
    The argument may be a string with the range.

    cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24')) // true
    cidr('192.168.0.0/16').containsCIDR('192.0.0.0/8') // false
    cidr('192.168.0.0/24').containsCIDR(dyn(1)) // error: no such overload

net.CIDR.ip() -> net.IP
    The address, with the bits after the prefix.

    cidr('192.168.1.5/24').ip() == ip('192.168.1.5') // true
    dyn('::/0').ip() // error: no such overload

net.CIDR.masked() -> net.CIDR
    The range with the bits after the prefix set to 0.

    cidr('192.168.1.5/24').masked() == cidr('192.168.1.0/24') // true
    dyn('::/0').masked() // error: no such overload

net.CIDR.prefixLength() -> int

    cidr('192.168.0.0/24').prefixLength() // 24
    dyn('::/0').prefixLength() // error: no such overload
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv6Address
from math import ceil
from typing import Any, ClassVar

from webhook.cel.library import costs
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.library.go_text import quote_as_go
from webhook.cel.library.ip import IP, IP_TYPE, LONGEST, Address, parse_address, parse_ip
from webhook.cel.types import BOOL, INT, STRING, Type, opaque_type
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, NoSuchOverload

CIDR_TYPE = opaque_type("net.CIDR")
_PREFIX = "network address parse error during conversion from string: "
_BITS = re.compile(r"0|[1-9][0-9]*")
_LARGEST = 2**63 - 1
"""Go's largest int: ParsePrefix refuses a longer prefix length before it compares the length with the address."""
_MOST_DIGITS = len(str(_LARGEST))


class CIDR:
    """An IP address and a prefix length."""

    __slots__ = ("address", "bits")
    cel_type: ClassVar[Type] = CIDR_TYPE

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def cel_size(self) -> int:
        """Return the bytes of the prefix, for costs."""
        return ceil(self.bits / 8)

    def leading_bits(self, bits: int) -> int:
        """Return the first `bits` bits of the address as a number."""
        return int(self.address) >> (self.address.max_prefixlen - bits)

    def __eq__(self, other: object) -> bool:
        return type(other) is CIDR and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def __repr__(self) -> str:
        return f"CIDR({self})"


def cidr(deadline: Deadline, text: str) -> CIDR:
    """Return the range in a text. An error quotes the whole text, so the quoting is charged."""
    return parse_cidr(text, deadline)


def parse_cidr(text: str, deadline: Deadline | None = None) -> CIDR:
    """Return the address and prefix length in a text.

    Raises:
        EvaluationError: the text is not a range, or is a range of an IPv4-mapped IPv6 address.
    """
    try:
        address, bits = _parse_prefix(text, deadline)
    except ValueError as error:
        raise EvaluationError(f"{_PREFIX}{_PREFIX}netip.ParsePrefix({quote_as_go(text, deadline)}): {error}") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"{_PREFIX}IPv4-mapped IPv6 address {quote_as_go(text)} is not allowed")
    return CIDR(address, bits)


def _parse_prefix(text: str, deadline: Deadline | None) -> tuple[Address, int]:
    front, slash, length = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address, has_zone = parse_address(front, deadline)
    if has_zone:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(length) or len(length) > _MOST_DIGITS or int(length) > _LARGEST:
        raise ValueError(f"bad bits after slash: {quote_as_go(length, deadline)}")
    if int(length) > address.max_prefixlen:
        raise ValueError("prefix length out of range")
    return address, int(length)


def is_cidr(text: str) -> bool:
    """Return whether a text is a range that cidr() accepts."""
    if len(text) > LONGEST + len("/128"):
        return False
    try:
        parse_cidr(text)
    except EvaluationError:
        return False
    return True


def contains_ip(range_: CIDR, value: IP) -> bool:
    """Return whether the range has the address; False for another IP version."""
    address = value.address
    if address.version != range_.address.version:
        return False
    return range_.leading_bits(range_.bits) == int(address) >> (address.max_prefixlen - range_.bits)


def contains_ip_text(range_: CIDR, text: str) -> bool:
    """Return whether the range has the address in a text. As upstream, fail if the text is not an address."""
    try:
        value = parse_ip(text)
    except EvaluationError:
        raise NoSuchOverload from None
    return contains_ip(range_, value)


def contains_cidr(range_: CIDR, other: CIDR) -> bool:
    return (
        other.address.version == range_.address.version
        and range_.bits <= other.bits
        and range_.leading_bits(range_.bits) == other.leading_bits(range_.bits)
    )


def contains_cidr_text(range_: CIDR, text: str) -> bool:
    return contains_cidr(range_, parse_cidr(text))


def masked_range(range_: CIDR) -> CIDR:
    host_bits = range_.address.max_prefixlen - range_.bits
    cleared = int(range_.address) >> host_bits << host_bits
    return CIDR(type(range_.address)(cleared), range_.bits)


def _contains_ip_cost(_: Any, range_: Any, __: Any) -> int:
    return ceil((costs.counted_size(range_) + costs.counted_size(range_)) * costs.STRING)


def _contains_cidr_cost(_: Any, range_: Any, other: Any) -> int:
    return _contains_ip_cost(_, range_, other) + costs.walk_cost(range_) + 1


def _with_parsing_cost(cost: Cost) -> Cost:
    # adds the cost of reading the text argument
    return lambda result, range_, text: cost(result, range_, text) + costs.walk_cost(text)


def _contains_overload(
    name: str, id_: str, argument: Type, implementation: Callable[..., bool], costs_: tuple[Cost, Cost]
) -> Overload:
    return Overload(
        name,
        id_,
        (CIDR_TYPE, argument),
        BOOL,
        implementation,
        member=True,
        since=(1, 30),
        cost=costs_[0],
        resolved_cost=costs_[1],
    )


def _method_overload(name: str, id_: str, result: Type, implementation: Callable[[CIDR], Any]) -> Overload:
    return Overload(name, id_, (CIDR_TYPE,), result, implementation, member=True, since=(1, 30))


FUNCTIONS = (
    Overload(
        "cidr", "string_to_cidr", (STRING,), CIDR_TYPE, cidr, since=(1, 30), cost=costs.walk_target_cost, metered=True
    ),
    Overload("isCIDR", "is_cidr", (STRING,), BOOL, is_cidr, since=(1, 30), cost=costs.walk_target_cost),
    Overload("string", "cidr_to_string", (CIDR_TYPE,), STRING, str, since=(1, 30)),
    _contains_overload(
        "containsIP",
        "cidr_contains_ip_string",
        STRING,
        contains_ip_text,
        (_contains_ip_cost, _with_parsing_cost(_contains_ip_cost)),
    ),
    _contains_overload(
        "containsIP", "cidr_contains_ip_ip", IP_TYPE, contains_ip, (_contains_ip_cost, _contains_ip_cost)
    ),
    _contains_overload(
        "containsCIDR",
        "cidr_contains_cidr_string",
        STRING,
        contains_cidr_text,
        (_contains_cidr_cost, _with_parsing_cost(_contains_cidr_cost)),
    ),
    _contains_overload(
        "containsCIDR", "cidr_contains_cidr", CIDR_TYPE, contains_cidr, (_contains_cidr_cost, _contains_cidr_cost)
    ),
    _method_overload("ip", "cidr_ip", IP_TYPE, lambda range_: IP(range_.address)),
    _method_overload("prefixLength", "cidr_prefix_length", INT, lambda range_: range_.bits),
    _method_overload("masked", "cidr_masked", CIDR_TYPE, masked_range),
)
