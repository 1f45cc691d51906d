"""`claimgate version`: which one this is, and on what it stands."""

from __future__ import annotations

import platform
import sys

from webhook import __version__
from webhook.releases import DEFAULT, release_as_text


def command() -> int:
    """Print the version, the Kubernetes release whose CEL is the default, and the version of Python."""
    sys.stdout.write(f"claimgate {__version__}\n")
    sys.stdout.write(f"Kubernetes {release_as_text(DEFAULT)}\n")
    sys.stdout.write(f"Python {platform.python_version()}\n")
    return 0
