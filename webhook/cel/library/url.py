"""URLs: kubernetes.urls. Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/urls.go, Go 1.26 net/url.

url(string) -> kubernetes.URL
    Reads an absolute URI or an absolute path.

    url('https://a.example:80/x') == url('https://a.example:80/x') // true
    url('a.example/x') // error: URL parse error during conversion from string: parse "a.example/x":

isURL(string) -> bool

    isURL('/absolute/path') // true
    isURL('https://a:b:c/') // false
    isURL(dyn(1)) // error: no such overload

kubernetes.URL.getScheme() -> string

    url('HTTPS://a.example').getScheme() // 'https'
    url('/path').getScheme() // ''
    dyn('/path').getScheme() // error: no such overload

kubernetes.URL.getHost() -> string
    The host with the port.

    url('https://a.example:80/').getHost() // 'a.example:80'
    url('https://[::1]:80/').getHost() // '[::1]:80'
    dyn('/path').getHost() // error: no such overload

kubernetes.URL.getHostname() -> string
    The host without port and brackets.

    url('https://a.example:80/').getHostname() // 'a.example'
    url('https://[::1]:80/').getHostname() // '::1'
    dyn('/path').getHostname() // error: no such overload

kubernetes.URL.getPort() -> string

    url('https://a.example:80/').getPort() // '80'
    url('https://a.example/').getPort() // ''
    dyn('/path').getPort() // error: no such overload

kubernetes.URL.getEscapedPath() -> string

    url('https://a.example/with space/').getEscapedPath() // '/with%20space/'
    url('https://a.example').getEscapedPath() // ''
    dyn('/path').getEscapedPath() // error: no such overload

kubernetes.URL.getQuery() -> map(string, list(string))
    Parameters that cannot be read are left out.

    url('/p?k=a&k=b%20c&d=').getQuery() // {'k': ['a', 'b c'], 'd': ['']}
    url('/p').getQuery() // {}
    dyn('/path').getQuery() // error: no such overload
"""

from __future__ import annotations

import re
from binascii import a2b_qp
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address
from itertools import chain
from typing import Any, ClassVar

from msgspec import Struct

from webhook.cel.library import costs
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.library.go_text import quote_as_go
from webhook.cel.library.ip import parse_address
from webhook.cel.types import BOOL, STRING, Type, list_of, map_of, opaque_type
from webhook.deadline import PIECE, STEP, Deadline
from webhook.errors import EvaluationError

# ---- the syntax, as Go's net/url reads and writes it

# The rules are those of Go 1.26 net/url with its defaults: strict colons in the host for http and https, at most 10,000
# query parameters. Python's urllib would accept almost every text. A long text is searched or decoded in pieces, and
# the Deadline reads the clock between pieces.

MAX_PARAMETERS = 10_000

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_USER_INFO = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_PATH = frozenset(_UNRESERVED + "$&+,/:;=@")
_HOST = frozenset(_UNRESERVED + "!$&'()*+,;=:[]<>\"")
_USER = frozenset(_UNRESERVED + "$&+,;=")
_FRAGMENT = frozenset(_UNRESERVED + "$&+,/:;=?@!()*")
_ZONE = _HOST | {" "}
_KEPT_AS_WRITTEN = frozenset("!$&'()*+,;=:@[]%")


def _pattern_of_forbidden_host_characters(escapes: Iterable[int]) -> re.Pattern[str]:
    # matches an ASCII character that _HOST lacks, or the percent escape of one of the bytes
    characters = "".join(re.escape(each) for each in map(chr, range(0x80)) if each not in _HOST | {"%"})
    bytes_ = "|".join(f"{byte:02X}" for byte in escapes)
    return re.compile(f"[{characters}]|%(?i:{bytes_})")


_BAD_IN_HOST = _pattern_of_forbidden_host_characters(byte for byte in range(0x80) if byte != 0x25)
_BAD_IN_ZONE = _pattern_of_forbidden_host_characters(
    byte for byte in range(0x100) if byte != 0x25 and chr(byte) not in _ZONE
)


