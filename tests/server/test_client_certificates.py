"""Which client certificates a server with --client-ca and --client-name accepts in a real TLS handshake."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.server.asgi import Running
from tests.server.serving import Pki, listening
from webhook.server.tls import TlsFiles

NOW = datetime.now(UTC)
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
NAME = "kube-apiserver"


class Issuer:
    """The certificate and key of an authority that signs other certificates."""

    def __init__(self, name: str, signed_by: Issuer | None = None, *, is_ca: bool = True) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = _signed(name, self.key, signed_by or self, is_ca=is_ca, own_name=name)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: Issuer,
    *,
    is_ca: bool = False,
    own_name: str = "",
    usage: Any = CLIENT,
    begins: timedelta = timedelta(days=-1),
    ends: timedelta = timedelta(days=1),
    alternative: str = "",
) -> x509.Certificate:
    by = _name(own_name) if is_ca and not hasattr(issuer, "certificate") else issuer.certificate.subject
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + begins)
        .not_valid_after(NOW + ends)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if not is_ca:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if alternative:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(alternative)]), critical=False)
    return builder.sign(issuer.key, hashes.SHA256())


OURS, TWIN = Issuer("clients"), Issuer("clients")
"""Two authorities of one name. The server trusts the first."""


def _client(folder: Path, name: str = NAME, issuer: Issuer = OURS, **more: Any) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    made = _signed(name, key, issuer, **more).public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "client.crt").write_bytes(made + issuer.pem)
    (folder / "client.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return str(folder / "client.crt"), str(folder / "client.key")


def _of_a_leaf(folder: Path) -> tuple[str, str]:
    """Write a certificate with an issuer that has no right to sign, and its key."""
    leaf = Issuer.__new__(Issuer)
    leaf.key = ec.generate_private_key(ec.SECP256R1())
    leaf.certificate = _signed("leaf", leaf.key, OURS)
    return _client(folder, issuer=leaf)


CLIENTS: dict[str, tuple[Callable[[Path], tuple[str, str]] | None, bool]] = {
    "the API server": (_client, True),
    "the name of the API server among others": (lambda folder: _client(folder, "other", alternative=NAME), True),
    "none": (None, False),
    "another authority of the same name": (lambda folder: _client(folder, issuer=TWIN), False),
    "expired": (lambda folder: _client(folder, begins=timedelta(days=-9), ends=timedelta(days=-1)), False),
    "not valid yet": (lambda folder: _client(folder, begins=timedelta(days=1), ends=timedelta(days=9)), False),
    "a certificate for servers": (lambda folder: _client(folder, usage=SERVER), False),
    "another name": (lambda folder: _client(folder, "kubelet"), False),
    "a longer name that begins with the name": (lambda folder: _client(folder, f"{NAME}-2"), False),
    "a pattern for any name": (lambda folder: _client(folder, "*", alternative="*"), False),
    "no name": (lambda folder: _client(folder, " "), False),
    "the name in another case": (lambda folder: _client(folder, NAME.upper()), False),
    "signed by a client": (_of_a_leaf, False),
}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS 1.2", "TLS 1.3"])
def test_only_a_valid_certificate_of_the_authority_with_the_name_is_accepted(
    version: ssl.TLSVersion, tmp_path: Path
) -> None:
    pki = Pki(tmp_path)
    (tmp_path / "clients.crt").write_bytes(OURS.pem)
    files = TlsFiles(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key", client_ca=tmp_path / "clients.crt")
    answers = {}
    with listening(Running(), files, client_name=(NAME,)) as server:
        for case, (issue, _) in CLIENTS.items():
            trust = pki.trust()
            trust.maximum_version = version
            if issue is not None:
                trust.load_cert_chain(*issue(tmp_path))
            try:
                answers[case] = httpx.get(f"{server.address}/healthz", verify=trust, timeout=10).is_success
            except httpx.TransportError:
                answers[case] = False
    assert answers == {case: is_accepted for case, (_, is_accepted) in CLIENTS.items()}
