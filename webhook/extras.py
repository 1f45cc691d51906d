"""Which extra of the distribution brings a package, for the message where one is missing.

`pip install claimgate` has what reads files: replay, audit, test and the like. pyproject.toml says what the extras add.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

EXTRAS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "serve": frozenset(
            {"fastapi", "starlette", "uvicorn", "uvloop", "httptools", "prometheus_client", "cryptography", "httpx"}
        ),
        "live": frozenset({"kubernetes", "urllib3"}),
        "celpy": frozenset({"celpy"}),
        "otel": frozenset({"opentelemetry"}),
        "ray": frozenset({"ray", "fsspec"}),
    }
)
"""The packages of each extra, by the name that is imported."""


def install_hint_for_module(module: str | None) -> str:
    """Say which extra to install for a module that cannot be found; "" where no extra brings it.

    Args:
        module: its name as ModuleNotFoundError has it, such as `fastapi.responses`.
    """
    package = (module or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            return f"this needs the package {package}, which is not installed: pip install 'claimgate[{extra}]'"
    return ""
