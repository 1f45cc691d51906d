"""TLS records in memory, without a network: which records a client may send, and that no byte is lost."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.serving import Pki
from webhook.server.tls import Certificates, TlsStream


class Client:
    """A TLS client that exchanges bytes in memory. `hello_bytes` makes its first message longer."""

    def __init__(self, folder: Path, *, hello_bytes: int = 0) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(["http/1.1", *(f"{number:0200}" for number in range(hello_bytes // 200))])
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        self.server = TlsStream(Certificates(Pki(folder).files).current.context)

    def shake_hands(self) -> bool:
        """Continue the handshake as far as the received bytes allow, and return whether it is complete."""
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
            return True
        return False

    def connected(self) -> Client:
        is_done = False
        while not is_done:
            self.shake_hands()
            self.server.receive(self.outgoing.read())
            is_done = self.server.continue_handshake()
            self.incoming.write(self.server.take_outgoing())
        return self

    def sent(self, data: bytes, size: int | None = None) -> bytes:
        """Return the TLS records for the data, with up to `size` bytes in each record."""
        for start in range(0, len(data), size or len(data)):
            self.tls.write(data[start : start + (size or len(data))])
        return self.outgoing.read()


def test_nearly_empty_tls_records_end_the_connection(tmp_path: Path) -> None:
    client = Client(tmp_path).connected()
    client.server.receive(client.sent(b"a" * 100, 1))
    with pytest.raises(ssl.SSLError, match="hardly any data"):
        list(iter(client.server.read, None))


def test_the_handshake_does_not_count_as_overhead(tmp_path: Path) -> None:
    """The first message of a TLS client of Go has 1.7 KB, because of its post-quantum key."""
    client = Client(tmp_path, hello_bytes=8_000).connected()
    client.server.receive(client.sent(b"a"))
    assert client.server.read() == b"a"


def test_any_number_of_short_requests_is_accepted(tmp_path: Path) -> None:
    client = Client(tmp_path).connected()
    client.server.receive(client.sent(b"a" * 400_000, 40))
    assert list(iter(client.server.read, None)) == [b"a" * 40] * 10_000


@pytest.mark.parametrize(("size", "is_refused"), [(1, True), (32, False)])
def test_a_hello_in_too_many_records_ends_the_connection(tmp_path: Path, size: int, is_refused: bool) -> None:
    """Without a limit, OpenSSL would accept a first message of 131 KB in records of one byte, and need a quarter of a
    second.
    """
    client = Client(tmp_path)
    client.shake_hands()
    head, hello = client.outgoing.read(3), client.outgoing.read()[2:]
    for start in range(0, len(hello), size):
        part = hello[start : start + size]
        client.server.receive(head + len(part).to_bytes(2, "big") + part)
    assert len(hello) > 200
    if is_refused:
        with pytest.raises(ssl.SSLError, match="in too many records"):
            client.server.continue_handshake()
    else:
        assert not client.server.continue_handshake()
        assert client.server.take_outgoing()


def test_data_that_arrives_byte_by_byte_is_accepted(tmp_path: Path) -> None:
    client, is_done = Client(tmp_path), False
    while not is_done:
        client.shake_hands()
        for byte in client.outgoing.read():
            client.server.receive(bytes([byte]))
            is_done = client.server.continue_handshake()
        client.incoming.write(client.server.take_outgoing())
    for byte in client.sent(b"hello"):
        assert client.server.read() is None
        client.server.receive(bytes([byte]))
    assert client.server.read() == b"hello"


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100, b"\x16\x03\x01\xff\xff" * 9],
    ids=["HTTP", "zeros", "a record that is too long"],
)
def test_bytes_that_are_not_tls_are_recognized_at_once(tmp_path: Path, said: bytes) -> None:
    server = Client(tmp_path).server
    server.receive(said)
    assert server.has_whole_record
    with pytest.raises(ssl.SSLError):
        server.continue_handshake()


def test_large_data_is_transferred_completely_in_both_directions(tmp_path: Path) -> None:
    client, data = Client(tmp_path).connected(), os.urandom(100_000)
    client.server.receive(client.sent(data))
    pieces = list(iter(client.server.read, None))
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) == 1 << 14
    client.incoming.write(client.server.encrypt(data))
    heard = b""
    while len(heard) < len(data):
        heard += client.tls.read(1 << 16)
    assert heard == data


def test_each_side_closes_tls(tmp_path: Path) -> None:
    client = Client(tmp_path).connected()
    with suppress(ssl.SSLWantReadError):
        client.tls.unwrap()
    client.server.receive(client.outgoing.read())
    assert (client.server.read(), client.server.has_ended) == (b"", True)
    client.incoming.write(client.server.goodbye())
    client.tls.unwrap()


def test_a_forged_record_is_refused(tmp_path: Path) -> None:
    client = Client(tmp_path).connected()
    record = bytearray(client.sent(b"hello"))
    record[-1] ^= 1
    client.server.receive(bytes(record))
    with pytest.raises(ssl.SSLError):
        client.server.read()
    assert client.server.take_outgoing(), "an alert"
