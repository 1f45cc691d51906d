"""Which releases of Kubernetes serve a version of resource.k8s.io.

Source: k8s.io/api v0.36.1 resource/*/zz_generated.prerelease-lifecycle.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.dra.requests import version_of
from webhook.facts.subject import Subject
from webhook.problem import Problem

_REMOVED: Final[Mapping[str, int]] = {"v1alpha1": 27, "v1alpha2": 31, "v1alpha3": 34, "v1beta1": 38, "v1beta2": 39}
_DEPRECATED: Final[Mapping[str, int]] = {"v1beta1": 35, "v1beta2": 36}
"""The minor releases of Kubernetes 1 in which a version is first so."""


def validate_api_version(subject: Subject, group: str) -> Iterator[Problem]:
    """Whether the target release serves the version of a claim, a template or a class, and a later one will."""
    version, target = version_of(subject.object), subject.assumptions.kubernetes[1]
    removed = _REMOVED.get(version)
    if removed is None:
        return
    if target >= removed:
        rule, message = (
            "served-version",
            f"has not been served since Kubernetes 1.{removed}, and the target is 1.{target}",
        )
    elif target >= _DEPRECATED.get(version, removed):
        rule, message = "deprecated-version", f"is deprecated and not served from Kubernetes 1.{removed} on"
    else:
        return
    yield Problem(
        code=f"{group}/{rule}",
        path="apiVersion",
        message=message,
        fix="write the object as resource.k8s.io/v1",
        found=f"`{subject.object['apiVersion']}`",
    )
