"""Which pods KAI starts together, the least number of GPUs that these pods request, and PodGroups that KAI's webhook or
the API server refuses.

KAI starts the pods of a training job, of a JobSet, of a Ray cluster, and of each group of a LeaderWorkerSet together.
An annotation of a Job sets how many of its pods start together. Pods of other kinds start one by one. KAI creates
PodGroups itself. A PodGroup that a user writes may have subgroups, and a subgroup may be inside another subgroup.

Source: kai-scheduler/KAI-Scheduler@d5bc503a pkg/podgrouper/podgrouper/plugins; NVIDIA/KAI-Scheduler@72de64fc
pkg/apis/scheduling/v2alpha2/podgroup_webhook.go; deployments/kai-scheduler/crds/scheduling.run.ai_podgroups.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath, get
from webhook.facts.kinds import JOB, JOB_SET, LEADER_WORKER_SET
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import OptionalNumber, Part, Parts, Text
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

KAI: Final = RuleGroup(
    "kai",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/scheduler/actions/utils/input_jobs.go",
    level="warn",
    fails="pending",
)
"""Pods that KAI places, and queues and PodGroups of KAI."""
BATCH_MIN_MEMBER: Final = "kai.scheduler/batch-min-member"
GPU: Final = "nvidia.com/gpu"
FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
DEVICES: Final = "gpu-fraction-num-devices"
_WHOLE: Final = re.compile(r"0{0,9}[1-9][0-9]{0,17}", re.ASCII)
_DECIMAL: Final = re.compile(r"\+?(?:[0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
"""Numbers that both Go's ParseFloat and a quantity accept."""
_LEAST_PART: Final = 1e-6
"""The fraction of a GPU that is assumed for a request of GPU memory. The real fraction is not known."""
TRAINING_JOBS: Final = frozenset(("kubeflow.org", f"{name}Job") for name in ("PyTorch", "TF", "XGBoost", "JAX", "MPI"))
_RAY: Final = frozenset(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService"))
_WORKER_GROUPS: Final = "workerGroupSpecs"
_MIN_AVAILABLE: Final = ("spec", "runPolicy", "schedulingPolicy", "minAvailable")
_SUBMITTER: Final = "submitter"


class KaiPods(NamedTuple):
    """The pods of one template that KAI places."""

    podset: PodSet
    template: PodTemplate

    def locate(self, *path: str) -> FieldPath:
        """Return the path of a template's field in the object."""
        return self.podset.locate(path)

    @property
    def gpus(self) -> float:
        """Return how many GPUs one pod requests, as far as amounts are known. The number may be a fraction."""
        written = [each.resources.limits.get(GPU) for each in self.template.spec.running_containers()]
        whole = sum(read_whole_number(str(amount)) for amount in written)
        annotations = self.template.metadata.annotations
        part = read_fraction(annotations.get(FRACTION, "")) or 0
        if not part and read_whole_number(annotations.get(MEMORY, "")):
            part = _LEAST_PART
        return whole or part * (read_whole_number(annotations.get(DEVICES, "")) or 1)


class Gang(NamedTuple):
    """Pods that start together: their number, and the least number of GPUs that they request."""

    pods: int
    gpus: float


def read_fraction(written: str) -> float | None:
    """Return a fraction of a GPU; None for a number that is not above 0 and below 1."""
    value = float(written) if _DECIMAL.fullmatch(written) else 0
    return value if 0 < value < 1 else None


def read_whole_number(written: str) -> int:
    """Return a whole number above 0; 0 for any other text."""
    return int(written) if _WHOLE.fullmatch(written) else 0


def gang_of_pods(pods: Sequence[KaiPods], subject: Subject) -> Gang:
    """Return the pods of an object that start together; one pod if pods start separately, or if together the pods
    request no more GPUs than one pod.
    """
    one = Gang(1, max(each.gpus for each in pods))
    if not _has_gang(pods, subject):
        return one
    sizes = [(_count_together(each.podset, subject), each.gpus) for each in pods if each.podset.name != _SUBMITTER]
    members = _least_members(subject, sum(count for count, _ in sizes))
    left, gpus = members, 0.0
    for count, of_pod in sorted(sizes, key=lambda size: size[1]):
        counted = min(left, count)
        left, gpus = left - counted, gpus + counted * of_pod
    return Gang(members, gpus) if gpus > one.gpus else one


def _has_gang(pods: Sequence[KaiPods], subject: Subject) -> bool:
    kind = subject.group_kind
    if kind == JOB_SET:
        return all(_starts_at_once(each.podset, subject) for each in pods)
    return kind in _RAY or kind in TRAINING_JOBS or kind in (JOB, LEADER_WORKER_SET)


def _count_together(podset: PodSet, subject: Subject) -> int:
    """Return how many pods of a template start together at least."""
    if subject.group_kind == JOB:
        return read_whole_number(subject.metadata.annotations.get(BATCH_MIN_MEMBER, "")) or 1
    return _least_of_ray_group(podset, subject) if subject.group_kind in _RAY else podset.count or 0


def _least_of_ray_group(podset: PodSet, subject: Subject) -> int:
    """Return the least number of pods of a Ray group: minReplicas times numOfHosts; all pods of the group if
    minReplicas is 0 or not set.
    """
    count = podset.count or 0
    if podset.path[-3:-2] != (_WORKER_GROUPS,):
        return count
    group = get(subject.object, podset.path[:-1]) or {}
    least, hosts = (_number(group, name) for name in ("minReplicas", "numOfHosts"))
    return least * max(hosts, 1) if least else count


def _starts_at_once(podset: PodSet, subject: Subject) -> bool:
    """Return whether all Jobs of a JobSet start together: the JobSet sets no order, and no annotation sets a number of
    members.
    """
    order = get(subject.object, ("spec", "startupPolicy", "startupPolicyOrder"))
    job = get(subject.object, podset.path[:-2]) or {}
    annotated = (subject.metadata.annotations, get(job, ("metadata", "annotations")) or {})
    return order != "InOrder" and not any(BATCH_MIN_MEMBER in each for each in annotated)


def _least_members(subject: Subject, total: int) -> int:
    """Return how many pods start together: minAvailable or the elastic minReplicas of a training job; all pods if
    neither is set.
    """
    if subject.group_kind not in TRAINING_JOBS:
        return total
    spec = subject.object.get("spec")
    least = _number(get(spec, ("runPolicy", "schedulingPolicy")), "minAvailable")
    return min(total, least or _number(get(spec, ("elasticPolicy",)), "minReplicas") or total)


def _number(holder: Any, name: str) -> int:
    value = holder.get(name) if isinstance(holder, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def roles_without_replicas(pods: Sequence[KaiPods], subject: Subject) -> Iterator[FieldPath]:
    """Yield the roles of a training job without replicas; nothing if the job sets how many pods start together."""
    if subject.group_kind in TRAINING_JOBS and not get(subject.object, _MIN_AVAILABLE):
        for each in pods:
            role = each.podset.path[:-1]
            if not get(subject.object, (*role, "replicas")):
                yield role


def members_of_jobs(pods: Sequence[KaiPods], subject: Subject) -> Iterator[tuple[FieldPath, int, int]]:
    """Yield for each annotated Job the path of the annotation, the number of members that start together, and the
    parallelism.
    """
    for each in pods if subject.group_kind in (JOB, JOB_SET) else ():
        job = each.podset.path[:-2]
        path = (*job, "metadata", "annotations", BATCH_MIN_MEMBER)
        count = get(subject.object, (*job, "spec", "parallelism"), 1)
        least = read_whole_number(str(get(subject.object, path, "")))
        if least and isinstance(count, int):
            yield path, least, count


POD_GROUP: Final = KAI.rule(
    "kai/pod-group",
    title="A PodGroup of KAI has invalid subgroups or an invalid number of members",
    why="The webhook of KAI refuses repeated names, missing parents and cycles; the API server refuses 0 members.",
    source="NVIDIA/KAI-Scheduler@72de64fc pkg/apis/scheduling/v2alpha2/podgroup_webhook.go",
    function="validateSubGroups",
    refused_by="the webhook of KAI, when the group is created or changed",
    fails="create",
)
_PREEMPTIBILITY: Final = ("preemptible", "non-preemptible")


class KaiSubGroup(Typed):
    """scheduling.run.ai/v2alpha2 SubGroup: pods of a group that start together. `parent` names another subgroup."""

    min_member = OptionalNumber()
    name = Text()
    parent = Text()


class KaiPodGroupSpec(Typed):
    """scheduling.run.ai/v2alpha2 PodGroupSpec."""

    min_member = OptionalNumber()
    preemptibility = Text()
    sub_groups = Parts(KaiSubGroup)


class KaiPodGroup(Object):
    """scheduling.run.ai/v2alpha2 PodGroup."""

    gvk = GroupVersionKind("scheduling.run.ai", "v2alpha2", "PodGroup")
    spec = Part(KaiPodGroupSpec)


def check_kai_pod_group(subject: Subject) -> Iterator[Problem]:
    """Report values that KAI's webhook or the API server refuses in a PodGroup."""
    spec = subject.typed(KaiPodGroup).spec
    parts: tuple[KaiPodGroupSpec | KaiSubGroup, ...] = (spec, *spec.sub_groups)
    for part in parts:
        if part.min_member is not None and part.min_member < 1:
            yield POD_GROUP.problem(part.path("minMember"), "must be 1 or more", "set 1 or more", part.min_member)
    written = spec.preemptibility
    if written and written not in _PREEMPTIBILITY and not is_placeholder(written):
        message = f"must be one of {', '.join(_PREEMPTIBILITY)}"
        yield POD_GROUP.problem(spec.path("preemptibility"), message, "use one of these", written[:80])
    groups = dict[str, KaiSubGroup]()
    for each in spec.sub_groups:
        if not each.has("name"):
            yield POD_GROUP.problem(each.path("name"), "is required", "set a name")
        elif each.name in groups:
            yield POD_GROUP.problem(each.path("name"), "is also the name of another subgroup", "set another name")
        groups.setdefault(each.name, each)
    for each in groups.values():
        if each.parent and each.parent not in groups and not is_placeholder(each.parent):
            message = f"names subgroup {each.parent[:80]}, which does not exist"
            yield POD_GROUP.problem(each.path("parent"), message, "name another subgroup, or remove the field")
    first = _first_in_circle(groups)
    if first is not None:
        message = f"names `{first.parent[:80]}`, which is inside this subgroup"
        yield POD_GROUP.problem(first.path("parent"), message, "remove the field, or name another subgroup")


def _first_in_circle(groups: Mapping[str, KaiSubGroup]) -> KaiSubGroup | None:
    """Return the first subgroup that is inside itself, or None. Each subgroup is walked once."""
    walked = set[str]()
    for first in groups:
        chain, name = dict[str, None](), first
        while name in groups and name not in walked and name not in chain:
            chain[name] = None
            name = groups[name].parent
        if name in chain:
            return groups[name]
        walked |= chain.keys()
    return None
