"""The fact `kueue`: the queue of a job, the quota that the job needs, and whether Kueue can ever admit the job.

The steps of `_STEPS` run in their order, and the first step with problems gives the answer. The problems quote the text
that Kueue writes into the Workload, if Kueue writes a text. The answer is about the present configuration, and is
unknown if an object cannot be looked up. A job can never be admitted if the job needs more quota than its queue could
ever give. The queue could give its own quota and all quota that the cohort lends, if no other job used quota.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler, pkg/cache/scheduler/clusterqueue.go and pkg/workload; observed
with the same commit against kube-apiserver v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.cel.types import BOOL, DYN, INT, STRING, list_of, map_of
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.kueue import never, never_pod_groups, not_now
from webhook.facts.kueue.assignment import Capacity, PodSetQuotaRequest, fit_capacity, pod_sets_not_fitting_together
from webhook.facts.kueue.managed import KueueManagement, QueuePlace, how_kueue_manages, queue_place_of_job
from webhook.facts.kueue.never import JobInClusterQueue, exceeds_max_quota_problem, no_matching_flavor_problem
from webhook.facts.kueue.never_topology_placement import advise_unplaceable_pods, check_placement_together
from webhook.facts.kueue.not_now import advise_waiting_for_quota
from webhook.facts.kueue.objects import LOOKUPS
from webhook.facts.kueue.quota import is_admitted
from webhook.facts.kueue.workload import PodSetRequests, Workload, build_workload
from webhook.facts.resource_units import format_amount_in_kueue_units
from webhook.facts.subject import Fact, Subject
from webhook.rules.problem import MissingObject, Problem


def validate_flavors_and_quota(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problems of pod sets for which no flavor can ever have enough quota. If there are no such pod sets,
    yield the problems of pod sets for which no flavor has enough quota now.
    """
    if place.queue is None or place.tree is None or place.node is None or subject.once(build_workload).missing:
        return
    yield from _first_kind_of_problems(JobInClusterQueue(subject, place, place.queue, place.tree, place.node))


def _first_kind_of_problems(fitting: JobInClusterQueue) -> Iterator[Problem]:
    """Yield the problems of the first kind that occurs: no flavors, a resource without quota, too little quota."""
    pod_sets = [pod_set for pod_set in fitting.subject.once(build_workload).pod_sets if pod_set.least > 0]
    if not fitting.queue.groups and pod_sets:
        yield no_matching_flavor_problem(fitting.place.at, fitting.queue_as_text())
        return
    wanted: list[PodSetQuotaRequest] = []
    for pod_set in pod_sets:
        uncovered = fitting.uncovered_resource_problem(pod_set)
        if uncovered is not None:
            yield uncovered
            return
        wanted.extend(fitting.quota_requests_of_groups(pod_set))
    if not fitting.place.view.missing_objects_by_field():
        yield from _problems_of_wanted_quota(fitting, wanted)


def _problems_independent_of_lending(
    fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest], potential: Capacity
) -> Iterator[Problem]:
    """Yield the problems of pod sets that no flavor fits. If there are no such pod sets, note that the other
    ClusterQueues of the cohort are missing, because they may lend quota.
    """
    hopeless = [pods for pods in wanted if not pods.flavors]
    if not hopeless:
        fitting.place.view.note_missing(
            MissingObject(kind="ClusterQueue", name=f"with another name in cohort {fitting.queue.cohort}")
        )
    yield from (fitting.no_fitting_flavor_problem(pods, potential) for pods in hopeless)


