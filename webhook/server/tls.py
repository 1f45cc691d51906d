"""Loads the serving certificate, changes it while the server runs, and decrypts one TLS record at a time.

A context that took a mismatched pair is broken for all clients. A context that holds an ECDSA pair goes on serving it
when an RSA pair is loaded. So a changed pair gets a context of its own, which is proven before it is used. Each
handshake begins with the newest context. A context keeps the keys of its session tickets, so a client whose authority
was replaced has to show its certificate again.

Decryption stops after one record (RFC 8446), so one connection does not stop the others.
"""

from __future__ import annotations

import os
import ssl
import stat
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from webhook.errors import ConfigurationError
from webhook.server import private_api
from webhook.yamltext.input_files import read_whole

_RECORD_BYTES: Final = 16 * 1024
"""The most that one TLS record holds (RFC 8446, section 5.1)."""
_RECORD_HEAD: Final = 5
"""Bytes before a record: its type, a version, and in the last two how many follow."""
MAX_OVERHEAD_BYTES: Final = 1024
"""How many bytes that are not data may come in a row, beyond as much as the data among them. A record has 22 to 29
bytes in addition to its data, the shortest request has 40.
"""

_HANDSHAKE_RECORDS: Final = 64
"""The most records that a client may send until its handshake is done. A hello is one, a chain of certificates one for
each 16 KB, or for each 512 bytes of small devices (RFC 6066, section 4).
"""


class RecordwiseTlsObject(ssl.SSLObject):
    """A TLS connection that decrypts one record at a time, and ends when hardly anything that comes is data.

    OpenSSL works on all that came until it finds data. 256 KB of key updates (RFC 8446, section 4.6.3) are 9,700, which
    take it 85 ms; in records of one byte they are 11,000 calls. After each record something can be done about it.

    A read also asks for as much memory as one record can fill. uvloop asks for 256 KB each time; such blocks come from
    the heap or, above the bound that operating_system.py sets, from the system, which takes 45 us.
    """

    _came: ssl.MemoryBIO
    _taken: ssl.MemoryBIO
    _missing = _record_bytes = _overhead = 0
    _handshake_records = _HANDSHAKE_RECORDS
    _may_hold_more = False

    @property
    def has_unread(self) -> bool:
        """Return whether bytes have arrived that are not decrypted yet."""
        return bool(self._came.pending or self._may_hold_more)

    def set_buffers(self, came: ssl.MemoryBIO, taken: ssl.MemoryBIO) -> None:
        """Set the buffer that the client's bytes arrive in and the one that OpenSSL reads; called once, before anything
        else.
        """
        self._came, self._taken = came, taken

    def do_handshake(self) -> None:
        """Continue the handshake record by record until it is done or needs more bytes.

        Raises:
            ssl.SSLError: it needs more bytes (SSLWantReadError), failed, or has too many records: a hello of 131 KB in
                records of one byte takes OpenSSL a quarter of a second.
        """
        while True:
            try:
                super().do_handshake()
            except ssl.SSLWantReadError:
                waiting = self._came.pending
                self._handshake_records -= self._pass_next_record()
                if self._came.pending == waiting:  # nothing came, or not even the head of a record
                    raise
                if self._handshake_records < 0:
                    raise ssl.SSLError("the client sends its handshake in too many records") from None
            else:
                self._record_bytes = 0  # a hello of 2 KB is no overhead of the first request
                return

    def read(self, len: int = _RECORD_BYTES, buffer: Any = None) -> Any:  # noqa: A002 - its name in ssl.SSLObject
        """Return the data of one record, or fill `buffer` with it and return its length.

        Raises:
            ssl.SSLError: no whole record is left (SSLWantReadError), or hardly anything that came was data.
        """
        inner = private_api.inner(self)
        asked = min(_RECORD_BYTES, len)
        while self._may_hold_more or self._pass_next_record():
            self._may_hold_more = False
            try:
                read = inner.read(asked) if buffer is None else inner.read(len, buffer)
            except ssl.SSLWantReadError:
                self._count_overhead(0)
            else:
                size = read if buffer is not None else read.__len__()  # `len` is the argument here
                self._may_hold_more = (size == asked or buffer is not None) and inner.pending() > 0
                self._count_overhead(size)
                return read
        raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "no whole record")

    def _pass_next_record(self) -> bool:
        """Pass the next record, or the part that has arrived, to OpenSSL; return whether the record is whole."""
        came = self._came
        waiting = came.pending
        if not self._missing:
            if waiting < _RECORD_HEAD:
                return False
            if waiting <= _RECORD_BYTES:
                record = came.read()
                if record[3] << 8 | record[4] == waiting - _RECORD_HEAD:  # a single one, as most reviews
                    self._taken.write(record)
                    self._record_bytes += waiting
                    return True
                came.write(record)
        return self._pass_one_of_several_records()

    def _pass_one_of_several_records(self) -> bool:
        """Pass one of several records, or a part of one, to OpenSSL; return whether the record is whole."""
        missing, head = self._missing, b""
        if not missing:
            head = self._came.read(_RECORD_HEAD)
            missing = head[3] << 8 | head[4]
            self._record_bytes += _RECORD_HEAD + missing
        rest = self._came.read(missing)
        self._taken.write(head + rest)
        self._missing = missing - len(rest)
        return not self._missing

    def _count_overhead(self, data_bytes: int) -> None:
        """Count the bytes of the last record that were not data, and refuse too many of them."""
        self._overhead = max(self._overhead + self._record_bytes - 2 * data_bytes, 0)
        self._record_bytes = 0
        if self._overhead > MAX_OVERHEAD_BYTES:
            raise ssl.SSLError("the client sends records with hardly any data")


