"""Which releases of Kubernetes serve a version of resource.k8s.io.

Source: k8s.io/api v0.36.1 resource/*/zz_generated.prerelease-lifecycle.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.dra.requests import version_of
from webhook.facts.subject import Subject
from webhook.problem import Problem

_SERVED: Final[Mapping[str, tuple[int, int]]] = {
    "v1": (34, 99),
    "v1beta2": (33, 39),
    "v1beta1": (32, 38),
    "v1alpha3": (31, 34),
    "v1alpha2": (27, 31),
    "v1alpha1": (26, 27),
}
"""The minor release of Kubernetes 1 that serves a version first, and the first one that does not any more."""
_DEPRECATED: Final[Mapping[str, int]] = {"v1beta1": 35, "v1beta2": 36}
"""The minor releases in which a version is first so."""


def validate_api_version(subject: Subject, group: str) -> Iterator[Problem]:
    """Whether the target release serves the version of a claim, a template or a class, and a later one will."""
    version, target = version_of(subject.object), subject.assumptions.kubernetes[1]
    served = _SERVED.get(version)
    if served is None:
        return
    first, end = served
    rule = "served-version"
    if target < first:
        message = f"is served from Kubernetes 1.{first} on, but Kubernetes 1.{target} is assumed here"
    elif target >= end:
        message = f"is not served since Kubernetes 1.{end}, and Kubernetes 1.{target} is assumed here"
    elif target >= _DEPRECATED.get(version, end):
        rule, message = "deprecated-version", f"is deprecated, and Kubernetes 1.{end} and later do not serve it"
    else:
        return
    newest = next((name for name, (since, until) in _SERVED.items() if since <= target < until), "")
    yield Problem(
        code=f"{group}/{rule}",
        path="apiVersion",
        message=message,
        fix=f"write the object as resource.k8s.io/{newest}" if newest else "",
        found=f"`{subject.object['apiVersion']}`",
    )
