"""Releases such as 1.36, and the releases of Kubernetes with a CEL that claimgate knows."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Release: TypeAlias = tuple[int, int]

OLDEST: Final[Release] = (1, 30)
NEWEST: Final[Release] = (1, 37)
DEFAULT: Final[Release] = (1, 36)
"""The release of a cluster unless the user names another. Tests take expected values from the kube-apiserver of this
release.
"""


def release_as_text(release: Release) -> str:
    """Write a release as `1.36`."""
    return ".".join(map(str, release))


def parse_release(text: str) -> Release | None:
    """Return the release of a text such as `2.3`, `v2.3` or `v2.3.1-rc.0`; None for a text of another form."""
    match = re.fullmatch(r"v?([0-9]{1,9})\.([0-9]{1,9})(?:\..*)?", text)
    return (int(match[1]), int(match[2])) if match else None


def parse_supported_release(text: str) -> Release:
    """Read a release of Kubernetes: `1.36`, with or without a leading v and a patch number.

    Raises:
        ValueError: the release is unknown, or the text is not a release. The message has no subject: "is not a
            version".
    """
    release = parse_release(text)
    if release is None:
        raise ValueError(f"is not a version; write a version such as `{release_as_text(DEFAULT)}`")
    if not OLDEST <= release <= NEWEST:
        raise ValueError(
            f"is a release with unknown CEL; write a release from {release_as_text(OLDEST)} to "
            f"{release_as_text(NEWEST)}"
        )
    return release
