"""What facts assume of the cluster where its objects do not say it: versions and names, as settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook import releases
from webhook.attributes import JSON
from webhook.errors import LookupFailed
from webhook.facts.kueue import releases as kueue
from webhook.facts.trainer.releases import DEFAULT
from webhook.releases import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a site says of its cluster.

    kubernetes: release of the API server. trainer: release of Kubeflow Trainer; its four shapes differ.
    device_claims: whether Trainer runs with its feature gate for device claims (KEP-2782).
    feature_gates: those of a device driver that are on, and off by default.
    resources: which extended resources it has for `gpu`: `resource`, `resource.<namespace>` and `vendor.<name>`.
    kueue: release of Kueue. kueue_configuration: the text of its Configuration, "" for that in the cluster.
    """

    kubernetes: Release = releases.DEFAULT
    trainer: Release = DEFAULT
    device_claims: bool = False
    resources: tuple[tuple[str, str], ...] = ()
    feature_gates: frozenset[str] = frozenset()
    kueue: Release = kueue.DEFAULT
    kueue_configuration: str = ""


def assumptions(param: JSON) -> Assumptions:
    """What the param of a policy says, as `data.trainer: "2.2"` of a ConfigMap; the defaults where it is silent.

    Raises:
        LookupFailed: a text that is not a release.
    """
    data = param.get("data") if isinstance(param, dict) else None
    if not isinstance(data, dict) or (_WORDS.isdisjoint(data) and "." not in "".join(data)):
        return _DEFAULTS
    told = [
        (key, str(text or ""))
        for key, text in data.items()
        if key in _WORDS or ("." in key and key.startswith(_RESOURCES))
    ]
    return _read(tuple(told)) if told else _DEFAULTS


_RESOURCES: Final = ("resource.", "vendor.")
_CONFIGURATION: Final = "controller_manager_config.yaml"
_WORDS: Final = frozenset(
    ("kubernetes", "trainer", "kueue", _CONFIGURATION, "dynamicResourceAllocation", "featureGates", "resource")
)


@lru_cache(maxsize=64)
def _one(assumed: Assumptions) -> Assumptions:
    """The same value for equal ones, so that it is told by its identity."""
    return assumed


_DEFAULTS: Final = _one(Assumptions())


@lru_cache(maxsize=64)
def _read(told: tuple[tuple[str, str], ...]) -> Assumptions:
    texts = dict(told)
    assumed = Assumptions(
        kubernetes=_release("kubernetes", texts.get("kubernetes", ""), _DEFAULTS.kubernetes),
        trainer=_release("trainer", texts.get("trainer", ""), _DEFAULTS.trainer),
        device_claims=texts.get("dynamicResourceAllocation") == "true",
        resources=tuple((key, text) for key, text in told if key == "resource" or key.startswith(_RESOURCES)),
        feature_gates=frozenset(_switched_on(texts.get("featureGates", ""))),
        kueue=_release("kueue", texts.get("kueue", ""), _DEFAULTS.kueue),
        kueue_configuration=texts.get(_CONFIGURATION, ""),
    )
    return _one(assumed)


def _switched_on(gates: str) -> Iterator[str]:
    """Names of a list such as `A=true, B, C=false`."""
    for each in gates.split(","):
        name, _, value = each.strip().partition("=")
        if name and value in ("", "true"):
            yield name


def _release(name: str, text: str, default: Release) -> Release:
    release = releases.parsed(text.strip()) if text else default
    if release is None:
        example = releases.shown(default)
        told = f"the policy cannot be asked: data.{name} of its parameter is `{text}`"
        raise LookupFailed(f"{told}: write a release such as {example} there")
    return release
