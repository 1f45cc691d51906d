"""Predicts whether Kueue can ever admit a job: checks LocalQueue, ClusterQueue, flavors and quota in this order.

What a job is told is the first thing that stands in its way, with what Kueue will write into its Workload, if it writes
anything. Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler, pkg/cache/scheduler/clusterqueue.go and
pkg/workload; observed with the same commit against kube-apiserver v1.36.2. Every answer is about the present
configuration; what cannot be looked up leaves the question open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from webhook.facts.kueue import (
    never,
    never_pod_group,
    never_pod_sets,
    not_now,
    not_now_claim_templates,
    not_now_pod_group,
    not_now_priority_class,
    placement,
)
from webhook.facts.kueue.managed import KueueManagement, how_kueue_manages
from webhook.facts.kueue.never import exceeds_max_quota_problem
from webhook.facts.kueue.place import QueuePlace, queue_place_of_job
from webhook.facts.kueue.reservations import is_admitted
from webhook.facts.kueue.workload import Workload, build_workload
from webhook.facts.subject import Subject
from webhook.problem import Problem

Verdict: TypeAlias = Literal["", "possible", "never", "not-now", "unmanaged", "unknown"]
"""The prediction for a job; "" for an object that Kueue does not manage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPrediction:
    """The prediction for a job in its queue, with its problems.

    Args:
        verdict: in a word.
        place: its queue, as far as it is known.
        problems: what stands in its way; with missing objects, what could not be found out.
        workload: its pod sets; None where nobody asked for them.
    """

    verdict: Verdict = ""
    place: QueuePlace | None = None
    problems: tuple[Problem, ...] = ()
    workload: Workload | None = None


def predict_admission(subject: Subject) -> AdmissionPrediction:
    """Return the prediction for an object; call it through `Subject.once`."""
    how = subject.once(how_kueue_manages)
    if how.why_not:
        return AdmissionPrediction()
    place = queue_place_of_job(subject, how)
    if is_admitted(subject, place.view):
        return AdmissionPrediction(verdict="possible", place=place, workload=subject.once(build_workload))
    problems = tuple(_problems_of_first_step(subject, how, place))
    verdict: Verdict = "possible"
    if problems:
        verdict = "unknown" if problems[0].missing else _verdict_of_problem(problems[0])
    return AdmissionPrediction(verdict=verdict, place=place, problems=problems, workload=subject.once(build_workload))


def _verdict_of_problem(problem: Problem) -> Verdict:
    return "never" if problem.code.startswith("kueue-never/") else "not-now"


def _problems_of_first_step(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:
    """Yield the problems of the first step that has any."""
    for step in _STEPS:
        problems = [*step(subject, how, place)]
        if problems:
            yield from problems
            return
    noted = (*subject.once(build_workload).missing, *place.view.all_missing_objects())
    if noted:
        yield exceeds_max_quota_problem(place.at, missing=noted)


_STEPS = (
    not_now_priority_class.validate_priority_classes,
    not_now.validate_local_queue,
    not_now.validate_cluster_queue,
    never_pod_group.validate_pod_matches_group,
    not_now_claim_templates.validate_claims,
    never_pod_sets.validate_pod_set_count,
    never.validate_namespace_is_selected,
    never.validate_limit_ranges,
    placement.validate_flavors_and_quota,
    not_now_pod_group.validate_pod_group_is_complete,
)
