"""TLS of one connection, a record at a time: how much OpenSSL works on before others get their turn.

Knows records as RFC 8446 has them; nothing of certificates or HTTP.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

from webhook.server import private_api

_RECORD_BYTES: Final = 16 * 1024
"""The most that one TLS record holds (RFC 8446, section 5.1)."""
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

    @property
    def has_unread(self) -> bool:
        """Whether bytes have arrived that are not decrypted yet."""
        return bool(self._came.pending or self._may_hold_more)

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
        inner = private_api.inner(self)
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


class RecordContext(ssl.SSLContext):
    """A TLS context whose connections read record by record, as RecordReads does."""

    sslobject_class = RecordReads

    def wrap_bio(self, incoming: ssl.MemoryBIO, *args: Any, **options: Any) -> RecordReads:
        """As in ssl.SSLContext, with a step between what came and OpenSSL."""
        taken = ssl.MemoryBIO()
        made = super().wrap_bio(taken, *args, **options)
        assert isinstance(made, RecordReads)  # sslobject_class says so
        made.take_from(incoming, taken)
        return made
