"""Computes the demand of each audited job in its queue, for reports that draw the queues of Kueue and Volcano."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import monotonic
from typing import Final

from webhook.admission.phases import PhasesOutcome
from webhook.apimachinery.attributes import JSON, Attributes
from webhook.apimachinery.quantity import Quantity
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, LookupFailed
from webhook.evaluation.typed_input import is_mistyped
from webhook.facts.kueue.configuration import FRAMEWORK_OF_KIND
from webhook.facts.kueue.overview import read_queue_overview
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano.gang_resources import requests_of_gang
from webhook.facts.volcano.queue_tree import read_volcano_overview
from webhook.facts.volcano.sent_job import read_job
from webhook.facts.volcano_objects.types import JOB
from webhook.policy.policy_set import PolicySet
from webhook.report.finding import subject_of_request
from webhook.report.queued_jobs import Demand, QueuedJob, QueueKey, QueueTrees

_JOB_TIMEOUT_S: Final = 10.0
"""The most seconds for the demand of one job, as for its review."""
_NOTES: Final[Mapping[str, str]] = {
    "never": "can never be admitted",
    "not-now": "cannot be admitted now",
    "unknown": "whether it can be admitted is unknown",
}


def add_demand(
    demands: dict[QueueKey, Demand],
    attributes: Attributes,
    outcome: PhasesOutcome,
    cluster: Cluster,
    policies: PolicySet,
) -> None:
    """Add the demand of an object to `demands`, if it is a job in a queue and its fields have the right types.

    The demand is computed from the object as the policies have changed it. The demand of a denied object is computed
    from the submitted object.
    """
    kind = attributes.kind.group, attributes.kind.kind
    if kind not in FRAMEWORK_OF_KIND and kind != JOB:
        return
    until = Deadline(monotonic() + _JOB_TIMEOUT_S)
    obj = outcome.patched_object if isinstance(outcome.patched_object, dict) else attributes.object
    submitted = replace(attributes, object=obj)
    if not isinstance(obj, dict) or is_mistyped(submitted, until):
        return  # a finding reports this
    view = ClusterView(cluster, attributes.namespace, until, own_namespace=policies.own_namespace)
    subject = Subject(object=obj, old_object=None, attributes=submitted, cluster=view, table=policies.table)
    denied = "" if outcome.verdict.allowed else "is denied"
    try:
        new_demands = [*_kueue_demands(subject), *_volcano_demands(subject)]
    except (EvaluationError, LookupFailed):
        return  # policies look up the same objects, and their findings give the reason
    for key, amounts, note in new_demands:
        job_notes = ", ".join(filter(None, (denied, note)))
        demands.setdefault(key, Demand()).add_job(QueuedJob(str(subject_of_request(attributes)), amounts, job_notes))


def queue_trees(cluster: Cluster, demands: Mapping[QueueKey, Demand]) -> tuple[QueueTrees, ...]:
    """Return the queues of Kueue, then of Volcano. Leave Kueue or Volcano out if no object or job names its queues."""
    kueue = QueueTrees("Kueue", read_queue_overview(ClusterView(cluster, "")), demands)
    volcano = QueueTrees("Volcano", read_volcano_overview(ClusterView(cluster, "")), demands)
    return tuple(trees for trees in (kueue, volcano) if trees.overview.rows or any(trees.find_unknown_queues()))


def _kueue_demands(subject: Subject) -> Iterator[tuple[QueueKey, Mapping[str, int], str]]:
    fact: JSON = subject.fact("kueue")
    if not fact["managed"] or not fact["queue"]:
        return
    total: Counter[str] = Counter()
    for pod_set in fact["podSets"]:
        total.update(
            {name: parse_amount_in_kueue_units(name, value) or 0 for name, value in pod_set["requests"].items()}
        )
    yield QueueKey("Kueue", subject.namespace, fact["queue"]), total, _NOTES.get(fact["verdict"], "")


def _volcano_demands(subject: Subject) -> Iterator[tuple[QueueKey, Mapping[str, int], str]]:
    """Yield what the gang of a Volcano Job needs to start."""
    if subject.group_kind != JOB:
        return
    job = subject.once(read_job)
    amounts = {
        name: parse_amount_in_kueue_units(name, str(Quantity(value, -3))) or 0
        for name, value in requests_of_gang(job).items()
    }
    yield QueueKey("Volcano", "", job.spec.queue), amounts, ""
