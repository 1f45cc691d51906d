"""The serving certificate, which changes while the server runs, and one TLS connection without a socket (RFC 8446).

A context that has loaded a mismatched pair is broken for all clients. A context with an ECDSA pair ignores an RSA pair
that is loaded later. So a changed pair gets a new context, which is tested before the next handshake uses it. Session
tickets of the old context are then invalid, so the server checks each client's certificate against the new authority.

OpenSSL processes all received bytes until it finds data. 256 KB can have 9,700 key updates (section 4.6.3), which take
85 ms. So OpenSSL gets each record separately, and a client that sends hardly any data is refused after about forty
records.

Log lines of failed handshakes have OpenSSL's reason and the names in a certificate that the client authority signed. No
other bytes of the client are logged.
"""

from __future__ import annotations

import os
import ssl
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from webhook.errors import ConfigurationError
from webhook.input.reload import ReloadableValue, create_file_state_function
from webhook.logs.structured import Level, LimitedLog, Log
from webhook.server.counters import Counters
from webhook.text.wording import counted
from webhook.yamltext.input_files import read_whole

_ALPN: Final = ["http/1.1"]
"""The only protocol that an API server uses for Services, and that httptools supports."""
_TLS_1_2_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Forward secrecy and authenticated encryption, as in all suites of TLS 1.3; OpenSSL would also offer CBC suites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The paths of the serving pair and of the client authority; without `client_ca`, any client may call."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class ServingPair(NamedTuple):
    """What new handshakes use.

    Args:
        context: for TLS 1.2 or later.
        shown: the PEM text of the certificate.
        trusted: the PEM text of the clients' authority, or b"".
    """

    context: ssl.SSLContext
    shown: bytes
    trusted: bytes


class Certificates(ReloadableValue[ServingPair]):
    """The serving pair and the clients' authority of some files."""

    def __init__(self, files: TlsFiles) -> None:
        """Load the files.

        Raises:
            ConfigurationError: a file cannot be read, or key and certificate do not belong together.
        """
        paths = [files.certificate, files.key, *filter(None, [files.client_ca])]
        super().__init__(lambda: _load_pair(files), create_file_state_function(lambda: paths))


def _load_pair(files: TlsFiles) -> ServingPair:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_TLS_1_2_CIPHERS)
    context.set_alpn_protocols(_ALPN)
    try:
        context.load_cert_chain(files.certificate, files.key, password=_refuse_encrypted_key)
        shown = read_whole(files.certificate)
    except OSError as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(_explain(files, error)) from None
    trusted = _require_client_certificates(context, files.client_ca) if files.client_ca else b""
    return ServingPair(context, shown, trusted)


def _require_client_certificates(context: ssl.SSLContext, authority: Path) -> bytes:
    # returns the PEM text of the authority
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(authority)
        return read_whole(authority)
    except ssl.SSLError:
        raise ConfigurationError(f"--client-ca: `{authority}` does not contain a PEM certificate") from None
    except OSError as error:
        raise ConfigurationError(f"--client-ca: `{authority}`: {_reason(error)}") from None


def key_warning(key: Path) -> str:
    """Return a sentence with the fix if other users can read the private key; otherwise "".

    A Secret volume with fsGroup gives the file to root and to a group of the Pod. Only this group lets the server read
    the file. So a file of another user may be readable by one of our groups.
    """
    state = key.stat()
    is_foreign = state.st_uid != os.geteuid() and state.st_gid in {os.getegid(), *os.getgroups()}
    forbidden = stat.S_IRWXO | (stat.S_IWGRP if is_foreign else stat.S_IRWXG)
    if not state.st_mode & forbidden:
        return ""
    mode = f"{stat.S_IMODE(state.st_mode):04o}"
    fix = f"chmod 600 {key}, or in a Secret volume defaultMode: 0440 with fsGroup"
    return f"`{key}` has mode {mode}: {fix}"


def _refuse_encrypted_key() -> str:
    # OpenSSL would wait for a passphrase on the terminal
    raise ConfigurationError("the private key is encrypted; store it without a passphrase")


