"""One TLS connection without a socket: converts bytes of the network to data, one record at a time (RFC 8446).

OpenSSL works on all that came until it finds data. 256 KB of key updates (section 4.6.3) are 9,700, which take it 85
ms; in records of one byte they are 11,000 calls. So each record is given to OpenSSL separately, and a client that sends
records with hardly any data is refused after about forty of them.

Log lines of failed handshakes hold OpenSSL's reason and the names in a certificate that the client authority signed,
and no other bytes of the client.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from webhook.logs.structured import Level, LimitedLog, Log
from webhook.server.counters import Counters

_RECORD_HEAD: Final = 5
"""Bytes before a record: its type, a version, and in the last two how many follow."""
_RECORD_TYPES: Final = range(20, 24)
_DATA_BYTES: Final = 16 * 1024
_RECORD_BYTES: Final = _RECORD_HEAD + _DATA_BYTES + 2048
"""The most bytes of data in a record, and of a record with what TLS 1.2 may add (RFC 5246, section 6.2.3)."""
MAX_OVERHEAD_BYTES: Final = 1024
"""How many bytes without data may arrive in a row, in addition to the amount of data between them. A record has 22 to
29 bytes in addition to its data, the shortest request has 40."""
_HANDSHAKE_RECORDS: Final = 64
"""The most records of a handshake. A hello is one record. A chain of certificates has a record for each 16 KB, or for
each 512 bytes from small devices (RFC 6066, section 4). OpenSSL accepts a hello of 131 KB in records of one byte, which
takes 0.25 s."""


class TlsStream:
    """The server's side of one TLS connection.

    Attributes:
        has_ended: the client said that it sends nothing more.
    """

    __slots__ = ("_handshake_records", "_incoming", "_object", "_outgoing", "_overhead_bytes", "_received", "has_ended")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._received = bytearray()
        self._handshake_records = self._overhead_bytes = 0
        self.has_ended = False

    @property
    def waiting_bytes(self) -> int:
        """Return how many received bytes are not decrypted yet."""
        return len(self._received)

    @property
    def has_whole_record(self) -> bool:
        """Return whether a record is complete, or the bytes are not TLS."""
        return len(self._received) >= self._next_size()

    def receive(self, data: bytes | memoryview) -> None:
        """Take bytes of the network."""
        self._received += data

    def continue_handshake(self) -> bool:
        """Continue the handshake with the received bytes, and return whether it is complete; send `take_outgoing`
        afterwards.

        Raises:
            ssl.SSLError: it failed, or has too many records.
        """
        while self.has_whole_record:
            self._handshake_records += 1
            if self._handshake_records > _HANDSHAKE_RECORDS:
                raise ssl.SSLError("the client sends its handshake in too many records")
            self._pass_next_record()
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                continue
            return True
        return False

    def read(self) -> bytes | None:
        """Return the data of the next record, which may be none; None while no record is whole.

        Raises:
            ssl.SSLError: it is not a record of this connection, or hardly any of the received bytes were data.
        """
        if not self.has_whole_record:
            return None
        size = self._pass_next_record()
        try:
            data = self._object.read(_DATA_BYTES)
            self.has_ended = not data
        except ssl.SSLWantReadError:
            data = b""
        self._overhead_bytes = max(0, self._overhead_bytes + size - 2 * len(data))
        if self._overhead_bytes > MAX_OVERHEAD_BYTES:
            raise ssl.SSLError("the client sends records with hardly any data")
        return data

    def encrypt(self, data: bytes | memoryview) -> bytes:
        """Return the bytes to send for `data`."""
        rest, records = memoryview(data), []
        while rest:
            written = self._object.write(rest[:_DATA_BYTES])  # a buffer of OpenSSL keeps the size that it once had
            records.append(self._outgoing.read())
            rest = rest[written:]
        return records[0] if len(records) == 1 else b"".join(records)

    def take_outgoing(self) -> bytes:
        """Return the bytes of TLS protocol messages to send: its part of the handshake, an alert, other keys."""
        return self._outgoing.read()

    def goodbye(self) -> bytes:
        """Return the bytes that tell the client that the server sends nothing more."""
        with suppress(ssl.SSLError):  # which says that the client has not said so
            self._object.unwrap()
        return self._outgoing.read()

    def client_certificate(self) -> Mapping[str, Any]:
        """Return the client's certificate as ssl decodes it; empty without one."""
        return self._object.getpeercert() or {}

    def _next_size(self) -> int:
        """Return the size of the next record if its head has arrived; for other bytes, all received ones."""
        received = self._received
        if received and received[0] not in _RECORD_TYPES:
            return len(received)
        if len(received) < _RECORD_HEAD:
            return _RECORD_HEAD
        size = _RECORD_HEAD + (received[3] << 8 | received[4])
        return size if size <= _RECORD_BYTES else len(received)

    def _pass_next_record(self) -> int:
        """Give the next record to OpenSSL, and return its size."""
        size = self._next_size()
        self._incoming.write(self._received[:size])
        del self._received[:size]
        return size


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
