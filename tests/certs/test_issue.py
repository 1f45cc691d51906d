"""Certificates: their content, that real TLS accepts them, and invalid input."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certs import CertificateError
from certs.issue import BACKDATED, Pair, authority, belongs, is_signed_by, read, service_names, serving

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = authority("test CA", now=NOW)


def test_an_authority_signs_certificates_that_cannot_sign_others() -> None:
    (facts,) = read(CA.certificate)
    assert (facts.subject, facts.issuer, facts.is_authority, facts.names) == ("CN=test CA", "CN=test CA", True, ())
    assert (facts.not_before, facts.not_after) == (NOW - BACKDATED, NOW + timedelta(days=3650))
    constraints = x509.load_pem_x509_certificate(CA.certificate).extensions.get_extension_for_class(
        x509.BasicConstraints
    )
    assert (constraints.critical, constraints.value.path_length) == (True, 0)


def test_a_serving_certificate_has_every_name_once() -> None:
    pair = serving(CA, ["a.b.svc", "127.0.0.1", "::1", "*.x", "a.b.svc"], now=NOW, days=90)
    (facts,) = read(pair.certificate)
    assert facts.names == ("a.b.svc", "127.0.0.1", "::1", "*.x")
    assert (facts.subject, facts.issuer, facts.is_authority) == ("CN=a.b.svc", "CN=test CA", False)
    assert facts.not_after == NOW + timedelta(days=90)
    assert is_signed_by(pair.certificate, CA.certificate)
    assert belongs(pair)


def test_keys_are_ecdsa_p256() -> None:
    key = serialization.load_pem_private_key(CA.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.curve.name == "secp256r1"


def test_a_serving_certificate_ends_before_its_authority() -> None:
    short = authority("short", now=NOW, days=30)
    assert (
        read(serving(short, ["a"], now=NOW, days=365).certificate)[0].not_after <= read(short.certificate)[0].not_after
    )


def test_a_long_first_name_is_cut_in_the_common_name_only() -> None:
    name = ".".join(["x" * 40] * 3)
    (facts,) = read(serving(CA, [name], now=NOW).certificate)
    assert (facts.names, len(facts.subject)) == ((name,), len("CN=") + 64)


def test_a_signature_is_checked_and_not_only_the_name_of_the_authority() -> None:
    pair = serving(CA, ["a"], now=NOW)
    assert not is_signed_by(pair.certificate, authority("test CA", now=NOW).certificate)
    assert not is_signed_by(pair.certificate, authority("other", now=NOW).certificate)


def test_service_names_start_with_the_one_api_servers_use() -> None:
    assert service_names("claimgate", "gate")[0] == "claimgate.gate.svc"


def _rsa() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *form)


OTHER = authority("other", now=NOW)
REFUSED = {
    "no names": (CA, [], "at least one DNS name"),
    "an underscore": (CA, ["a_b"], "`a_b` is neither a DNS name nor an IP address"),
    "an empty label": (CA, ["a..b"], "`a..b` is neither"),
    "an address": (CA, ["https://a"], "`https://a` is neither"),
    "the key of another certificate": (
        Pair(CA.certificate, OTHER.key),
        ["a"],
        "key does not belong to its certificate",
    ),
    "an RSA key": (Pair(CA.certificate, _rsa()), ["a"], "not an ECDSA key"),
    "no key": (Pair(CA.certificate, b"x"), ["a"], "not an unencrypted PEM key"),
    "no certificate": (Pair(b"x", CA.key), ["a"], "a PEM certificate is required"),
    "an authority that ends": (authority("e", now=NOW - timedelta(days=10), days=10), ["a"], "expires within a day"),
}


@pytest.mark.parametrize(("ca", "names", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_names_of_a_certificate_are_refused(ca: Pair, names: list[str], message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        serving(ca, names, now=NOW)


def test_openssl_builds_the_chain(tmp_path: object) -> None:
    context = ssl.create_default_context(cadata=CA.certificate.decode())
    assert [found["subject"] for found in context.get_ca_certs()] == [((("commonName", "test CA"),),)]
