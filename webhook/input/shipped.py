"""Finds the folders of shipped policies, samples and pages of rules: in the installed package, or in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from webhook.apimachinery.releases import Release
from webhook.errors import ConfigurationError

SINCE: Final[Release] = (1, 34)
"""The first Kubernetes release with the CEL of shipped policies: `flatten`, and macros with two variables."""

_PACKAGE = Path(__file__).parents[1]


def policies_folder(package: Path = _PACKAGE) -> Path:
    """Return the folder of shipped policies: `_policies` in the wheel, otherwise `policies` in a checkout.

    Raises:
        ConfigurationError: neither exists.
    """
    folder = _first(package / "_policies", package.parent / "policies")
    if folder is None:
        raise ConfigurationError(
            f"no shipped policies in {package / '_policies'}; install again or name a folder with --only"
        )
    return folder


def samples_folder(package: Path = _PACKAGE) -> Path:
    """Return the folder of sample reviews and manifests: `_samples` in the wheel, `deploy/samples` in a checkout.

    Raises:
        ConfigurationError: neither exists.
    """
    folder = _first(package / "_samples", package.parent / "deploy" / "samples")
    if folder is None:
        raise ConfigurationError(f"no samples in {package / '_samples'}; install again")
    return folder


def rule_pages_folder(package: Path = _PACKAGE) -> Path:
    """Return the folder of pages about rules: `_rules` in the wheel, otherwise `docs/rules` in a checkout.

    Raises:
        ConfigurationError: neither exists.
    """
    folder = _first(package / "_rules", package.parent / "docs" / "rules")
    if folder is None:
        raise ConfigurationError(f"no pages of rules in {package / '_rules'}; install again")
    return folder


def _first(*folders: Path) -> Path | None:
    return next((folder for folder in folders if folder.is_dir()), None)
