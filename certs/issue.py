"""Makes and reads certificates of authorities and servers (ECDSA P-256), without files, clusters or a clock."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs import CertificateError

CA_DAYS: Final = 3650
SERVING_DAYS: Final = 365
BACKDATED: Final = timedelta(minutes=5)
"""A certificate is already valid this long before its creation, because clocks differ."""
_COMMON_NAME_MAX: Final = 64
"""The most characters of a common name (RFC 5280)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key as PEM; more certificates may follow the first."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The contents of a certificate."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    is_authority: bool
    fingerprint: str

    @property
    def lifetime(self) -> timedelta:
        """Return the whole time of validity."""
        return self.not_after - self.not_before


def authority(name: str, *, now: datetime, days: int = CA_DAYS) -> Pair:
    """Return a new self-signed authority that may sign only serving certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    builder = _builder(subject, subject, key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def serving(ca: Pair, names: Sequence[str], *, now: datetime, days: int = SERVING_DAYS) -> Pair:
    """Return a new serving certificate for DNS names and IP addresses, signed by the authority.

    Args:
        ca: the authority; its first certificate signs.
        names: the subject alternative names, at least one.
        now: the validity begins five minutes earlier.
        days: how long the certificate is valid, at most until the authority ends.

    Raises:
        CertificateError: no names, an invalid name, or an authority that cannot sign.
    """
    if not names:
        raise CertificateError("a serving certificate needs at least one DNS name or IP address")
    signer, signer_key = _certificates(ca.certificate)[0], _key(ca.key)
    if signer.public_key() != signer_key.public_key():
        raise CertificateError("the authority's key does not belong to its certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    days = min(days, (signer.not_valid_after_utc - now).days)
    if days < 1:
        raise CertificateError("the authority expires within a day; rotate it first")
    builder = _builder(_name(names[0][:_COMMON_NAME_MAX]), signer.subject, key, now, days)
    alternatives = x509.SubjectAlternativeName([_alternative(name) for name in dict.fromkeys(names)])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key())
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = builder.add_extension(alternatives, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=False), critical=True)
    builder = builder.add_extension(usage, critical=False)
    builder = builder.add_extension(identifier, critical=False)
    return _pair(builder.sign(signer_key, hashes.SHA256()), key)


def read(certificate: bytes) -> tuple[Facts, ...]:
    """Return the contents of each certificate of a PEM text.

    Raises:
        CertificateError: the text has no certificate, or an invalid one.
    """
    return tuple(_facts(one) for one in _certificates(certificate))


def is_signed_by(certificate: bytes, ca: bytes) -> bool:
    """Return whether the first certificate of `ca` signed the first certificate of `certificate`.

    Raises:
        CertificateError: one of them is not a certificate.
    """
    signed, signer = _certificates(certificate)[0], _certificates(ca)[0]
    try:
        signed.verify_directly_issued_by(signer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def belongs(pair: Pair) -> bool:
    """Return whether the key belongs to the first certificate.

    Raises:
        CertificateError: one of them cannot be read.
    """
    return bool(_certificates(pair.certificate)[0].public_key() == _key(pair.key).public_key())


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names of a Service for an API server and Pods; clientConfig.service uses the first."""
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", f"{service}.{namespace}", service


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    labels = name.removeprefix("*.").split(".")
    if not all(label.isascii() and label.replace("-", "").isalnum() and label.strip("-") == label for label in labels):
        raise CertificateError(f"`{name}` is neither a DNS name nor an IP address")
    return x509.DNSName(name)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, *form)
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), private)


def _key(text: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError):
        raise CertificateError("the private key is not an unencrypted PEM key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the private key is not an ECDSA key; issue a new pair")
    return key


def _certificates(text: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError:
        raise CertificateError("a PEM certificate is required; expected `-----BEGIN CERTIFICATE-----`") from None


def _facts(certificate: x509.Certificate) -> Facts:
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternatives = x509.SubjectAlternativeName([])
    try:
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    names = [str(name.value) for name in alternatives if isinstance(name, x509.DNSName | x509.IPAddress)]
    return Facts(
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        names=tuple(names),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        is_authority=is_authority,
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
    )
