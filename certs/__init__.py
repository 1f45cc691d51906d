"""Issues, rotates and stores the certificates of the webhook, and tells API servers which authorities to trust.

It imports nothing from webhook/, so that it can run as a Job without policies.
"""

from __future__ import annotations


class CertificateError(Exception):
    """A certificate, key or store cannot be used; the text says what, where, and what to do, in lower case."""
