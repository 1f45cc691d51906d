"""`claimgate version`: which one this is."""

from __future__ import annotations

import sys

from webhook import __version__


def command() -> int:
    """Print the version, as `claimgate --version` does."""
    sys.stdout.write(f"claimgate {__version__}\n")
    return 0
