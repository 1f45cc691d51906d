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
    With the port.

    url('https://a.example:80/').getHost() // 'a.example:80'
    url('https://[::1]:80/').getHost() // '[::1]:80'
    dyn('/path').getHost() // error: no such overload

kubernetes.URL.getHostname() -> string
    Without port and brackets.

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

from collections.abc import Callable
from typing import Any, ClassVar

from webhook.cel.library import costs, url_syntax
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.types import BOOL, STRING, Type, list_of, map_of, opaque_type
from webhook.deadline import PIECE, Deadline
from webhook.errors import EvaluationError

URL_TYPE = opaque_type("kubernetes.URL")


class URL:
    """A URL. Two are equal when they are written the same way."""

    __slots__ = ("_written", "parts")
    cel_type: ClassVar[Type] = URL_TYPE

    def __init__(self, parts: url_syntax.ParsedUrl, written: str | None = None) -> None:
        self.parts = parts
        self._written = written

    @property
    def go_text(self) -> str:
        """Return the URL as Go writes it; for a long URL this was computed when it was parsed."""
        return self.parts.go_text(Deadline()) if self._written is None else self._written

    def __eq__(self, other: object) -> bool:
        return type(other) is URL and self.go_text == other.go_text

    def __hash__(self) -> int:
        return hash(self.go_text)

    def __str__(self) -> str:
        return url_syntax.replace_invalid_utf8(self.go_text)

    def __repr__(self) -> str:
        return f"URL({self})"


def url(deadline: Deadline, text: str) -> URL:
    """Return the URL in a text. As upstream, this parses the text twice: once to check the form, and once to get the
    fragment.
    """
    try:
        url_syntax.parse_request_url(deadline, text)
        parts = url_syntax.parse_url(deadline, text)
        return URL(parts, parts.go_text(deadline) if len(text) > PIECE else None)
    except url_syntax.BadUrl as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def is_url(deadline: Deadline, text: str) -> bool:
    """Return whether the text is an absolute URI or an absolute path."""
    try:
        url_syntax.parse_request_url(deadline, text)
    except url_syntax.BadUrl:
        return False
    return True


def escaped_path(deadline: Deadline, value: URL) -> str:
    """Return the path with percent escapes."""
    return url_syntax.replace_invalid_utf8(value.parts.escaped_path(deadline))


def query_parameters(deadline: Deadline, value: URL) -> dict[str, list[str]]:
    """Return the query's parameters."""
    return {
        url_syntax.replace_invalid_utf8(key): [url_syntax.replace_invalid_utf8(item) for item in items]
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
        lambda value: url_syntax.replace_invalid_utf8(getattr(value.parts, part)),
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
