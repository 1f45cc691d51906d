"""Decrypts one TLS record at a time, so that one connection does not stop the others.

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
