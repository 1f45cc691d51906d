"""Certificates of the webhook: issuing, planning their rotation, keeping them, telling the API server whom to trust.

Imports nothing of the webhook, so that it can run as a Job without policies.
"""

from __future__ import annotations


class CertificateError(Exception):
    """A certificate, key or store that cannot be used: what, where, and what to do. Lower case."""
