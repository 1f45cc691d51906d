"""Settings that several commands share: read once, frozen, passed by argument.

Flags win over `WEBHOOK_*` of the environment, which win over the defaults. Knows neither Typer nor the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from webhook.errors import ConfigurationError
from webhook.logs import LEVELS, Level

EngineName: TypeAlias = Literal["compiled", "celpy"]
ENGINES: Final[tuple[EngineName, ...]] = ("compiled", "celpy")
PREFIX: Final = "WEBHOOK_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What several commands share.

    policies: folders and files; empty means the shipped ones. workloads: further rows of the workload table. context:
    folders of objects that the cluster holds. max_body_bytes: 20 MiB, since an UPDATE of a 2.9 MB object was seen at
    17.4 MB, HTML-escaped twice. max_inflight_body_bytes: 40 MiB, two of those.
    api_server_text: denials in the API server's words instead of ours.
    """

    policies: tuple[Path, ...] = ()
    kubernetes_version: tuple[int, int] = (1, 36)
    cel_engine: EngineName = "compiled"
    workloads: tuple[Path, ...] = ()
    context: tuple[Path, ...] = ()
    max_body_bytes: int = 20 * 1024 * 1024
    max_inflight_body_bytes: int = 40 * 1024 * 1024
    log_level: Level = "info"
    api_server_text: bool = False


def settings(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Settings from flags, then the environment, then defaults.

    Args:
        flags: by field name; None and an empty list are flags that were not given. Text is read as the environment's.
        environment: `WEBHOOK_POLICIES` and so on; an empty value counts as not set, lists are separated as in PATH.

    Raises:
        ConfigurationError: a value that cannot be used, naming the flag or variable.
    """
    chosen: dict[str, Any] = {}
    for field in fields(Settings):
        flag = flags.get(field.name)
        if flag is not None and flag != []:
            chosen[field.name] = _read(field.name, flag, f"--{field.name.replace('_', '-')}")
        elif text := environment.get(variable(field.name)):
            chosen[field.name] = _read(field.name, text, variable(field.name))
    return Settings(**chosen)


def variable(field: str) -> str:
    """The environment variable of a setting: `WEBHOOK_LOG_LEVEL`."""
    return PREFIX + field.upper()


def _read(field: str, value: Any, origin: str) -> Any:
    if not isinstance(value, str):
        return tuple(value) if isinstance(value, list) else value
    try:
        return _READERS[field](value.strip())
    except ValueError as error:
        raise ConfigurationError(f"{origin}: `{value}` {error}") from None


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(Path(part) for part in text.split(os.pathsep) if part)


def version(text: str) -> tuple[int, int]:
    """Read a Kubernetes version: `1.36`, with or without a leading v and a patch number.

    Raises:
        ValueError: it is no version.
    """
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.\d+)?", text)
    if match is None:
        raise ValueError("is not a version; write one such as `1.36`")
    return int(match[1]), int(match[2])


def size(flag: str, text: str) -> int:
    """Bytes of a flag such as `96Mi` that belongs to one command alone.

    Raises:
        ConfigurationError: it is no size, naming the flag.
    """
    try:
        return _bytes(text.strip())
    except ValueError as error:
        raise ConfigurationError(f"{flag}: `{text}` {error}") from None


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d*)(Ki|Mi|Gi)?", text)
    if match is None:
        raise ValueError("is not a size; write bytes, or a number with Ki, Mi or Gi")
    return int(match[1]) << {None: 0, "Ki": 10, "Mi": 20, "Gi": 30}[match[2]]


def _flag(text: str) -> bool:
    return _one_of("true", "false", "1", "0")(text.lower()) in {"true", "1"}


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"is none of {', '.join(allowed)}")
        return text

    return read


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "policies": _paths,
    "kubernetes_version": version,
    "cel_engine": _one_of(*ENGINES),
    "workloads": _paths,
    "context": _paths,
    "max_body_bytes": _bytes,
    "max_inflight_body_bytes": _bytes,
    "log_level": _one_of(*LEVELS),
    "api_server_text": _flag,
}
