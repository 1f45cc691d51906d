"""Where the shipped policies are: inside the installed package, or beside it in a checkout. Reads none of them."""

from __future__ import annotations

from pathlib import Path

from webhook.errors import ConfigurationError

_PACKAGE = Path(__file__).parent


def policies(package: Path = _PACKAGE) -> Path:
    """The folder of shipped policies: `_policies` of the wheel, else `policies` of the checkout.

    Raises:
        ConfigurationError: neither is there.
    """
    for folder in (package / "_policies", package.parent / "policies"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(
        f"no shipped policies in {package / '_policies'}; install again or name a folder with --policies"
    )
