"""The certificate that the server shows, changed while it runs.

Knows what makes a TLS context and when its files changed; knows nothing of HTTP or of who issues certificates.

A context that took a mismatched pair is broken for everybody, and one that holds an ECDSA pair goes on serving it when
an RSA pair is loaded over it. So a changed pair always gets a context of its own, which is proven before it is used,
and the listening context hands every handshake over to the newest proven one.
"""

from __future__ import annotations

import os
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from webhook.errors import ConfigurationError

Mark: TypeAlias = tuple[tuple[int, int, int], ...]
"""Modification time, size and inode of each file: what tells that one changed, also behind a swapped link."""

_ALPN: Final = ["http/1.1"]
"""An API server offers only this to Services, and uvicorn's httptools speaks nothing else."""
_TLS_1_2_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Forward secrecy and authenticated encryption; OpenSSL would also offer CBC suites. TLS 1.3 has no others."""

_RECORD_BYTES: Final = 16 * 1024
"""The most that one TLS record holds (RFC 8446, section 5.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where the serving pair stands, and whom clients must be signed by; without client_ca anyone may call."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def mark(self) -> Mark:
        """What the files are right now.

        Raises:
            OSError: one of them is not there.
        """
        paths = [self.certificate, self.key] + ([self.client_ca] if self.client_ca else [])
        states = [path.stat() for path in paths]
        return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)


_RECORD_HEAD: Final = 5
"""Bytes before a record: its type, a version, and in the last two how many follow."""
MAX_OVERHEAD_BYTES: Final = 1024
"""What may come in a row that is no data, beyond as much as the data among it; data that came before earns nothing. A
record has 22 to 29 bytes besides, the shortest request has 40."""


class RecordReads(ssl.SSLObject):
    """TLS of one connection that takes one record at a time, and ends where hardly anything that comes is data.

    OpenSSL works on all that came until it finds data. 256 KB of key updates (RFC 8446, section 4.6.3) are 9,700, which
    take it 85 ms; in records of one byte they are 11,000 calls. After each record something can be done about it.

    A read also asks for as much memory as one record can fill. uvloop asks for 256 KB each time; such blocks come from
    the heap or, above the bound that operating_system.py sets, from the system, which takes 45 us.
    """

    _came: ssl.MemoryBIO
    _taken: ssl.MemoryBIO
    _missing = _record_bytes = _overhead = 0
    _may_hold_more = False

    def take_from(self, came: ssl.MemoryBIO, taken: ssl.MemoryBIO) -> None:
        """What came from the client, and where OpenSSL reads; called once, before anything else."""
        self._came, self._taken = came, taken

    def do_handshake(self) -> None:
        """Shake hands with what came; what is no TLS is told from the beginning of a record."""
        while True:
            try:
                super().do_handshake()
            except ssl.SSLWantReadError:
                waiting = self._came.pending
                self._take()
                if self._came.pending == waiting:  # nothing came, or not even the head of a record
                    raise
            else:
                self._record_bytes = 0  # a hello of 2 KB is no overhead of the first request
                return

    def read(self, len: int = _RECORD_BYTES, buffer: Any = None) -> Any:  # noqa: A002 - its name in ssl.SSLObject
        """One record's bytes; into the buffer if there is one, and then how many.

        Raises:
            ssl.SSLError: no whole record is left (SSLWantReadError), or hardly anything that came was data.
        """
        inner: Any = self._sslobj  # type: ignore[attr-defined]  # a call fewer for each review
        asked = min(_RECORD_BYTES, len)
        while self._may_hold_more or self._take():
            self._may_hold_more = False
            try:
                read = inner.read(asked) if buffer is None else inner.read(len, buffer)
            except ssl.SSLWantReadError:
                self._count(0)
            else:
                size = read if buffer is not None else read.__len__()  # `len` is the argument here
                self._may_hold_more = (size == asked or buffer is not None) and inner.pending() > 0
                self._count(size)
                return read
        raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "no whole record")

    def _take(self) -> bool:
        """Give OpenSSL the next record, or what came of it; whether it is whole now."""
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
        return self._take_first()

    def _take_first(self) -> bool:
        """The same of several records, or of a part of one."""
        missing, head = self._missing, b""
        if not missing:
            head = self._came.read(_RECORD_HEAD)
            missing = head[3] << 8 | head[4]
            self._record_bytes += _RECORD_HEAD + missing
        rest = self._came.read(missing)
        self._taken.write(head + rest)
        self._missing = missing - len(rest)
        return not self._missing

    def _count(self, data_bytes: int) -> None:
        """Note what the last record was, by how much of it was data."""
        self._overhead = max(self._overhead + self._record_bytes - 2 * data_bytes, 0)
        self._record_bytes = 0
        if self._overhead > MAX_OVERHEAD_BYTES:
            raise ssl.SSLError("the client sends records with hardly any data")


