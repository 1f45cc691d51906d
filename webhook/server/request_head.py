"""The HTTP limits of one request beyond what the parser checks: its URL, its headers, the pieces of its body.

Knows RFC 9112 and numbers, but no sockets. Each bound keeps one client from taking the loop's time or the server's
memory before a review begins; the texts name the exceeded bound.
"""

from __future__ import annotations

from typing import Final

from webhook.settings.serving import DEFAULTS

MAX_FRAMING_BYTES: Final = 64 * 1024
"""Bytes of chunk headers, extensions and trailers that are allowed in addition to the size of the body. The
parser collects them without bound.
"""
MAX_UNHEARD_BYTES: Final = 256 * 1024
"""Bytes by which a body may continue after its answer. Go's server reads as much before it closes (net/http, server.go,
maxPostHandlerReadBytes).
"""
MAX_LATE_BYTES: Final = DEFAULTS.max_body_bytes
"""The same for a review. A body that waits too long for memory is answered before it has arrived. A client that writes
the whole body first would otherwise see a reset connection and no answer.
"""
MAX_HEADER_BYTES: Final = 64 * 1024
"""kube-apiserver sends seven short headers; a client certificate or a token in them stays below 16 KB."""
MAX_HEADERS: Final = 200
"""An API server sends ten. Each costs a call in Python, and all headers of one read delay other clients."""
MAX_URL_BYTES: Final = 4 * 1024
"""An API server asks for a path and a timeout. The loop takes 15 ms to read a query of 64 KB, and every connection may
send one at the same time."""
MAX_SMALL_PIECES: Final = 200
_SMALL_PIECE_BYTES: Final = 256
"""A body in more pieces must have this number of bytes in each piece. One read of a body in chunks of a single byte has
40,000, and stops the loop for a tenth of a second; Go writes 4 KB at a time, and API servers declare the length."""
_SHOWN: Final = 60
"""How many characters of a header a message shows."""


class MalformedRequestError(ValueError):
    """A request that is refused with code 400. Its text is sent to the client."""


class RequestHead:
    """Counts the parts of one request while it is parsed. A method that raises Malformed ends the connection.

    Attributes:
        body_bytes: of the body, as many as came.
        wrong: why the request is refused, "" if it is not.
    """

    __slots__ = ("_hosts", "_pieces", "body_bytes", "wrong")

    def __init__(self) -> None:
        self._hosts = self._pieces = 0
        self.body_bytes = 0
        self.wrong = ""

    def create_malformed_error(self, text: str) -> MalformedRequestError:
        """Return the error to raise, and keep its text, because the parser raises an error of its own instead."""
        self.wrong = text
        return MalformedRequestError(text)

    def check_url_size(self, size: int) -> None:
        """Refuse a URL of more than MAX_URL_BYTES; `size` is how many bytes have arrived."""
        if size > MAX_URL_BYTES:
            raise self.create_malformed_error(f"the URL is longer than {MAX_URL_BYTES} bytes")

    def check_header(self, name: bytes, value: bytes, before: int) -> None:
        """Check one header, given its name in lower case and the number of headers before it.

        RFC 9112, section 6.1: a server that does not know a coding of the body cannot decode the body.
        """
        if before >= MAX_HEADERS:
            raise self.create_malformed_error(f"there are more than {MAX_HEADERS} headers")
        if name == b"host":
            self._hosts += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            coding = value.decode("latin-1")[:_SHOWN]
            raise self.create_malformed_error(
                f"transfer-encoding: expected `chunked`, found `{coding}`; send the body without this coding"
            )

    def check_all_headers(self, version: str) -> None:
        """Check the headers as a whole after the last one.

        RFC 9112, section 3.2: a request of HTTP/1.1 without exactly one Host is answered 400.
        """
        if self._hosts != 1 and version == "1.1":
            hosts = f"{self._hosts} `Host` headers" if self._hosts else "no `Host` header"
            raise self.create_malformed_error(f"the request has {hosts}; HTTP/1.1 needs exactly one")

    def count_body_piece(self, size: int) -> None:
        """Count one more piece of the body, and refuse too many small ones."""
        self._pieces += 1
        self.body_bytes += size
        if self._pieces > MAX_SMALL_PIECES and self.body_bytes < self._pieces * _SMALL_PIECE_BYTES:
            raise self.create_malformed_error("the chunks of the body are too small; send at least 256 bytes in each")
