"""Finds open questions about the queue of a job: whether something starts its pods, whether claimgate knows the
schedulers of the pods, and whether the gangs of the pods can start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.apimachinery.quantity import read_whole_number_or_none
from webhook.facts.dra.types import PodGroup
from webhook.facts.kueue.admission_checks import checks_of_jobs
from webhook.facts.kueue.managed import how_kueue_manages, queue_place_of_job
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.namespace_quota.limit_ranges import is_managed_by_kueue
from webhook.facts.nodes.node_offers import pods_and_nodes
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects.types import JOB, QUEUES
from webhook.simulation.asked import VOLCANO, scheduler_names
from webhook.simulation.aspects import OpenQuestion
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean, either, some_of

_KNOWN_SCHEDULERS: Final = frozenset(("default-scheduler", VOLCANO))
_OTHER_SCHEDULERS: Final = ("kai-scheduler", "yunikorn", "koord-scheduler", "hami-scheduler")
_SUSPENSIONS: Final = (("spec", "suspend"), ("spec", "runPolicy", "suspend"), ("spec", "paused"))
_COUNTS: Final = ("replicas", "parallelism", "completions")
_GATES_OF_KUEUE: Final = "kueue.x-k8s.io/"
_MOST_NAMES: Final = 5
_KOORDINATOR: Final = "gang.scheduling.koordinator.sh/"
_WORKLOAD: Final = GroupVersionKind("scheduling.k8s.io", "v1alpha1", "Workload")
_LABELS_OF_GANGS: Final[Mapping[str, GroupVersionKind]] = {
    "scheduling.x-k8s.io/pod-group": GroupVersionKind("scheduling.x-k8s.io", "v1alpha1", "PodGroup"),
    "pod-group.scheduling.sigs.k8s.io": GroupVersionKind("scheduling.sigs.k8s.io", "v1alpha1", "PodGroup"),
}
"""The labels of pods that name the PodGroup of the coscheduling plugin and of Koordinator."""


def queue_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield questions about the schedulers and the gangs of the pods, and about pods that nothing starts."""
    yield from starting_questions(subject)
    yield from _scheduler_questions(subject)
    yield from _gang_questions(subject)


def starting_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield questions about an object that is suspended, asks for no pod, or must pass AdmissionChecks of Kueue."""
    yield from _suspension_questions(subject)
    yield from _questions_of_no_pods(subject)
    yield from _questions_of_admission_checks(subject)


def _suspension_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about an object that is suspended, paused or gated, if no queue of Kueue would resume it.

    Kueue removes only its own gates from pods.
    """
    queue = subject.metadata.labels.get(QUEUE_NAME)
    path = next((each for each in _SUSPENSIONS if get(subject.object, each) is True), None)
    if path is not None and not queue:
        sentence = f"{'.'.join(path)} is true, so no pod starts before someone changes it"
        yield OpenQuestion(aspects=("queue",), what=sentence)
        return
    gates = (get(each.template, ("spec", "schedulingGates")) for each in subject.once(pod_sets).all)
    names = dict.fromkeys(_text_at(gate, "name") for listed in gates if isinstance(listed, list) for gate in listed)
    if others := [f"`{name}`" for name in names if not (queue and name.startswith(_GATES_OF_KUEUE))]:
        sentence = f"the pods stay Pending until someone removes their schedulingGates: {some_of(others, _MOST_NAMES)}"
        yield OpenQuestion(aspects=("queue",), what=sentence)