class _Context(ssl.SSLContext):
    """A context whose connections read as RecordReads do."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, *args: Any, **options: Any) -> RecordReads:
        """As in ssl.SSLContext, with a step between what came and OpenSSL."""
        taken = ssl.MemoryBIO()
        made = super().wrap_bio(taken, *args, **options)
        assert isinstance(made, RecordReads)  # sslobject_class says so
        made.take_from(incoming, taken)
        return made


def context(files: Files) -> ssl.SSLContext:
    """A server context of TLS 1.2 or later with this pair, proven to be one.

    Raises:
        ConfigurationError: a file is missing or unreadable, or key and certificate do not belong together.
    """
    made = _Context(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(_TLS_1_2_CIPHERS)
    made.set_alpn_protocols(_ALPN)
    made.sslobject_class = RecordReads
    try:
        made.load_cert_chain(files.certificate, files.key, password=_no_password)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(_explain(files, error)) from None
    if files.client_ca:
        _ask_for_clients(made, files.client_ca)
    return made


def _ask_for_clients(listening: ssl.SSLContext, authority: Path) -> None:
    try:
        listening.load_verify_locations(authority)
    except ssl.SSLError:
        raise ConfigurationError(f"--client-ca: `{authority}` does not contain a PEM certificate") from None
    except OSError as error:
        raise ConfigurationError(f"--client-ca: `{authority}`: {(error.strerror or str(error)).lower()}") from None
    listening.verify_mode = ssl.CERT_REQUIRED


class Certificates:
    """The listening context and the pair behind it. `reload` may be called from any thread, one at a time.

    Attributes:
        listening: the context to listen with.
        shown: the PEM text of the certificate that new handshakes see.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self._mark = self._look()
        self.listening = context(files)
        self._newest = self.listening
        self.shown = files.certificate.read_bytes()
        self.listening.sni_callback = self._hand_over

    def reload(self) -> bool:
        """Serve what the files hold now, if they changed since the last time; new handshakes see it at once.

        Returns:
            Whether there was a change.

        Raises:
            ConfigurationError: the changed files are no usable pair; the last one stays in service.
        """
        mark = self._look()
        if mark == self._mark:
            return False
        self._newest = context(self.files)
        self.shown = self.files.certificate.read_bytes()
        self._mark = mark
        return True

    def _look(self) -> Mark:
        try:
            return self.files.mark()
        except OSError as error:
            raise ConfigurationError(_explain(self.files, error)) from None

    def _hand_over(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _old: ssl.SSLContext) -> None:
        connection.context = self._newest


def key_warning(key: Path) -> str:
    """Why others than the server may read the private key and what to do about it, or "".

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


def _no_password() -> str:
    """Instead of OpenSSL's prompt on the terminal, which would stop the start for ever."""
    raise ConfigurationError("the private key is encrypted; store it without a passphrase")


def _explain(files: Files, error: OSError) -> str:
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
    return f"`{error.filename or files.certificate}`: {(error.strerror or str(error)).lower()}"
