"""claimgate in a program of your own: load policies, review an object, and read findings as data.

Names in this package keep their meaning within a major version; everything in `webhook` may change. Nothing here reads
configuration, flags or environment variables, and nothing talks to a cluster. docs/python.md is the reference.
"""

from __future__ import annotations

from claimgate.api import Policies, ReviewResult, RuleFinding, load_policies, review
from webhook import __version__
from webhook.errors import ClaimgateError, InputError, PolicyError

__all__ = [
    "ClaimgateError",
    "InputError",
    "Policies",
    "PolicyError",
    "ReviewResult",
    "RuleFinding",
    "__version__",
    "load_policies",
    "review",
]
