"""The samples that the page offers: questions in the files that it also opens and saves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from webhook.yamltext import yamlfile

FOLDER: Final = Path(__file__).with_name("samples")


def read_samples() -> Mapping[str, Mapping[str, Any]]:
    """Return every sample by its name, in the order of the files: `title`, `object`, `cluster`, `phase`, `isWhole`."""
    return {path.stem: yamlfile.read(path)[0].value for path in sorted(FOLDER.glob("*.yaml"))}
