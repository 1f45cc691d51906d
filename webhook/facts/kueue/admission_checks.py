"""The AdmissionChecks of a ClusterQueue: which are missing or do not go together, and which place pods later.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go updateWithAdmissionChecks and inactiveReason,
pkg/scheduler/flavorassigner/tas_flavorassigner.go podSetTopologyRequest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.facts.kueue.absence import is_absent
from webhook.facts.kueue.objects import ADMISSION_CHECK
from webhook.facts.kueue.queues import Declared
from webhook.facts.kueue.reservations import condition
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.wording import named

_MULTI_KUEUE: Final = "kueue.x-k8s.io/multikueue"
_PROVISIONING: Final = "kueue.x-k8s.io/provisioning-request"


def checks_of(spec: Mapping[str, JSON]) -> dict[str, frozenset[str]]:
    """The AdmissionChecks of a ClusterQueue, in either of its two forms, with their flavors; none means all of them."""
    listed = items(get(spec, ("admissionChecksStrategy", "admissionChecks")))
    made = {text(name): frozenset[str]() for name in items(spec.get("admissionChecks"))}
    for each in map(mapping, listed):
        made[text(each.get("name"))] = frozenset(map(text, items(each.get("onFlavors"))))
    return made


def inactive_checks(queue: Declared, view: View) -> Iterator[str]:
    """Why AdmissionChecks keep a ClusterQueue inactive."""
    remote, provisioning, per_flavor = [], [], []
    flavors = {name for group in queue.groups for name in group.flavors}
    for name, of in view.deadline.paced(checks_of(queue.spec).items()):
        check = view.get(ADMISSION_CHECK, name, namespaced=False)
        if check is None:
            if is_absent(view, ADMISSION_CHECK):
                yield f"its AdmissionCheck `{name}` does not exist (AdmissionCheckNotFound)"
            continue
        if condition(check.get("status"), "Active").get("status") == "False":
            yield f"its AdmissionCheck `{name}` is inactive (AdmissionCheckInactive)"
        controller = get(check, ("spec", "controllerName"))
        remote += [name] * (controller == _MULTI_KUEUE)
        per_flavor += [name] * (controller == _MULTI_KUEUE and bool(of) and of != flavors)
        provisioning += [name] * (controller == _PROVISIONING)
    if len(remote) > 1:
        yield "it has several AdmissionChecks of MultiKueue (MultipleMultiKueueAdmissionChecks)"
    if per_flavor:
        told = named(per_flavor, "AdmissionCheck")
        yield f"its {told} of MultiKueue must be for all of its flavors (MultiKueueAdmissionCheckAppliedPerFlavor)"
    if remote and provisioning:
        yield "it has AdmissionChecks of MultiKueue and of ProvisioningRequests (MultiKueueWithProvisioningRequest)"


def is_remote(queue: Declared, view: View) -> bool:
    """Whether other clusters run the jobs of a ClusterQueue, or nobody knows: topologies are theirs then."""
    return any(_controller(name, view) in ("", _MULTI_KUEUE) for name in checks_of(queue.spec))


def is_placed_later(queue: Declared, flavor: str, view: View) -> bool:
    """Whether pods are placed on nodes that do not have to be there yet, in this cluster or another."""
    if is_remote(queue, view):
        return True
    checks = checks_of(queue.spec).items()
    return any(_controller(name, view) == _PROVISIONING for name, of in checks if not of or flavor in of)


def _controller(name: str, view: View) -> str:
    """The controller of a check, "" where nobody knows it."""
    return text(get(view.unnoted().get(ADMISSION_CHECK, name, namespaced=False), ("spec", "controllerName")))
