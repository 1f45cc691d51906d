"""What facts assume about a cluster: releases, feature gates and resource names, from the param of a policy.

The release of an installed controller is read from the image of its Deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from sys import getsizeof
from typing import Final

from msgspec import Struct

from webhook.apimachinery import releases
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.releases import Release
from webhook.cluster.controllers import Controller
from webhook.errors import LookupFailed
from webhook.facts.view import ClusterView
from webhook.text.caches import TwoGenerationCache
from webhook.typed.cluster_objects import Deployment

KUEUE: Final[Release] = (0, 19)
TRAINER: Final[Release] = (2, 3)
"""The releases that are assumed if the param sets no release."""
_RESOURCES: Final = ("resource.", "vendor.")
CONFIGURATION_FILE: Final = "controller_manager_config.yaml"
_WORDS: Final = frozenset(
    ("kubernetes", "trainer", "kueue", CONFIGURATION_FILE, "dynamicResourceAllocation", "featureGates", "resource")
)
_EXAMPLES: Final = {"kubernetes": releases.DEFAULT, "trainer": TRAINER, "kueue": KUEUE}


class ClusterAssumptions(Struct, frozen=True, kw_only=True):
    """What the param of a policy states about the cluster.

    Args:
        kubernetes: the release of the API server.
        trainer: the release of Kubeflow Trainer; None if the param does not state it.
        device_claims: whether Trainer's feature gate for device claims (KEP-2782) is on; None if the param does not
            state it. If this field or `trainer` is None, facts/train_job_pods/releases.py reads other sources.
        feature_gates: the feature gates of the device driver that the param switches on.
        resources: pairs of a key of the param and the extended resource that `gpu` means under this key. The keys are
            `resource`, `resource.<namespace>` and `vendor.<name>`.
        kueue: the release of Kueue.
        knows_kueue: whether the param states the release of Kueue.
        kueue_configuration: the text of Kueue's Configuration; "" to read the Configuration from the cluster.
    """

    kubernetes: Release = releases.DEFAULT
    trainer: Release | None = None
    device_claims: bool | None = None
    resources: tuple[tuple[str, str], ...] = ()
    feature_gates: frozenset[str] = frozenset()
    kueue: Release = KUEUE
    knows_kueue: bool = False
    kueue_configuration: str = ""


def is_setting(key: str) -> bool:
    """Return whether facts read this key of a param."""
    return key in _WORDS or ("." in key and key.startswith(_RESOURCES))


def read_assumptions(param: JSON, name: str = "its parameter") -> ClusterAssumptions:
    """Read the param of a policy, such as a ConfigMap with `data.trainer: "2.2"`. A missing key gets its default.

    Args:
        param: the param, any JSON value.
        name: the name of the param in errors.

    Raises:
        LookupFailed: a key for a release has a value that is not a release.
    """
    data = param.get("data") if isinstance(param, dict) else None
    if not isinstance(data, dict) or (_WORDS.isdisjoint(data) and "." not in "".join(data)):
        return _DEFAULTS
    settings = [(key, str(text or "")) for key, text in data.items() if is_setting(key)]
    if not settings:
        return _DEFAULTS
    key = tuple(settings), name
    assumed = _READ.get(key, None)
    if assumed is None:
        assumed = _assumptions_from_texts(*key)
        size = 3 * sum(getsizeof(part) for pair in settings for part in pair) + getsizeof(name)
        equal = _DEFAULTS if assumed == _DEFAULTS else _EQUAL.get(assumed, None)
        if equal is None:
            _EQUAL.put(assumed, assumed, size)
        assumed = equal or assumed
        _READ.put(key, assumed, size)
    return assumed


_READ: Final[TwoGenerationCache[tuple[tuple[tuple[str, str], ...], str], ClusterAssumptions | None]] = (
    TwoGenerationCache(1 << 20)
)


_EQUAL: Final[TwoGenerationCache[ClusterAssumptions, ClusterAssumptions | None]] = TwoGenerationCache(1 << 20)
"""Maps equal assumptions to the same object, so that policies with equal assumptions share computed facts."""


_DEFAULTS: Final = ClusterAssumptions()


def _assumptions_from_texts(settings: tuple[tuple[str, str], ...], name: str) -> ClusterAssumptions:
    texts, kueue = dict(settings), _read_release("kueue", dict(settings), name)
    return ClusterAssumptions(
        kubernetes=_read_release("kubernetes", texts, name) or _DEFAULTS.kubernetes,
        trainer=_read_release("trainer", texts, name),
        device_claims=texts["dynamicResourceAllocation"] == "true" if "dynamicResourceAllocation" in texts else None,
        resources=tuple((key, text) for key, text in settings if key == "resource" or key.startswith(_RESOURCES)),
        feature_gates=frozenset(_enabled_feature_gates(texts.get("featureGates", ""))),
        kueue=kueue or _DEFAULTS.kueue,
        knows_kueue=kueue is not None,
        kueue_configuration=texts.get(CONFIGURATION_FILE, ""),
    )


def _enabled_feature_gates(gates: str) -> Iterator[str]:
    """Yield the names that a list such as `A=true, B, C=false` switches on."""
    for each in gates.split(","):
        name, _, value = each.strip().partition("=")
        if name and value in ("", "true"):
            yield name


def _read_release(of: str, texts: Mapping[str, str], name: str) -> Release | None:
    text = texts.get(of, "")
    release = releases.parse_release(text.strip())
    if text and release is None:
        example = releases.release_as_text(_EXAMPLES[of])
        message = f"the policy cannot be evaluated: data.{of} of {name} is `{text}`"
        raise LookupFailed(f"{message}: write a release such as {example}")
    return release


def installed_release(view: ClusterView, controller: Controller) -> Release | None:
    """Return the release of a controller; None if its Deployment is missing, or if no tag of an image is a release."""
    deployment = view.get_without_noting(Deployment.gvk, controller.place.namespace, controller.place.name)
    for container in Deployment.of(deployment).spec.template.spec.containers:
        release = parse_image_name(container.image).release_of(controller.image)
        if release is not None:
            return release
    return None
