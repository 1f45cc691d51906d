"""Logs failed TLS handshakes, and other lines that clients can cause without end.

A few lines are written each second; the others are counted. Lines have OpenSSL's reason and the names in a certificate
that the client authority signed, and no other bytes of the client.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from webhook.logs.structured import Level, Log
from webhook.server.counters import Counters

LINES_PER_S: Final = 5
"""This is enough to find the cause; a line has about 500 bytes."""

Write: TypeAlias = Callable[[Level, str, dict[str, Any]], None]


class LimitedLog:
    """Writes a few lines a second with one message, and counts the other lines. Used on the event loop only."""

    def __init__(self, write: Write, message: str, period_s: float = 1.0) -> None:
        """Limit the lines with `message`; `write` takes level, message and fields."""
        self._write = write
        self._message = message
        self._period_s = period_s
        self._lines = self._left_out = 0

    def write(self, level: Level, fields: dict[str, Any]) -> None:
        """Write the line, or count it when the period has enough lines already."""
        if not self._lines:
            asyncio.get_running_loop().call_later(self._period_s, self._end_period)
        self._lines += 1
        if self._lines <= LINES_PER_S:
            self._write(level, self._message, fields)
        else:
            self._left_out += level != "debug"

    def _end_period(self) -> None:
        left_out, self._lines, self._left_out = self._left_out, 0, 0
        if left_out:
            self._write("warning", self._message, {"left_out": left_out})


_SAN_KINDS: Final = frozenset({"DNS", "URI", "email"})


def certificate_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in a client certificate as ssl decodes it: common names, then DNS, URI and email names."""
    subject = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return (*subject, *(value for kind, value in certificate.get("subjectAltName", ()) if kind in _SAN_KINDS))


class HandshakeLog:
    """Logs the failed TLS handshakes of one server. Used on the event loop only."""

    def __init__(self, log: Log, counters: Counters) -> None:
        self._lines = LimitedLog(log.write, "TLS handshake failed")
        self._counters = counters

    def failed(self, peer: str, error: BaseException | None) -> None:
        """Count and log a handshake that failed; the error None means that the client went away."""
        reason, text = _label_and_sentence_of_error(error)
        # port checks of load balancers connect and go: no reason to look
        self._note("debug" if reason == "closed" else "warning", reason, {"peer": peer, "error": text})

    def refused(self, peer: str, names: tuple[str, ...], expected: tuple[str, ...]) -> None:
        """Count and log a client certificate from the right authority with a name that is not allowed."""
        fields = {"peer": peer, "found": list(names), "expected": list(expected), "error": "not one of --client-name"}
        self._note("warning", "client_name", fields)

    def _note(self, level: Level, reason: str, fields: dict[str, Any]) -> None:
        self._counters.handshakes_failed[reason,] += 1
        self._lines.write(level, {"reason": reason, **fields})


_SSL_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": ("no_certificate", "the client showed no certificate; --client-ca needs one"),
    "HTTP_REQUEST": ("plain_http", "the client speaks HTTP without TLS; call https://"),
    "TLSV1_ALERT_UNKNOWN_CA": ("distrusted", "the client does not trust our certificate; check its caBundle"),
    "SSLV3_ALERT_BAD_CERTIFICATE": ("distrusted", "the client refuses our certificate; check its names"),
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": ("distrusted", "the client refuses our certificate"),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": ("distrusted", "the client says that our certificate has expired"),
}
"""A counter label and an explanation for each OpenSSL reason that an operator can act on."""


def _label_and_sentence_of_error(error: BaseException | None) -> tuple[str, str]:
    """Return the counter label of a handshake error, and a sentence that explains it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "untrusted", f"the client's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        return _SSL_REASONS.get(reason, ("protocol", reason.lower().replace("_", " ")))
    if isinstance(error, (ConnectionAbortedError, TimeoutError)):
        return "timeout", "the client did not finish the handshake in time"
    if error is None or isinstance(error, ConnectionError):
        return "closed", "the client went away during the handshake"
    return "other", type(error).__name__
