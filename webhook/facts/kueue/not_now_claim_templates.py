"""Checks device claims that Kueue cannot count, which it reports only in a condition of the Workload.

Source: kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go; the reasons are Misconfigured and Inadmissible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.dra.absent_claims import is_promised_by_compute_domain
from webhook.facts.dra.pod_claims import TEMPLATE
from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.place import QueuePlace
from webhook.facts.kueue.workload import PodSetRequests, build_workload
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.problem import Problem

CLAIM_TEMPLATE_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/claim-template-missing",
    title="The ResourceClaimTemplates of a job exist.",
    why="Kueue cannot count devices of a template that it cannot read, and tries again.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go",
    issues=("https://github.com/opendatahub-io/architecture-decision-records/pull/158",),
)


def validate_claims(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield claims that Kueue cannot count, and templates that do not exist and that nobody will create."""
    pod_sets = subject.once(build_workload).pod_sets
    for pod_set in pod_sets:
        yield from pod_set.devices.refused
    for pod_set in pod_sets:
        yield from pod_set.devices.waiting
        yield from _check_missing_templates(pod_set, subject, place)


def _check_missing_templates(pod_set: PodSetRequests, subject: Subject, place: QueuePlace) -> Iterator[Problem]:
    for path, missing in pod_set.devices.missing:
        if is_promised_by_compute_domain(subject.cluster_view(), missing.name):
            continue  # the controller of its ComputeDomain makes it, and Kueue tries again
        if subject.cluster_view().is_whole(TEMPLATE):
            yield _claim_template_missing_problem(path, missing.name)
        else:
            place.view.note_missing(missing)


def _claim_template_missing_problem(path: FieldPath, name: str) -> Problem:
    message = f"uses ResourceClaimTemplate `{name}`, which does not exist, so Kueue cannot count its devices"
    fix = "create the template in this namespace, or correct the name"
    return CLAIM_TEMPLATE_MISSING.problem(path, message, fix)