class RecordwiseTlsContext(ssl.SSLContext):
    """A TLS context whose connections are RecordwiseTlsObject."""

    sslobject_class = RecordwiseTlsObject

    def wrap_bio(self, incoming: ssl.MemoryBIO, *args: Any, **options: Any) -> RecordwiseTlsObject:
        """Create the connection object with a buffer between the client's bytes and OpenSSL."""
        taken = ssl.MemoryBIO()
        made = super().wrap_bio(taken, *args, **options)
        assert isinstance(made, RecordwiseTlsObject)  # sslobject_class says so
        made.set_buffers(incoming, taken)
        return made


Mark: TypeAlias = tuple[tuple[int, int, int], ...]
"""Modification time, size and inode of each file, which change with the file, also behind a swapped link."""

_ALPN: Final = ["http/1.1"]
"""An API server offers only this to Services, and uvicorn's httptools speaks nothing else."""
_TLS_1_2_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Forward secrecy and authenticated encryption; OpenSSL would also offer CBC suites. TLS 1.3 has no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The paths of the serving pair and of the client authority; without client_ca any client may call."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def file_states(self) -> Mark:
        """Return modification time, size and inode of all files.

        Raises:
            OSError: one of them is not there.
        """
        paths = [self.certificate, self.key] + ([self.client_ca] if self.client_ca else [])
        states = [path.stat() for path in paths]
        return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)


def create_server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a server context for TLS 1.2 or later with this certificate and key.

    Raises:
        ConfigurationError: a file is missing or unreadable, or key and certificate do not belong together.
    """
    made = RecordwiseTlsContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(_TLS_1_2_CIPHERS)
    made.set_alpn_protocols(_ALPN)
    try:
        made.load_cert_chain(files.certificate, files.key, password=_refuse_encrypted_key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(_explain(files, error)) from None
    if files.client_ca:
        _require_client_certificates(made, files.client_ca)
    return made


def _require_client_certificates(listening: ssl.SSLContext, authority: Path) -> None:
    try:
        listening.load_verify_locations(authority)
    except ssl.SSLError:
        raise ConfigurationError(f"--client-ca: `{authority}` does not contain a PEM certificate") from None
    except OSError as error:
        raise ConfigurationError(f"--client-ca: `{authority}`: {_reason(error)}") from None
    listening.verify_mode = ssl.CERT_REQUIRED


class Certificates:
    """The current TLS context and its certificate. `reload` may be called from any thread, one at a time.

    Attributes:
        context: of the next handshake.
        shown: the PEM text of the certificate that new handshakes see.
        trusted: the PEM text of the authority of clients, another object once it was replaced; empty without one.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self._mark = self._read_file_states()
        self.context = create_server_context(files)
        self.shown = read_whole(files.certificate)
        self.trusted = self._authority()

    def reload(self) -> bool:
        """Load the files again if they changed; the next handshake uses them.

        Returns:
            Whether there was a change.

        Raises:
            ConfigurationError: the changed files are no usable pair; the last one stays in service.
        """
        mark = self._read_file_states()
        if mark == self._mark:
            return False
        trusted = self._authority()
        self.context = create_server_context(self.files)
        self.shown = read_whole(self.files.certificate)
        if trusted != self.trusted:
            self.trusted = trusted
        self._mark = mark
        return True

    def _read_file_states(self) -> Mark:
        try:
            return self.files.file_states()
        except OSError as error:
            raise ConfigurationError(_explain(self.files, error)) from None

    def _authority(self) -> bytes:
        try:
            return read_whole(self.files.client_ca) if self.files.client_ca else b""
        except OSError as error:
            raise ConfigurationError(f"--client-ca: `{self.files.client_ca}`: {_reason(error)}") from None


def key_warning(key: Path) -> str:
    """Return a warning if other users can read the private key, else "".

    A Secret volume with fsGroup gives the file to root and to a group of the Pod, through which alone the server can
    read it: a file of somebody else that is readable by one of our groups is as it must be.
    """
    state = key.stat()
    is_foreign = state.st_uid != os.geteuid() and state.st_gid in {os.getegid(), *os.getgroups()}
    forbidden = stat.S_IRWXO | (stat.S_IWGRP if is_foreign else stat.S_IRWXG)
    if not state.st_mode & forbidden:
        return ""
    mode = f"{stat.S_IMODE(state.st_mode):04o}"
    fix = f"chmod 600 {key}, or in a Secret volume defaultMode: 0440 with fsGroup"
    return f"`{key}` has mode {mode}: other users can read the private key; {fix}"


def _refuse_encrypted_key() -> str:
    """Refuse an encrypted key, because OpenSSL would ask for a passphrase on the terminal and wait for ever."""
    raise ConfigurationError("the private key is encrypted; store it without a passphrase")


def _explain(files: TlsFiles, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        if files.client_ca and str(files.client_ca) == str(error.filename):
            return f"--client-ca: `{files.client_ca}`: no such file"
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
    return (error.strerror or str(error)).lower()


@lru_cache(maxsize=2)
def validity_of_certificate(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the times from which and until which the first certificate of PEM text is valid."""
    from certs.issue import read

    facts = read(certificate)[0]
    return facts.not_before, facts.not_after
