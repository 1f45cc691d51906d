"""How long a client may take to send each part of a request, to read an answer, and to close its side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Awaited: TypeAlias = Literal["first_byte_s", "headers_s", "body_s", "idle_s", ""]
"""Which timeout runs, as a field of ConnectionTimeouts; "" while the server computes the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTimeouts:
    """How many seconds a client may take.

    handshake_s: for the TLS handshake. first_byte_s: from then to the first byte of a request. headers_s, body_s: for
    each whole. held_s, held_bytes_per_s: for a large body, for which memory is held, the first seconds are free and
    then this pace is due; 20 MiB may take 7 s, so that a call behind it in the queue still has time for its own.
    answer_s: to read what was sent. goodbye_s: to close its side. idle_s: between requests; an API server reuses idle
    connections for 90 s, and does not retry a POST that meets a closed one.
    """

    handshake_s: float = 5.0
    first_byte_s: float = 5.0
    headers_s: float = 5.0
    body_s: float = 10.0
    held_s: float = 2.0
    held_bytes_per_s: float = 4 * 1024 * 1024
    answer_s: float = 10.0
    goodbye_s: float = 1.0
    idle_s: float = 120.0
