"""What facts assume of the cluster where its objects do not say it: versions, as settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from webhook import paths
from webhook.attributes import JSON
from webhook.errors import LookupFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """kubernetes: minor release of the API server. trainer: release of Kubeflow Trainer; its four shapes differ."""

    kubernetes: tuple[int, int] = (1, 36)
    trainer: tuple[int, int] = (2, 3)


def assumptions(param: JSON) -> Assumptions:
    """What the param of a policy says, as `data.trainer: "2.2"` of a ConfigMap; the defaults where it is silent.

    Raises:
        LookupFailed: a text that is no release.
    """
    data = paths.get(param, ("data",))
    if not isinstance(data, dict):
        return _read()
    return _read(**{field.name: str(data[field.name]) for field in fields(Assumptions) if data.get(field.name)})


@cache
def _read(**said: str) -> Assumptions:
    return Assumptions(**{name: _release(name, text) for name, text in said.items()})


def _release(name: str, text: str) -> tuple[int, int]:
    major, _, minor = text.strip().removeprefix("v").partition(".")
    minor = minor.partition(".")[0]
    if not (major.isdecimal() and minor.isdecimal()):
        raise LookupFailed(f"the param's data.{name} is `{text}`, expected a release such as 2.3")
    return int(major), int(minor)
