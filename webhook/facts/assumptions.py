"""What facts assume of the cluster where its objects do not say it: versions and names, as settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from webhook import releases
from webhook.attributes import JSON
from webhook.errors import LookupFailed
from webhook.facts.trainer.releases import DEFAULT
from webhook.releases import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a site says of its cluster.

    kubernetes: release of the API server. trainer: release of Kubeflow Trainer; its four shapes differ.
    device_claims: whether Trainer runs with its feature gate for device claims (KEP-2782).
    resources: which extended resources it has for `gpu`: `resource`, `resource.<namespace>` and `vendor.<name>`.
    """

    kubernetes: Release = releases.DEFAULT
    trainer: Release = DEFAULT
    device_claims: bool = False
    resources: tuple[tuple[str, str], ...] = ()


def assumptions(param: JSON) -> Assumptions:
    """What the param of a policy says, as `data.trainer: "2.2"` of a ConfigMap; the defaults where it is silent.

    Raises:
        LookupFailed: a text that is not a release.
    """
    data = param.get("data") if isinstance(param, dict) else None
    if not isinstance(data, dict):
        return _DEFAULTS
    resources = tuple((key, str(text)) for key, text in data.items() if _RESOURCE.match(key))
    kubernetes, trainer = (str(data.get(name) or "") for name in ("kubernetes", "trainer"))
    return _read(kubernetes, trainer, resources, data.get("dynamicResourceAllocation") == "true")


_DEFAULTS = Assumptions()
_RESOURCE = re.compile(r"resource$|resource[.]|vendor[.]")


@lru_cache(maxsize=64)
def _read(kubernetes: str, trainer: str, resources: tuple[tuple[str, str], ...], device_claims: bool) -> Assumptions:
    return Assumptions(
        kubernetes=_release("kubernetes", kubernetes, _DEFAULTS.kubernetes),
        trainer=_release("trainer", trainer, _DEFAULTS.trainer),
        device_claims=device_claims,
        resources=resources,
    )


def _release(name: str, text: str, default: Release) -> Release:
    release = releases.parsed(text.strip()) if text else default
    if release is None:
        example = releases.shown(default)
        raise LookupFailed(f"the param's data.{name} is `{text}`: write a release such as {example}")
    return release
