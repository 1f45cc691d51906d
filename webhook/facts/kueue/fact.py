"""The fact `kueue`: the queue of a job, the quota that it needs, and whether it can ever be admitted."""

from __future__ import annotations

from typing import Final

from webhook.attributes import JSON
from webhook.cel.types import BOOL, DYN, INT, STRING, list_of, map_of
from webhook.facts.fact import Fact, FactResult, declare_structure
from webhook.facts.kueue.managed import how_kueue_manages
from webhook.facts.kueue.objects import LOOKUPS
from webhook.facts.kueue.preflight import AdmissionPrediction, predict_admission
from webhook.facts.kueue.workload import PodSetRequests
from webhook.facts.resource_units import format_amount_in_kueue_units
from webhook.facts.subject import Subject

QUEUED_PODS: Final = declare_structure(
    "QueuedPodSet",
    name=(STRING, "name of the pod set"),
    count=(DYN, "its pods; null where nobody can know"),
    least=(INT, "pods that it starts with at least, which are counted"),
    requests=(map_of(STRING, STRING), "what these count for together, as quantities by the names of quota"),
)
KUEUE: Final = declare_structure(
    "Kueue",
    managed=(BOOL, "whether Kueue manages the object"),
    queue=(STRING, 'its LocalQueue, or ""'),
    clusterQueue=(STRING, 'the ClusterQueue of that, "" where it is not known'),
    cohort=(STRING, 'the cohort of that, or ""'),
    verdict=(
        STRING,
        (
            "`possible`, `never` (only a change of the job or the queue helps), `not-now`, `unknown` (something could"
            ' not be looked up), or "" for an object that Kueue does not manage'
        ),
    ),
    podSets=(list_of(QUEUED_PODS.type), "the pod sets of its Workload"),
)


def _compute_kueue_fact(subject: Subject) -> FactResult:
    how, outcome = subject.once(how_kueue_manages), subject.once(predict_admission)
    queue = outcome.place.queue if outcome.place else None
    missing = tuple(missing for problem in outcome.problems for missing in problem.missing)
    value = {
        "managed": not how.why_not,
        "queue": how.queue,
        "clusterQueue": queue.name if queue else "",
        "cohort": queue.cohort if queue else "",
        "verdict": outcome.verdict,
        "podSets": _pod_sets_as_json(outcome),
    }
    return FactResult(value, {"verdict": missing} if missing else {})


def _pod_sets_as_json(outcome: AdmissionPrediction) -> list[JSON]:
    return [_pod_set_as_json(pod_set) for pod_set in outcome.workload.pod_sets] if outcome.workload else []


def _pod_set_as_json(pod_set: PodSetRequests) -> JSON:
    amounts = {name: format_amount_in_kueue_units(name, value) for name, value in pod_set.requests.items()}
    return {"name": pod_set.name, "count": pod_set.count, "least": pod_set.least, "requests": amounts}


FACTS: Final = (
    Fact(
        name="kueue",
        about="Where a job queues in Kueue, what it counts for there, and whether it can ever be admitted.",
        examples=('kueue.verdict != "never"', 'kueue.managed || kueue.queue == ""'),
        type=KUEUE.type,
        structures=(KUEUE, QUEUED_PODS),
        compute=_compute_kueue_fact,
        lookups=LOOKUPS,
        expanded={"": "what Kueue would do with a single Pod"},
    ),
)
