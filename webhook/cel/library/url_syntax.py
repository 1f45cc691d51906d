"""URLs read and written as Go's net/url does, whose rules Kubernetes takes over.

Rules: Go 1.26 net/url, with its defaults of that version: colons in a host are strict for http and https,
at most 10,000 query parameters. Python's urllib follows other rules: it takes almost every text for a URL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any
from urllib.parse import unquote_to_bytes

from webhook.cel.library.go_text import quote
from webhook.cel.library.ip import parse_address

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
_HOST_PIECE = re.compile(r"%[0-9A-Fa-f]{2}|[\x00-\x7f]")
_KEPT_AS_WRITTEN = frozenset("!$&'()*+,;=:@[]%")


class BadUrl(ValueError):
    """A text that is no URL, with Go's wording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """A URL in its parts, percent escapes read except in `raw_path`, `query` and `raw_fragment`."""

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

    @property
    def escaped_path(self) -> str:
        """The path with percent escapes, as it was written where that is one way to write it."""
        return _as_written(self.path, self.raw_path, _PATH)

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        return self._split_host()[0]

    @property
    def port(self) -> str:
        """The port behind the host, or ''."""
        return self._split_host()[1]

    def _split_host(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if not colon or not _PORT.fullmatch(colon + port):
            host, port = self.host, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def parameters(self) -> dict[str, list[str]]:
        """The query's parameters; those that cannot be read are left out."""
        found: dict[str, list[str]] = {}
        pieces = self.query.split("&")
        if len(pieces) > MAX_PARAMETERS:
            return found
        for piece in pieces:
            if not piece or ";" in piece:
                continue
            key, _, value = piece.partition("=")
            try:
                names = _unescape(key, plus=True), _unescape(value, plus=True)
            except BadUrl:
                continue
            found.setdefault(names[0], []).append(names[1])
        return found

    def __str__(self) -> str:
        scheme = f"{self.scheme}:" if self.scheme else ""
        rest = self.opaque or self._hierarchy(scheme)
        query = f"?{self.query}" if self.force_query or self.query else ""
        fragment = f"#{_as_written(self.fragment, self.raw_fragment, _FRAGMENT)}" if self.fragment else ""
        return f"{scheme}{rest}{query}{fragment}"

    def _hierarchy(self, scheme: str) -> str:
        authority = self._authority()
        path = self.escaped_path
        if path and not path.startswith("/") and self.host:
            path = f"/{path}"
        if not scheme and not authority and ":" in path.partition("/")[0]:
            path = f"./{path}"
        return authority + path

    def _authority(self) -> str:
        has_authority = self.host or self.user is not None
        if not has_authority and (self.omit_host or not self.scheme or not self.path):
            return ""
        user = ""
        if self.user is not None:
            password = "" if self.password is None else f":{_escape(self.password, _USER)}"
            user = f"{_escape(self.user, _USER)}{password}@"
        return f"//{user}{_escape(self.host, _HOST)}"


def parse_request(text: str) -> Url:
    """Read an absolute URI or an absolute path: url.ParseRequestURI, which takes `#` for an ordinary character.

    Raises:
        BadUrl: neither.

    """
    try:
        return Url(**_parts(text, via_request=True))
    except BadUrl as error:
        raise BadUrl(f"parse {quote(text)}: {error}") from None


def parse(text: str) -> Url:
    """Read a URL or a reference with its fragment: url.Parse.

    Raises:
        BadUrl: not a URL.

    """
    front, _, fragment = text.partition("#")
    try:
        parts = _parts(front, via_request=False)
        parts["fragment"] = _unescape(fragment)
    except BadUrl as error:
        raise BadUrl(f"parse {quote(text)}: {error}") from None
    parts["raw_fragment"] = fragment
    return Url(**parts)


def shown(text: str) -> str:
    """A part of a URL as valid text: bytes that are no UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _parts(text: str, *, via_request: bool) -> dict[str, Any]:
    if _CONTROL.search(text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text and via_request:
        raise BadUrl("empty url")
    if text == "*":
        return {"path": "*"}
    scheme, rest = _scheme(text)
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
        parts |= _authority(scheme, authority)
        rest = slash + path
    elif scheme and rest.startswith("/"):
        parts["omit_host"] = True
    return parts | {"path": _unescape(rest), "raw_path": rest}


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise BadUrl("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _authority(scheme: str, text: str) -> dict[str, Any]:
    user, at, host = text.rpartition("@")
    parts: dict[str, Any] = {"host": _host(scheme, host)}
    if at:
        if not _USER_INFO.fullmatch(user):
            raise BadUrl("net/url: invalid userinfo")
        name, colon, password = user.partition(":")
        parts["user"] = _unescape(name)
        parts["password"] = _unescape(password) if colon else None
    return parts


def _host(scheme: str, text: str) -> str:
    bracket = text.rfind("[")
    if bracket > 0:
        raise BadUrl("invalid IP-literal")
    if bracket == 0:
        return _ip_literal(text)
    colon = text.find(":")
    if colon >= 0:
        port = text[colon if scheme in ("http", "https") else text.rfind(":") :]
        _check_port(port)
    return _unescape_host(text)


def _ip_literal(text: str) -> str:
    inner, bracket, port = text[1:].rpartition("]")
    if not bracket:
        raise BadUrl("missing ']' in host")
    _check_port(port)
    address, percent, zone = inner.partition("%25")
    host = _unescape_host(address)
    if percent:
        host += _unescape_host(percent + zone, zone=True)
    name, _, zone_name = host.partition("%")
    try:
        parsed = parse_address(name if zone_name else host)
    except ValueError as error:
        raise BadUrl(f"invalid host: ParseAddr({quote(host)}): {error}") from None
    if isinstance(parsed, IPv4Address):
        raise BadUrl("invalid IP-literal")
    return f"[{host}]{_unescape_host(port)}"


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise BadUrl(f"invalid port {quote(port)} after host")


def _unescape_host(text: str, *, zone: bool = False) -> str:
    """Read percent escapes in a host: of bytes outside ASCII only, and `%25`; a zone also takes host characters."""
    bad = _BAD_ESCAPE.search(text)
    for match in _HOST_PIECE.finditer(text):
        piece = match[0]
        if bad and match.start() >= bad.start():
            break
        if len(piece) == 1:
            if piece not in _HOST:
                raise BadUrl(f"invalid character {quote(piece)} in host name")
            continue
        character = chr(int(piece[1:], 16))
        is_allowed = piece == "%25" or (character in _ZONE if zone else character > "\x7f")
        if not is_allowed:
            raise BadUrl(f"invalid URL escape {quote(piece)}")
    return _unescape(text)


def _unescape(text: str, *, plus: bool = False) -> str:
    if "%" not in text and not (plus and "+" in text):
        return text
    if bad := _BAD_ESCAPE.search(text):
        raise BadUrl(f"invalid URL escape {quote(bad[0])}")
    if plus:
        text = text.replace("+", " ")
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _escape(text: str, kept: frozenset[str]) -> str:
    return "".join(character if character in kept else _percent(character) for character in text)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _as_written(plain: str, raw: str, kept: frozenset[str]) -> str:
    """The escaped form as it was written, where each of its characters may stand as it does; else the usual one."""
    allowed = kept | _KEPT_AS_WRITTEN
    if raw and all(character in allowed for character in raw):
        return raw
    return plain if plain == "*" and kept is _PATH else _escape(plain, kept)