def _explain(files: TlsFiles, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        missing = [path for path in (files.certificate, files.key) if not path.exists()]
        names = ", ".join(f"`{path}`" for path in missing) or "a certificate file"
        return f"{names}: no such file; issue a pair with `claimgate certs issue`"
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"the key `{files.key}` does not belong to the certificate `{files.certificate}`"
        reason = f": {error.reason.lower().replace('_', ' ')}" if error.reason else ""
        return f"`{files.certificate}` and `{files.key}` are not a PEM certificate and key{reason}"
    return f"`{error.filename or files.certificate}`: {_reason(error)}"


def _reason(error: OSError) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()


def describe_wrong_period(begins: datetime, ends: datetime, now: datetime) -> str:
    """Return why a certificate is not valid now, and what to do first; "" if it is valid.

    A wrong clock is likely before the validity of a certificate, and unlikely after it.
    """
    if now < begins:
        sentence = f"it is not valid before {_time(begins)}, in {_length(begins - now)}"
        fix = "set this clock right; if it is right, issue a new certificate"
        return f"{sentence}, and the clock of this machine says {_time(now)}: {fix}"
    if ends < now:
        fix = "issue a new certificate; if the Deployment claimgate-certificates should renew it, read its log"
        clock = f"this machine's clock says {_time(now)}; if that time is wrong, correct the clock"
        return f"it expired at {_time(ends)}, {_length(now - ends)} ago: {fix}; {clock}"
    return ""


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


def _length(period: timedelta) -> str:
    # `3 days`, `47 hours`: in the largest unit with a count of at least 2
    seconds = int(period.total_seconds())
    units = (("day", 86400), ("hour", 3600), ("minute", 60))
    return next((counted(seconds // size, name) for name, size in units if seconds >= 2 * size), "a minute or two")


@lru_cache(maxsize=2)
def validity_of_certificate(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the first and the last moment at which the first certificate of PEM text is valid."""
    from certs.issue import read

    facts = read(certificate)[0]
    return facts.not_before, facts.not_after


_RECORD_HEAD: Final = 5
"""The head of a record: its type, a version, and two bytes with the length of the rest."""
_RECORD_TYPES: Final = range(20, 24)
_DATA_BYTES: Final = 16 * 1024
_RECORD_BYTES: Final = _RECORD_HEAD + _DATA_BYTES + 2048
"""The maximum size of a record in TLS 1.2: its head, _DATA_BYTES of data, and the bytes that encryption adds (RFC 5246,
section 6.2.3).
"""
MAX_OVERHEAD_BYTES: Final = 1024
"""The received bytes may exceed twice the data by this much. A record adds 22 to 29 bytes to its data, and the
shortest request has 40 bytes."""
_HANDSHAKE_RECORDS: Final = 64
"""The maximum number of records of a handshake. A hello is one record. A chain of certificates has a record for each 16
KB, or for each 512 bytes from small devices (RFC 6066, section 4). OpenSSL would accept a hello of 131 KB in records of
one byte: 0.25 s.
"""


class TlsStream:
    """The server's side of one TLS connection.

    Attributes:
        has_ended: the client sends nothing more.
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
        """Return how many received bytes are still encrypted."""
        return len(self._received)

    @property
    def has_whole_record(self) -> bool:
        """Return whether a record is complete. True also for bytes that are not TLS."""
        return len(self._received) >= self._next_size()

    def receive(self, data: bytes | memoryview) -> None:
        self._received += data

    def continue_handshake(self) -> bool:
        """Continue the handshake with the received bytes, and return whether it is complete.

        Send `take_outgoing` afterwards.

        Raises:
            ssl.SSLError: the handshake failed, or has too many records.
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
        """Return the data of the next record, b"" if it has no data; None while no record is whole.

        Raises:
            ssl.SSLError: the record is not of this connection, or hardly any of the received bytes were data.
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
        rest, records = memoryview(data), []
        while rest:
            written = self._object.write(rest[:_DATA_BYTES])  # in pieces, because OpenSSL's buffers never shrink
            records.append(self._outgoing.read())
            rest = rest[written:]
        return records[0] if len(records) == 1 else b"".join(records)

    def take_outgoing(self) -> bytes:
        """Return the protocol messages of TLS to send: the server's part of the handshake, an alert, new keys."""
        return self._outgoing.read()

    def goodbye(self) -> bytes:
        """Return the bytes that end the server's side."""
        with suppress(ssl.SSLError):  # the client has not sent its goodbye
            self._object.unwrap()
        return self._outgoing.read()

    def client_certificate(self) -> Mapping[str, Any]:
        """Return the client's certificate as ssl decodes it; empty without a certificate."""
        return self._object.getpeercert() or {}

    def _next_size(self) -> int:
        # bytes that are not TLS count as one record
        received = self._received
        if received and received[0] not in _RECORD_TYPES:
            return len(received)
        if len(received) < _RECORD_HEAD:
            return _RECORD_HEAD
        size = _RECORD_HEAD + (received[3] << 8 | received[4])
        return size if size <= _RECORD_BYTES else len(received)

    def _pass_next_record(self) -> int:
        size = self._next_size()
        self._incoming.write(self._received[:size])
        del self._received[:size]
        return size


_SAN_KINDS: Final = frozenset({"DNS", "URI", "email"})


def certificate_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in a client certificate (decoded by ssl): common names, then DNS, URI and email names."""
    subject = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return (*subject, *(value for kind, value in certificate.get("subjectAltName", ()) if kind in _SAN_KINDS))


class HandshakeLog:
    """Logs the failed TLS handshakes of one server. Use an instance on one event loop only."""

    def __init__(self, log: Log, counters: Counters) -> None:
        self._lines = LimitedLog(log.write, "TLS handshake failed")
        self._counters = counters

    def failed(self, peer: str, error: ssl.SSLError | TimeoutError | None) -> None:
        """Count and log a failed handshake. If `error` is None, the client went away."""
        reason, text = _label_and_sentence_of_error(error)
        # load balancers connect and disconnect to check the port
        self._note("debug" if reason == "closed" else "warning", reason, {"peer": peer, "error": text})

    def refused(self, peer: str, names: tuple[str, ...], expected: tuple[str, ...]) -> None:
        """Count and log a client certificate from the right authority with a forbidden name."""
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


def _label_and_sentence_of_error(error: ssl.SSLError | TimeoutError | None) -> tuple[str, str]:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "untrusted", f"the client's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or str(error)  # our own errors have no reason of OpenSSL
        return _SSL_REASONS.get(reason, ("protocol", reason.lower().replace("_", " ")))
    if error is None:
        return "closed", "the client went away during the handshake"
    return "timeout", "the client did not finish the handshake in time"
