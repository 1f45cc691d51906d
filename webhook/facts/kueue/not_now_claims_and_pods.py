"""Device claims and groups of Pods for which a Workload waits.

Kueue reports a claim that it cannot count only in a condition of the Workload, with the reason Misconfigured or
Inadmissible. Kueue waits for all Pods of a group. The Pods are counted here if the view has all Pods.

Source: kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go and pkg/controller/jobs/pod/pod_controller.go
validatePodGroupMetadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.quantity import read_count
from webhook.facts.dra.pod_claims import TEMPLATE, is_promised_by_compute_domain
from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.managed import KueueManagement, QueuePlace
from webhook.facts.kueue.never_pod_groups import GROUP_COUNT, pod_group_of
from webhook.facts.kueue.objects import POD_GROUP, POD_GROUP_COUNT, POD_GROUP_FAST
from webhook.facts.kueue.workload import PodSetRequests, build_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.kueue import PodWithStatus
from webhook.typed.objects import Object

CLAIM_TEMPLATE_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/claim-template-missing",
    title="The ResourceClaimTemplate of the job does not exist",
    why="Kueue cannot count the devices of a missing template. Kueue tries again until the template exists.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go",
    issues=("https://github.com/opendatahub-io/architecture-decision-records/pull/158",),
)
POD_GROUP_INCOMPLETE: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/pod-group-incomplete",
    title="Some pods of the group do not exist yet",
    why=(
        "Kueue creates the Workload when all pods of the group exist. Until then the existing pods wait, unless the "
        "group has fast admission."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_controller.go",
    function="validatePodGroupMetadata",
)


def validate_claims(subject: Subject, management: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield claims that Kueue cannot count, and templates that neither exist nor will be created."""
    pod_sets = subject.once(build_workload).pod_sets
    for pod_set in pod_sets:
        yield from pod_set.devices.refused
    for pod_set in pod_sets:
        yield from pod_set.devices.waiting
        yield from _check_missing_templates(pod_set, subject, place)


def _check_missing_templates(pod_set: PodSetRequests, subject: Subject, place: QueuePlace) -> Iterator[Problem]:
    for path, missing in pod_set.devices.missing:
        if is_promised_by_compute_domain(subject.cluster_view(), missing.name):
            continue  # a ComputeDomain will create the template, and Kueue tries again
        if subject.cluster_view().is_whole(TEMPLATE):
            yield _claim_template_missing_problem(path, missing.name)
        else:
            place.view.note_missing(missing)


def _claim_template_missing_problem(path: FieldPath, name: str) -> Problem:
    message = f"uses ResourceClaimTemplate `{name}`, which does not exist, so Kueue cannot count its devices"
    fix = "create the template in this namespace, or correct the name"
    return CLAIM_TEMPLATE_MISSING.problem(path, message, fix)


def validate_pod_group_is_complete(
    subject: Subject,
    management: KueueManagement,
    place: QueuePlace,  # noqa: ARG001
) -> Iterator[Problem]:
    """Report a Pod of a group with fewer Pods than the annotation says, if the view has all Pods."""
    group, pod, view = pod_group_of(subject, management), subject.typed(Object), subject.cluster_view()
    written, fast = pod.annotations.get(POD_GROUP_COUNT, ""), pod.annotations.get(POD_GROUP_FAST)
    count = read_count(written)
    if not group or count is None or fast == "true" or not view.is_whole(PodWithStatus.gvk):
        return
    members = [other for other in view.list_typed(PodWithStatus, subject.namespace) if _is_live_member(other, group)]
    existing = len({pod.name, *(member.name for member in members)})
    if existing < count and not view.missing_objects_by_field():
        message = f"is more than the {counted(existing, 'pod')} of group `{group}` in this namespace"
        message = f"{message}, so Kueue waits for the other pods"
        yield POD_GROUP_INCOMPLETE.problem(GROUP_COUNT, message, "create the other pods of the group", written)


def _is_live_member(pod: PodWithStatus, group: str) -> bool:
    return pod.labels.get(POD_GROUP) == group and not pod.is_failed_or_terminating
