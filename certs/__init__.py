"""Issues, rotates and stores the certificates of the webhook, and tells API servers which authorities to trust.

It imports nothing from webhook/, so that it can run as a Job without policies.
"""

from __future__ import annotations


class CertificateError(Exception):
    """The error for a certificate, key or store that cannot be used: what, where, and what to do, in lower case."""
