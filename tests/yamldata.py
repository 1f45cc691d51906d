"""YAML of the tests' data, read by libyaml: the parser in Python is ten times slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(text: str | Path) -> list[Any]:
    """Parse YAML documents. Each call parses them again, because the caller may change them."""
    written = text if isinstance(text, str) else text.read_text()
    return list(yaml.load_all(written, LOADER))


def document(text: str | Path) -> Any:
    (one,) = documents(text)
    return one