class BadUrl(ValueError):
    """A text is not a URL; the message is Go's."""


class ParsedUrl(Struct, frozen=True, kw_only=True):
    """A parsed URL; percent escapes are decoded except in `raw_path`, `query` and `raw_fragment`."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    password: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str = ""
    force_query: bool = False
    omit_host: bool = False
    fragment: str = ""
    raw_fragment: str = ""

    def escaped_path(self, deadline: Deadline) -> str:
        """Return the path with percent escapes: as it was written, if all its characters are valid."""
        return _escaped_as_written(deadline, self.path, self.raw_path, _PATH)

    @property
    def hostname(self) -> str:
        """Return the host without port and brackets."""
        return self._split_host()[0]

    @property
    def port(self) -> str:
        """Return the port, or ''."""
        return self._split_host()[1]

    def _split_host(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if not colon or not _PORT.fullmatch(colon + port):
            host, port = self.host, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def query_parameters(self, deadline: Deadline) -> dict[str, list[str]]:
        """Return the parameters of the query, without parameters that cannot be decoded or contain `;`."""
        values: dict[str, list[str]] = {}
        pieces = self.query.split("&")
        if len(pieces) > MAX_PARAMETERS:
            return values
        for piece in deadline.charge_for_items(pieces):
            if not piece or ";" in piece:
                continue
            key, _, value = piece.partition("=")
            try:
                names = _decode_escapes(deadline, key, plus=True), _decode_escapes(deadline, value, plus=True)
            except BadUrl:
                continue
            values.setdefault(names[0], []).append(names[1])
        return values

    def go_text(self, deadline: Deadline) -> str:
        scheme = f"{self.scheme}:" if self.scheme else ""
        rest = self.opaque or self._text_after_scheme(deadline, scheme)
        query = f"?{self.query}" if self.force_query or self.query else ""
        fragment = self.fragment and f"#{_escaped_as_written(deadline, self.fragment, self.raw_fragment, _FRAGMENT)}"
        return f"{scheme}{rest}{query}{fragment}"

    def _text_after_scheme(self, deadline: Deadline, scheme: str) -> str:
        authority = self._authority_text(deadline)
        path = self.escaped_path(deadline)
        if path and not path.startswith("/") and self.host:
            path = f"/{path}"
        if not scheme and not authority and ":" in path.partition("/")[0]:
            path = f"./{path}"
        return authority + path

    def _authority_text(self, deadline: Deadline) -> str:
        has_authority = self.host or self.user is not None
        if not has_authority and (self.omit_host or not self.scheme or not self.path):
            return ""
        user = ""
        if self.user is not None:
            password = "" if self.password is None else f":{_encode_escapes(deadline, self.password, _USER)}"
            user = f"{_encode_escapes(deadline, self.user, _USER)}{password}@"
        return f"//{user}{_encode_escapes(deadline, self.host, _HOST)}"


def parse_request_url(deadline: Deadline, text: str) -> ParsedUrl:
    """Parse an absolute URI or path as url.ParseRequestURI, where `#` is an ordinary character.

    Raises:
        BadUrl: the text is neither a URI nor a path.
    """
    try:
        return ParsedUrl(**_parse_parts(deadline, text, via_request=True))
    except BadUrl as error:
        raise BadUrl(f"parse {quote_as_go(text, deadline)}: {error}") from None


def parse_url(deadline: Deadline, text: str) -> ParsedUrl:
    """Parse a URL or a reference with its fragment, as url.Parse.

    Raises:
        BadUrl: the text is not a URL.
    """
    front, _, fragment = text.partition("#")
    try:
        parts = _parse_parts(deadline, front, via_request=False)
        parts["fragment"] = _decode_escapes(deadline, fragment)
    except BadUrl as error:
        raise BadUrl(f"parse {quote_as_go(text, deadline)}: {error}") from None
    parts["raw_fragment"] = fragment
    return ParsedUrl(**parts)


def replace_invalid_utf8(text: str) -> str:
    """Return a part of a URL with U+FFFD for bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _first_match(deadline: Deadline, pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    # searches piece by piece, and reads the clock between the pieces; a match has at most three characters
    for start in range(0, len(text), PIECE):
        if start:
            deadline.spend(STEP)
        match = pattern.search(text, start, start + PIECE + 2)
        if match and match.start() < start + PIECE:
            return match
    return None


def _parse_parts(deadline: Deadline, text: str, *, via_request: bool) -> dict[str, Any]:
    if _first_match(deadline, _CONTROL, text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text and via_request:
        raise BadUrl("empty url")
    if text == "*":
        return {"path": "*"}
    scheme, rest = _split_scheme(text)
    parts: dict[str, Any] = {"scheme": scheme}
    if rest.endswith("?") and rest.count("?") == 1:
        parts["force_query"] = True
        rest = rest[:-1]
    else:
        rest, _, parts["query"] = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return parts | {"opaque": rest}
        if via_request:
            raise BadUrl("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise BadUrl("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or (not via_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        parts |= _parse_authority(deadline, scheme, authority)
        rest = slash + path
    elif scheme and rest.startswith("/"):
        parts["omit_host"] = True
    return parts | {"path": _decode_escapes(deadline, rest), "raw_path": rest}


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise BadUrl("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _parse_authority(deadline: Deadline, scheme: str, text: str) -> dict[str, Any]:
    user, at, host = text.rpartition("@")
    parts: dict[str, Any] = {"host": _parse_host(deadline, scheme, host)}
    if at:
        if not _USER_INFO.fullmatch(user):
            raise BadUrl("net/url: invalid userinfo")
        name, colon, password = user.partition(":")
        parts["user"] = _decode_escapes(deadline, name)
        parts["password"] = _decode_escapes(deadline, password) if colon else None
    return parts


def _parse_host(deadline: Deadline, scheme: str, text: str) -> str:
    bracket = text.rfind("[")
    if bracket > 0:
        raise BadUrl("invalid IP-literal")
    if bracket == 0:
        return _parse_ip_literal(deadline, text)
    colon = text.find(":")
    if colon >= 0:
        port = text[colon if scheme in ("http", "https") else text.rfind(":") :]
        _check_port(port)
    return _decode_host_escapes(deadline, text)


def _parse_ip_literal(deadline: Deadline, text: str) -> str:
    literal, bracket, port = text[1:].rpartition("]")
    if not bracket:
        raise BadUrl("missing ']' in host")
    _check_port(port)
    address, percent, zone = literal.partition("%25")
    host = _decode_host_escapes(deadline, address)
    if percent:
        host += _decode_host_escapes(deadline, percent + zone, zone=True)
    try:
        parsed, _ = parse_address(host, deadline)
    except ValueError as error:
        raise BadUrl(f"invalid host: {error}") from None
    if isinstance(parsed, IPv4Address):
        raise BadUrl("invalid IP-literal")
    return f"[{host}]{_decode_host_escapes(deadline, port)}"


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise BadUrl(f"invalid port {quote_as_go(port)} after host")


def _decode_host_escapes(deadline: Deadline, text: str, *, zone: bool = False) -> str:
    # a host may only escape bytes outside ASCII and `%25`; a zone may also escape host characters
    escape = _first_match(deadline, _BAD_ESCAPE, text)
    wrong = _first_match(deadline, _BAD_IN_ZONE if zone else _BAD_IN_HOST, text)
    if wrong and not (escape and escape.start() <= wrong.start()):
        piece = wrong[0]
        if len(piece) == 1:
            raise BadUrl(f"invalid character {quote_as_go(piece)} in host name")
        raise BadUrl(f"invalid URL escape {quote_as_go(piece)}")
    return _decode_escapes(deadline, text)


def _decode_escapes(deadline: Deadline, text: str, *, plus: bool = False) -> str:
    if "%" not in text and not (plus and "+" in text):
        return text
    if bad := _first_match(deadline, _BAD_ESCAPE, text):
        raise BadUrl(f"invalid URL escape {quote_as_go(bad[0])}")
    if plus:
        text = text.replace("+", " ")
    # quoted-printable text has the same escapes with `=` in place of `%`, and Python decodes it in C
    escaped = text.encode("utf-8", "surrogateescape").replace(b"=", b"%3D").replace(b"%", b"=")
    return a2b_qp(escaped).decode("utf-8", "surrogateescape")


def _encode_escapes(deadline: Deadline, text: str, unescaped: frozenset[str]) -> str:
    return "".join(
        character if character in unescaped else _percent_encoded(character)
        for piece in deadline.pieces(text)
        for character in piece
    )


def _percent_encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _escaped_as_written(deadline: Deadline, plain: str, raw: str, unescaped: frozenset[str]) -> str:
    # `raw` if all its characters are allowed, otherwise `plain` with the usual escapes
    allowed = unescaped | _KEPT_AS_WRITTEN
    if raw and allowed.issuperset(chain.from_iterable(map(set, deadline.pieces(raw)))):
        return raw
    return plain if plain == "*" and unescaped is _PATH else _encode_escapes(deadline, plain, unescaped)


# ---- the library


URL_TYPE = opaque_type("kubernetes.URL")


class URL:
    """A URL. Two URLs are equal if Go writes them with the same text."""

    __slots__ = ("_written", "parts")
    cel_type: ClassVar[Type] = URL_TYPE

    def __init__(self, parts: ParsedUrl, written: str | None = None) -> None:
        self.parts = parts
        self._written = written

    @property
    def go_text(self) -> str:
        """Return the URL as Go writes it. The text of a long URL is computed once, when the URL is parsed."""
        return self.parts.go_text(Deadline()) if self._written is None else self._written

    def __eq__(self, other: object) -> bool:
        return type(other) is URL and self.go_text == other.go_text

    def __hash__(self) -> int:
        return hash(self.go_text)

    def __str__(self) -> str:
        return replace_invalid_utf8(self.go_text)

    def __repr__(self) -> str:
        return f"URL({self})"


def url(deadline: Deadline, text: str) -> URL:
    """Return the URL in a text. As upstream, the text is parsed twice: to check the form, and to get the fragment."""
    try:
        parse_request_url(deadline, text)
        parts = parse_url(deadline, text)
        return URL(parts, parts.go_text(deadline) if len(text) > PIECE else None)
    except BadUrl as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def is_url(deadline: Deadline, text: str) -> bool:
    try:
        parse_request_url(deadline, text)
    except BadUrl:
        return False
    return True


def escaped_path(deadline: Deadline, value: URL) -> str:
    return replace_invalid_utf8(value.parts.escaped_path(deadline))


def query_parameters(deadline: Deadline, value: URL) -> dict[str, list[str]]:
    return {
        replace_invalid_utf8(key): [replace_invalid_utf8(item) for item in items]
        for key, items in value.parts.query_parameters(deadline).items()
    }


def _parsing_overload(
    name: str, id_: str, result: Type, implementation: Callable[..., Any], cost: Cost | None
) -> Overload:
    return Overload(name, id_, (STRING,), result, implementation, cost=cost, metered=True)


def _part_overload(name: str, id_: str, part: str) -> Overload:
    return Overload(
        name,
        f"url_get_{id_}",
        (URL_TYPE,),
        STRING,
        lambda value: replace_invalid_utf8(getattr(value.parts, part)),
        member=True,
    )


FUNCTIONS = (
    _parsing_overload("url", "string_to_url", URL_TYPE, url, costs.walk_target_cost),
    _parsing_overload("isURL", "is_url_string", BOOL, is_url, None),
    _part_overload("getScheme", "scheme", "scheme"),
    _part_overload("getHost", "host", "host"),
    _part_overload("getHostname", "hostname", "hostname"),
    _part_overload("getPort", "port", "port"),
    Overload("getEscapedPath", "url_get_escaped_path", (URL_TYPE,), STRING, escaped_path, member=True, metered=True),
    Overload(
        "getQuery",
        "url_get_query",
        (URL_TYPE,),
        map_of(STRING, list_of(STRING)),
        query_parameters,
        member=True,
        metered=True,
    ),
)
