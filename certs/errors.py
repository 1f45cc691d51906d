"""What can go wrong with certificates on purpose."""

from __future__ import annotations


class CertificateError(Exception):
    """A certificate, key or store that cannot be used: what, where, and what to do. Lower case."""