def _problems_of_wanted_quota(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> Iterator[Problem]:
    potential = partial(fitting.tree.potential_available_quota, fitting.node)
    if not fitting.are_all_lenders_known() and not fit_capacity(wanted, potential):
        yield from _problems_independent_of_lending(fitting, wanted, potential)
        return
    hopeless = [pods for pods in wanted if not pods.flavors_with_capacity(potential)]
    if hopeless:
        yield from (fitting.no_fitting_flavor_problem(pods, potential) for pods in hopeless)
        return
    short = pod_sets_not_fitting_together(wanted, potential)
    if short:
        yield fitting.not_fitting_together_problem(short, potential)
        return
    lacking = [lack for pods in wanted if (lack := advise_unplaceable_pods(fitting, pods, potential))]
    if not lacking:
        lacking = [*check_placement_together(fitting, wanted, potential)]
    if lacking or fitting.place.view.missing_objects_by_field():
        yield from lacking
        return
    yield from advise_waiting_for_quota(fitting, wanted)


Verdict: TypeAlias = Literal["", "possible", "never", "not-now", "unmanaged", "unknown"]
"""The prediction for a job; "" for an object that Kueue does not manage."""
QUEUED_PODS: Final = declare_structure(
    "QueuedPodSet",
    name=(STRING, "name of the pod set"),
    count=(DYN, "number of pods; null if not known"),
    least=(INT, "the fewest pods that the pod set may start with"),
    requests=(map_of(STRING, STRING), "the quota that `least` pods need together, as quantities by resource"),
)
KUEUE: Final = declare_structure(
    "Kueue",
    managed=(BOOL, "whether Kueue manages the object"),
    queue=(STRING, 'the LocalQueue of the object; `""` without a queue'),
    clusterQueue=(STRING, 'the ClusterQueue of the LocalQueue; `""` if not known'),
    cohort=(STRING, 'the cohort of the ClusterQueue; `""` without a cohort'),
    verdict=(
        STRING,
        (
            "`possible`, `never` (only a change of the job or the queue helps), `not-now` (the job waits until another "
            'object changes), `unknown` (an object could not be looked up), or `""` for an object that Kueue does not '
            "manage"
        ),
    ),
    podSets=(list_of(QUEUED_PODS.type), "the pod sets of the object's Workload"),
)
_STEPS = (
    not_now.validate_priority_classes,
    not_now.validate_local_queue,
    not_now.validate_cluster_queue,
    never_pod_groups.validate_pod_matches_group,
    not_now.validate_claims,
    never_pod_groups.validate_pod_set_count,
    never.validate_namespace_is_selected,
    never.validate_limit_ranges,
    validate_flavors_and_quota,
    not_now.validate_pod_group_is_complete,
)


class AdmissionPrediction(Struct, frozen=True, kw_only=True):
    """The prediction for a job in its queue, with the problems. `place` and `workload` are None if Kueue does not
    manage the object.

    Args:
        verdict: the prediction, as one word.
        place: what is known about the queue of the job.
        problems: the obstacles; if the obstacles are not known, problems that name the missing objects.
        workload: the Workload that Kueue creates for the job.
    """

    verdict: Verdict = ""
    place: QueuePlace | None = None
    problems: tuple[Problem, ...] = ()
    workload: Workload | None = None


def predict_admission(subject: Subject) -> AdmissionPrediction:
    """Return the prediction for an object. Call this function through `Subject.once`."""
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
    """Yield the problems of the first step that has problems.

    If no step has problems but objects are missing, yield a problem that names these objects.
    """
    for step in _STEPS:
        problems = [*step(subject, how, place)]
        if problems:
            yield from problems
            return
    noted = (*subject.once(build_workload).missing, *place.view.all_missing_objects())
    if noted:
        yield exceeds_max_quota_problem(place.at, missing=noted)


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
        about="The queue of a job in Kueue, the quota that the job needs, and whether Kueue can ever admit the job.",
        examples=('kueue.verdict != "never"', 'kueue.managed || kueue.queue == ""'),
        type=KUEUE.type,
        structures=(KUEUE, QUEUED_PODS),
        compute=_compute_kueue_fact,
        lookups=LOOKUPS,
        expanded={"": "the result for the template as a single Pod"},
    ),
)
