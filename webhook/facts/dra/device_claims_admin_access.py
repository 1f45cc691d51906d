"""Checks the admin access that claims of a pod ask for in their templates.

Source: k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go AuthorizedForAdmin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.dra.groups import DEVICE_CLAIMS_ADVICE
from webhook.facts.dra.pod_claims import TEMPLATE, PodClaim, allows_admin_access
from webhook.facts.subject import Subject
from webhook.problem import Problem

ADMIN_ACCESS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/admin-access",
    title="Admin access is asked for in namespaces that allow it.",
    why="The namespace is asked again for each claim that is made from a template, and the pods stay Pending.",
    refused_by="the API server, when a claim is made from the template",
    source="k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go",
    function="AuthorizedForAdmin",
    fails="controller",
)


def validate_admin_access(claim: PodClaim, subject: Subject) -> Iterator[Problem]:
    """Yield the problem of AuthorizedForAdmin, which the API server checks for every claim created from a template."""
    if not claim.contents.has_admin_access or claim.source != "template":
        return
    view = subject.cluster_view()
    allowed = allows_admin_access(view)
    if allowed is None:
        yield ADMIN_ACCESS.problem(claim.at, missing=view.missing_objects_by_field()[""])
    elif not allowed:
        label = 'the label resource.kubernetes.io/admin-access: "true"'
        asks = f"{view.name_with_file(TEMPLATE, claim.reference, view.namespace)} asks for admin access"
        message = f"{asks}, but this namespace lacks {label}, so no claim is created, and the pods stay Pending"
        yield ADMIN_ACCESS.problem(claim.at, message, "use a namespace with that label")
