"""Certificates of the webhook: issues them, plans their rotation, stores them, and tells API servers whom to trust.

Imports nothing of the webhook, so that it can run as a Job without policies.
"""

from __future__ import annotations


class CertificateError(Exception):
    """The error for a certificate, key or store that cannot be used: what, where, and what to do, in lower case."""
