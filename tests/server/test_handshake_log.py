"""Failed TLS handshakes: what is logged and counted, how often, and which clients are allowed by name."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, Server, listening
from webhook.server.tls import TlsFiles, certificate_names


def client_pair(folder: Path, common_name: str, *others: x509.GeneralName) -> ssl.SSLContext:
    """Return a TLS context with a self-signed client certificate, which is its own authority."""
    now, key = datetime.now(UTC), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
    if others:
        builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pair = folder / f"{common_name}.pem"
    signed = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    pair.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form) + signed)
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(pair)
    return context


def until(claim: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.01)


def post(server: Server, context: ssl.SSLContext) -> int:
    return httpx.post(f"{server.address}/validate", json=review_of(), verify=context).status_code


def test_only_clients_with_these_names_are_accepted(tmp_path: Path) -> None:
    Pki(tmp_path)
    known = {
        "api": client_pair(tmp_path, "api"),
        "by DNS": client_pair(tmp_path, "x", x509.DNSName("api.example")),
        "by URI": client_pair(tmp_path, "y", x509.UniformResourceIdentifier("spiffe://cluster/api")),
        "by email": client_pair(tmp_path, "z", x509.RFC822Name("api@example.org")),
    }
    other = client_pair(tmp_path, "other", x509.DNSName("other.example"))
    authority = tmp_path / "clients.crt"
    authority.write_text("".join(path.read_text() for path in tmp_path.glob("*.pem")))
    files = TlsFiles(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key", client_ca=authority)
    names = ("api", "api.example", "spiffe://cluster/api", "api@example.org")
    with listening(Running(), files, client_name=names) as server:
        assert [post(server, context) for context in known.values()] == [200] * 4
        with pytest.raises(httpx.TransportError):
            post(server, other)
        until(lambda: server.running.counters.handshakes_failed["client_name",] == 1)
        line = next(line for line in server.running.lines() if line["message"] == "TLS handshake failed")
        assert (line["found"], line["expected"]) == (["other", "other.example"], list(names))
        until(lambda: not server.listener.connections)
    with listening(Running(), files) as server:
        assert post(server, other) == 200


def speak(server: Server, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(said)
        with contextlib.suppress(OSError):
            client.recv(1000)


def call(server: Server, context: ssl.SSLContext) -> None:
    with pytest.raises(httpx.TransportError):
        post(server, context)


def send_hello_in_single_bytes(server: Server, pki: Pki) -> None:
    outgoing = ssl.MemoryBIO()
    tls = pki.trust().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    speak(server, b"".join(hello[:3] + b"\x00\x01" + bytes([byte]) for byte in hello[5:]))


FAILURES: dict[str, tuple[str, Callable[[Server, Pki], None]]] = {
    "HTTP without TLS": ("plain_http", lambda server, _: speak(server, b"GET / HTTP/1.1\r\n\r\n")),
    "no TLS at all": ("protocol", lambda server, _: speak(server, b"\x00" * 100)),
    "a hello in too many records": ("protocol", send_hello_in_single_bytes),
    "a client that disconnects": ("closed", lambda server, _: speak(server, b"")),
    "no certificate": ("no_certificate", lambda server, pki: call(server, pki.trust())),
    "a certificate of an unknown authority": (
        "untrusted",
        lambda server, pki: call(server, client_pair(pki.folder, "stranger")),
    ),
    "a client that does not trust the server": (
        "distrusted",
        lambda server, _: call(server, ssl.create_default_context()),
    ),
}


@pytest.mark.parametrize(("reason", "fail"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failed_handshake_is_a_line_and_a_count(
    reason: str, fail: Callable[[Server, Pki], None], tmp_path: Path
) -> None:
    pki = Pki(tmp_path)
    running = Running()
    files = TlsFiles(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key", client_ca=tmp_path / "ca.crt")
    with listening(running, files) as server:
        if reason == "closed":
            socket.create_connection(("127.0.0.1", server.port)).close()
        else:
            fail(server, pki)
        until(lambda: running.counters.handshakes_failed[reason,] == 1)
        until(lambda: running.counters.connections["reviews",] == 0)
    lines = [line for line in running.lines() if line["message"] == "TLS handshake failed"]
    assert [line["reason"] for line in lines] == ([] if reason == "closed" else [reason])


def test_names_of_a_certificate() -> None:
    decoded = {
        "subject": ((("organizationName", "o"),), (("commonName", "c"),)),
        "subjectAltName": (("DNS", "d"), ("URI", "u"), ("email", "e"), ("IP Address", "192.0.2.1")),
    }
    assert certificate_names(decoded) == ("c", "d", "u", "e")
    assert certificate_names({}) == ()
