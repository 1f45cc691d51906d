"""The Kubernetes releases whose CEL is known: those that functions of the library say a `since` of."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Release: TypeAlias = tuple[int, int]

OLDEST: Final[Release] = (1, 30)
NEWEST: Final[Release] = (1, 37)
DEFAULT: Final[Release] = (1, 36)
"""The one that everything is compared with: cases of the tests were recorded by its kube-apiserver."""


def shown(release: Release) -> str:
    """`1.36`."""
    return ".".join(map(str, release))


def read(text: str) -> Release:
    """Read a release: `1.36`, with or without a leading v and a patch number.

    Raises:
        ValueError: it is not one, or not a known one; the text goes on after the value.
    """
    match = re.fullmatch(r"v?(\d{1,9})\.(\d{1,9})(?:\.\d+)?", text)
    if match is None:
        raise ValueError(f"is not a version; write one such as `{shown(DEFAULT)}`")
    release = int(match[1]), int(match[2])
    if not OLDEST <= release <= NEWEST:
        raise ValueError(f"is a release whose CEL is not known; write one from {shown(OLDEST)} to {shown(NEWEST)}")
    return release