def _questions_of_no_pods(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about an object that asks for no pod, such as a Deployment of 0 replicas."""
    all_pod_sets = subject.once(pod_sets).all
    if not all_pod_sets or any(each.pods != 0 for each in all_pod_sets):
        return
    spec = subject.object.get("spec") or {}
    field = next((f"spec.{name} is 0" for name in _COUNTS if spec.get(name) == 0), "the number of pods is 0")
    yield OpenQuestion(aspects=("queue",), what=f"{field}, so no pod starts before someone changes it")


def _questions_of_admission_checks(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about each AdmissionCheck of the ClusterQueue. A check can end only for a Workload that has
    quota, so its result for a new job is never known.
    """
    if not subject.once(is_managed_by_kueue):
        return
    queue = queue_place_of_job(subject, subject.once(how_kueue_manages)).queue
    for check in checks_of_jobs(queue, subject.cluster_view()) if queue is not None else ():
        flavors = f" in flavor {either(sorted(check.flavors))}" if check.flavors else ""
        what = f"AdmissionCheck `{check.name}` of {check.controller} must let the job pass{flavors}"
        yield OpenQuestion(aspects=("queue",), what=f"{what} before its pods start", is_wait=True)


def _scheduler_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about schedulers that claimgate does not know, and about Volcano without a Queue.

    Volcano creates the Queue `default` when it starts.
    """
    given = scheduler_names(subject)
    if names := [each for each in given if each not in _KNOWN_SCHEDULERS]:
        schedulers = f"scheduler {names[0]} is" if len(names) == 1 else f"schedulers {', '.join(names)} are"
        near = "" if names[0] in _OTHER_SCHEDULERS else nearest_name(names[0], (*_KNOWN_SCHEDULERS, *_OTHER_SCHEDULERS))
        hint = f"; {did_you_mean(near, '')}" if near else ""
        yield OpenQuestion(aspects=("queue", "quota"), what=f"{schedulers} not known to claimgate{hint}")
    view = subject.cluster_view()
    if (VOLCANO in given or subject.group_kind == JOB) and not view.list_visible_json(QUEUES) and view.is_whole(QUEUES):
        sentence = "the cluster has no Queue, not even Volcano's own Queue `default`, so Volcano may not be installed"
        yield OpenQuestion(aspects=("queue",), what=sentence)


def _gang_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about each gang that the pods join by a name, if the gang may not start.

    The gang may be unknown, or belong to a scheduler that claimgate does not compare with the pods. Or the gang waits
    for more pods than the job has, or than the nodes have room for.
    """
    for gang in _gangs_of_pods(subject):
        if sentence := _question_of_gang(gang, subject):
            yield OpenQuestion(aspects=("queue",), what=sentence)


def _question_of_gang(gang: _JoinedGang, subject: Subject) -> str:
    if not gang.is_known:
        is_absent = gang.is_of_kubernetes and subject.cluster_view().cluster.is_whole()
        return f"{gang.name} {'does not exist, so the pods stay Pending' if is_absent else 'is not known'}"
    if gang.least is not None and gang.pods is not None and gang.least > gang.pods:
        return f"{gang.name} starts no pod before {gang.least} pods exist ({gang.field}), and this job has {gang.pods}"
    if not gang.is_of_kubernetes:
        return f"{gang.name} is not compared with the pods"
    for each in subject.once(pods_and_nodes) if gang.least else ():
        if each.pods.template.json is gang.template and (most_pods := each.most_pods) < (gang.least or 0):
            has = f"the nodes have room for {most_pods} of {each.pods.pod_count} pods"
            return f"{gang.name} starts no pod before {gang.least} pods fit ({gang.field}), and {has}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinedGang:
    """A gang that pods join by a name. The scheduler starts no pod of a gang before enough pods exist.

    Args:
        name: the kind and the name of the object with the gang, and the field or the label that names it.
        pods: the number of pods of the job that join the gang; None if unknown.
        least: the number of pods that must exist; None without a gang or if unknown.
        field: the field with `least`.
        is_known: whether the object with the gang was read.
        is_of_kubernetes: whether the scheduler of Kubernetes reads the gang. Other gangs need a plugin or another
            scheduler.
        template: a template of the pods, as JSON.
    """

    name: str
    pods: int | None
    least: int | None
    field: str
    is_known: bool = True
    is_of_kubernetes: bool = False
    template: JSON


def _gangs_of_pods(subject: Subject) -> tuple[_JoinedGang, ...]:
    """Return the gangs that the pods of a job join, without the gangs of Volcano, Kueue and other job controllers."""
    gangs: dict[str, _JoinedGang] = {}
    for podset in subject.once(pod_sets).all:
        for named in _gangs_of_template(podset.template, subject):
            gang = named.of_pods(podset.template, podset.pods)
            first = gangs.get(gang.name, gang)
            if first is not gang:
                is_counted = first.pods is not None and gang.pods is not None
                gang = replace(first, pods=(first.pods or 0) + (gang.pods or 0) if is_counted else None)
            gangs[gang.name] = gang
    return tuple(gangs.values())


class _NamedGang(NamedTuple):
    """A gang that a template names. `gang_object` is the object with the gang; None if it was not read. `path` is the
    path of the least number of pods in this object.
    """

    name: str
    source: str
    gang_object: JSON
    path: FieldPath

    def of_pods(self, template: JSON, pods: int | None) -> _JoinedGang:
        """Return the gang with the pods of a template."""
        min_pods = get(self.gang_object, self.path) if self.gang_object else None
        return _JoinedGang(
            name=f"{self.name} of {self.source}",
            pods=pods,
            least=min_pods if isinstance(min_pods, int) and not isinstance(min_pods, bool) else None,
            field=path_as_text(self.path),
            is_known=self.gang_object is not None,
            is_of_kubernetes=self.source.startswith("spec."),
            template=template,
        )


def _gangs_of_template(template: JSON, subject: Subject) -> Iterator[_NamedGang]:
    """Yield the gangs that a template names.

    Sources: k8s.io/api v0.35 core/v1 WorkloadReference and v0.36 PodSchedulingGroup, scheduling/v1alpha2 PodGroup;
    kubernetes-sigs/scheduler-plugins apis/scheduling/v1alpha1; koordinator.sh apis/extension.
    """
    if group := _text_at(template, "spec", "schedulingGroup", "podGroupName"):
        gang_object = _object_with_gang(PodGroup.gvk, group, subject)
        path = ("spec", "schedulingPolicy", "gang", "minCount")
        yield _NamedGang(f"PodGroup `{group}`", "spec.schedulingGroup", gang_object, path)
    if workload := _text_at(template, "spec", "workloadRef", "name"):
        pod_groups = get(_object_with_gang(_WORKLOAD, workload, subject), ("spec", "podGroups"), ())
        own = _text_at(template, "spec", "workloadRef", "podGroup")
        groups = [each for each in pod_groups if isinstance(each, dict)] if isinstance(pod_groups, list) else []
        gang_object = next((each for each in groups if each.get("name") == own), None)
        yield _NamedGang(f"Workload `{workload}`", "spec.workloadRef", gang_object, ("policy", "gang", "minCount"))
    for label, kind in _LABELS_OF_GANGS.items():
        if name := _text_at(template, "metadata", "labels", label):
            gang_object = _object_with_gang(kind, name, subject) or {}
            yield _NamedGang(f"PodGroup `{name}`", f"label {label}", gang_object, ("spec", "minMember"))
    if name := _text_at(template, "metadata", "annotations", f"{_KOORDINATOR}name"):
        least = read_whole_number_or_none(_text_at(template, "metadata", "annotations", f"{_KOORDINATOR}min-available"))
        gang_object = {"min-available": least}
        yield _NamedGang(f"gang `{name}`", f"annotation {_KOORDINATOR}name", gang_object, ("min-available",))


def _text_at(template: JSON, *path: str) -> str:
    value = get(template, path, "")
    return value if isinstance(value, str) else ""


def _object_with_gang(kind: GroupVersionKind, name: str, subject: Subject) -> JSON:
    view = subject.cluster_view()
    return view.get_without_noting(kind, view.namespace, name)
