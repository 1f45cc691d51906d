"""The releases of Kubernetes that serve each version of resource.k8s.io.

Source: k8s.io/api v0.36.1 resource/*/zz_generated.prerelease-lifecycle.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_SERVED: Final[Mapping[str, tuple[int, int]]] = {
    "v1": (34, 99),
    "v1beta2": (33, 39),
    "v1beta1": (32, 38),
    "v1alpha3": (31, 34),
    "v1alpha2": (27, 31),
    "v1alpha1": (26, 27),
}
"""The first minor release of Kubernetes 1 that serves a version, and the first one that does not serve it any more."""
_DEPRECATED: Final[Mapping[str, int]] = {"v1beta1": 35, "v1beta2": 36}
"""The first minor release in which a version is deprecated."""


@dataclass(frozen=True, slots=True)
class VersionFault:
    """The fault of an API version: whether it is only deprecated, a message, and the version to write instead."""

    is_deprecated: bool
    message: str
    fix: str


def version_fault(version: str, target: int) -> VersionFault | None:
    """Return the fault of a version in a minor release of Kubernetes 1; None if it has none or is unknown."""
    if version not in _SERVED:
        return None
    first, end = _SERVED[version]
    is_deprecated = first <= target < end
    if target < first:
        message = f"is served from Kubernetes 1.{first} on, but Kubernetes 1.{target} is assumed here"
    elif target >= end:
        message = f"is not served since Kubernetes 1.{end}, and Kubernetes 1.{target} is assumed here"
    elif target >= _DEPRECATED.get(version, end):
        message = f"is deprecated, and Kubernetes 1.{end} and later do not serve it"
    else:
        return None
    newest = next((name for name, (since, until) in _SERVED.items() if since <= target < until), "")
    return VersionFault(is_deprecated, message, f"write the object as resource.k8s.io/{newest}" if newest else "")
