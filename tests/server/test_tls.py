"""Certificates of a running server: which ones the server refuses, and that a renewed one is used for new handshakes.
Open connections stay.
"""

from __future__ import annotations

import socket
import ssl
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from certs.issue import authority
from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, Server, listening, reloaded
from webhook.errors import ConfigurationError
from webhook.server.tls import Certificates, TlsFiles


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def shown(server: Server, name: str | None = "localhost", highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode, context.maximum_version = False, ssl.CERT_NONE, highest
    with (
        socket.create_connection(("127.0.0.1", server.port)) as raw,
        context.wrap_socket(raw, server_hostname=name) as tls,
    ):
        found = tls.getpeercert(binary_form=True)
        assert found
        assert tls.selected_alpn_protocol() is None
        return ssl.DER_cert_to_PEM_cert(found).encode()


def _rsa_pair(folder: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    old = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    builder = x509.CertificateBuilder(
        old.subject,
        old.subject,
        key.public_key(),
        1,
        old.not_valid_before_utc,
        old.not_valid_after_utc,
        list(old.extensions),
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "tls.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))


def test_verified_tls_of_two_versions(pki: Pki) -> None:
    with listening(Running(), pki.files) as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = pki.trust()
            context.minimum_version = context.maximum_version = version
            assert httpx.post(f"{server.address}/validate", json=review_of(), verify=context).status_code == 200


def test_tls_1_2_has_only_forward_secrecy_and_authenticated_encryption(pki: Pki) -> None:
    offered = [cipher["name"] for cipher in Certificates(pki.files).current.context.get_ciphers()]
    old = [name for name in offered if not name.startswith("TLS_")]
    assert {name for name in offered if name.startswith("TLS_")} == {
        cipher["name"] for cipher in ssl.create_default_context().get_ciphers() if cipher["name"].startswith("TLS_")
    }
    assert old
    assert all(name.startswith("ECDHE-") and ("-GCM-" in name or "CHACHA20" in name) for name in old)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_older_tls_is_refused(pki: Pki) -> None:
    with listening(Running(), pki.files) as server, pytest.raises((ssl.SSLError, ConnectionError)):
        shown(server, highest=ssl.TLSVersion.TLSv1_1)


@pytest.mark.parametrize("name", ["localhost", None], ids=["with SNI", "without SNI"])
def test_a_renewed_pair_reaches_new_handshakes_and_drops_no_connection(pki: Pki, name: str | None) -> None:
    with listening(Running(), pki.files) as server, httpx.Client(verify=pki.trust()) as client:
        assert client.post(f"{server.address}/validate", json=review_of()).status_code == 200
        assert server.certificates is not None
        assert not server.certificates.poll()
        before = shown(server, name)
        pki.renew()
        assert shown(server, name) == before
        assert reloaded(server)
        assert (
            shown(server, name) == (pki.folder / "tls.crt").read_bytes() == server.certificates.current.shown != before
        )
        assert client.post(f"{server.address}/validate", json=review_of()).status_code == 200
        end = time.monotonic() + 10  # clients that only read the certificate disconnect later
        while len(server.listener.connections) > 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(server.listener.connections) == 1


def test_a_change_of_key_type_is_served(pki: Pki) -> None:
    with listening(Running(), pki.files) as server:
        assert server.certificates is not None
        shown(server)
        _rsa_pair(pki.folder)
        assert reloaded(server)
        assert shown(server) == (pki.folder / "tls.crt").read_bytes()


def test_a_mismatched_pair_keeps_the_last_valid_pair(pki: Pki) -> None:
    with listening(Running(), pki.files) as server:
        assert server.certificates is not None
        before = shown(server)
        (pki.folder / "tls.key").write_bytes((pki.folder / "ca.key").read_bytes())
        assert reloaded(server)
        assert "does not belong to the certificate" in server.certificates.error
        assert shown(server) == before
        (pki.folder / "tls.key").unlink()
        assert reloaded(server)
        assert "no such file" in server.certificates.error
        assert shown(server) == before
        pki.renew()
        assert reloaded(server)
        assert shown(server) != before


def test_client_certificates_are_required_if_the_operator_sets_the_option(pki: Pki) -> None:
    now = datetime.now(UTC)
    clients = authority("clients", now=now)
    folder = pki.folder
    (folder / "clients.crt").write_bytes(clients.certificate)
    (folder / "clients.key").write_bytes(clients.key)
    files = TlsFiles(certificate=folder / "tls.crt", key=folder / "tls.key", client_ca=folder / "clients.crt")
    known = pki.trust()
    known.load_cert_chain(folder / "clients.crt", folder / "clients.key")
    with listening(Running(), files) as server:
        assert httpx.get(f"{server.address}/healthz", verify=known).status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.address}/healthz", verify=pki.trust())


REFUSED = {
    "no certificate": ("tls.crt", None, r"tls\.crt`: no such file; issue a pair with `claimgate certs issue`"),
    "no key": ("tls.key", None, r"tls\.key`: no such file"),
    "the key of another certificate": ("tls.key", "ca.key", "the key `.*` does not belong to the certificate"),
    "a text in place of a certificate": ("tls.crt", b"hello", "are not a PEM certificate and key$"),
    "a text in place of a key": ("tls.key", b"hello", "are not a PEM certificate and key"),
    "an empty certificate": ("tls.crt", b"", "are not a PEM certificate and key"),
}


@pytest.mark.parametrize(("file", "content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_certificate_without_its_key_refuses_to_start(
    pki: Pki, file: str, content: bytes | str | None, message: str
) -> None:
    if content is None:
        (pki.folder / file).unlink()
    else:
        (pki.folder / file).write_bytes(content if isinstance(content, bytes) else (pki.folder / content).read_bytes())
    with pytest.raises(ConfigurationError, match=message):
        Certificates(pki.files)


CLIENT_CA = {
    "no file": (None, r"^--client-ca: `.*/clients\.crt`: no such file$"),
    "text": (b"hello", r"^--client-ca: `.*/clients\.crt` does not contain a PEM certificate$"),
    "an empty file": (b"", r"^--client-ca: `.*/clients\.crt` does not contain a PEM certificate$"),
}


@pytest.mark.parametrize(("content", "message"), CLIENT_CA.values(), ids=CLIENT_CA.keys())
def test_a_wrong_client_authority_is_not_reported_as_a_wrong_pair(
    pki: Pki, content: bytes | None, message: str
) -> None:
    authority = pki.folder / "clients.crt"
    if content is not None:
        authority.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        Certificates(TlsFiles(certificate=pki.folder / "tls.crt", key=pki.folder / "tls.key", client_ca=authority))


def test_a_folder_for_the_authority_of_clients_is_named(pki: Pki) -> None:
    with pytest.raises(ConfigurationError, match=r"^--client-ca: `.*`: is a directory$"):
        Certificates(TlsFiles(certificate=pki.folder / "tls.crt", key=pki.folder / "tls.key", client_ca=pki.folder))


def test_an_encrypted_key_is_refused_without_a_passphrase_prompt(pki: Pki) -> None:
    key = serialization.load_pem_private_key((pki.folder / "tls.key").read_bytes(), password=None)
    form = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    (pki.folder / "tls.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    with pytest.raises(ConfigurationError, match="the private key is encrypted; store it without a passphrase"):
        Certificates(pki.files)


def test_a_folder_for_a_certificate_is_named(pki: Pki) -> None:
    with pytest.raises(ConfigurationError, match="is a directory"):
        Certificates(TlsFiles(certificate=pki.folder, key=pki.folder / "tls.key"))
