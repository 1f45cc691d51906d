"""`claimgate version`: the version of claimgate, and of what it uses."""

from __future__ import annotations

import sys

from webhook import __version__
from webhook.apimachinery.releases import DEFAULT, release_as_text


def command() -> int:
    """Print the version, the default Kubernetes release for CEL, and the version of Python."""
    sys.stdout.write(version_text())
    return 0


def version_text() -> str:
    """Return the text that the verb prints."""
    python = sys.version.split()[0]  # importing the module platform would take longer than the rest
    return f"claimgate {__version__}\nKubernetes {release_as_text(DEFAULT)}\nPython {python}\n"
