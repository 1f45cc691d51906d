"""ResourceQuotas: workloads that need more than the ResourceQuotas of their namespace allow, and ResourceQuotas that
name the resource `gpu`.

A pod that exceeds a quota is refused when its controller creates the pod. By then the workload is accepted, and a queue
may have admitted the workload. The check compares pods with the whole quota, not with its free part. A quota with
scopes may be about other pods, so such a quota is not compared. A quota of CPU or memory also refuses pods with a
container that does not set the amount. Such a container is reported only if all LimitRanges of the namespace are known,
because a LimitRange may set the amount.

Source: k8s.io/kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go, and pkg/apis/core/validation/validation.go
ValidateResourceQuotaResourceName.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.apimachinery.quantity import Quantity
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import (
    PLACED,
    DevicePods,
    located_templates,
    read_device_workload,
    without_repeated_problems,
)
from webhook.facts.kinds import LEADER_WORKER_SET, POD, TRAIN_JOB
from webhook.facts.namespace_quota.limit_ranges import (
    KUEUE_LOOKUPS,
    NAMESPACE_QUOTA,
    PORTABLE_NAME,
    SETS_AMOUNTS,
    amounts_of_templates,
    check_default_devices,
    check_portable_gpu_in_limit_range,
    is_managed_by_kueue,
    resource_name_problem,
    validate_limit_ranges,
)
from webhook.facts.pods.pod_requests import (
    LIMIT_RANGE_LOOKUPS,
    Amounts,
    format_thousandths_with_resource_name,
)
from webhook.facts.subject import Check, Subject
from webhook.facts.updates import AUTOSCALERS, SCALED_LOOKUPS, scaling_of_autoscaler
from webhook.facts.volcano_objects.types import CronJob, Job
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.cluster_objects import LimitRange, StatefulSet
from webhook.typed.fields import Part, Raw, Texts, ValueMap
from webhook.typed.job_sets import JobSet
from webhook.typed.objects import Object
from webhook.typed.view import Typed
from webhook.workloads.podsets import PodSet


class ResourceQuotaSpec(Typed):
    """core/v1 ResourceQuotaSpec."""

    hard = ValueMap()
    scopes = Texts()
    scope_selector = Raw()

    @property
    def has_scopes(self) -> bool:
        """Return whether the quota counts only some of the pods."""
        return bool(self.scopes or self.scope_selector)


class ResourceQuotaStatus(Typed):
    """core/v1 ResourceQuotaStatus."""

    used = ValueMap()


class ResourceQuota(Object):
    """core/v1 ResourceQuota."""

    gvk = GroupVersionKind("", "v1", "ResourceQuota")
    spec = Part(ResourceQuotaSpec)
    status = Part(ResourceQuotaStatus)


DEVICES: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/devices",
    title="The workload requests more devices than the ResourceQuota allows",
    why=(
        "The workload is accepted, but its pods above the quota are refused. Pods that train together then wait for "
        "the missing pods."
    ),
    function="PodUsageFunc",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/1403",),
)
AMOUNTS: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/amounts",
    title="The workload requests more CPU, memory or storage than the ResourceQuota allows",
    why="The workload is accepted, but its pods above the quota are refused.",
    function="PodUsageFunc",
)
PODS: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/pods",
    title="The workload runs more pods than the ResourceQuota allows",
    why="The workload is accepted, but its pods above the quota are refused.",
    function="PodUsageFunc",
)
OBJECTS: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/objects",
    title="The workload needs more objects than the ResourceQuota allows",
    why=(
        "A ResourceQuota may count the objects of a kind, such as Jobs or claims. The API server refuses the workload, "
        "or an object that its controller creates."
    ),
    source="k8s.io/kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go",
    function="ObjectCountQuotaResourceNameFor",
)
UNSET_AMOUNT: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/unset-amount",
    title="A container does not set an amount that a ResourceQuota counts",
    why=(
        "A ResourceQuota of CPU or memory needs the amount of every container. If a container sets no amount, the API "
        "server refuses the pod."
    ),
    function="enforcePodContainerConstraints",
)
SCALING: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/autoscaler",
    title="An autoscaler may create more pods than the ResourceQuota allows devices for",
    why="The API server refuses the additional pods, and the autoscaler still counts them.",
    level="advice",
)
QUOTA_LOOKUPS: Final = (interest_in_fields(ResourceQuota.gvk, "spec.hard", "spec.scopes", "spec.scopeSelector"),)
_OF_QUOTAS: Final = (PORTABLE_NAME, f"requests.{PORTABLE_NAME}", f"limits.{PORTABLE_NAME}")
_REQUIRED: Final[Mapping[str, tuple[str, str]]] = {
    **{name: ("request", name) for name in ("cpu", "memory")},
    **{f"{side}s.{name}": (side, name) for side in ("request", "limit") for name in ("cpu", "memory")},
}
"""Names in a quota for amounts that each container must set, such as `requests.cpu`. A name is mapped to `request` or
`limit`, and to the resource.
"""
_COUNTED: Final[Mapping[str, tuple[str, str]]] = {
    **_REQUIRED,
    "ephemeral-storage": ("request", "ephemeral-storage"),
    **{f"{side}s.ephemeral-storage": (side, "ephemeral-storage") for side in ("request", "limit")},
}
"""Names in a quota for amounts that the quota adds up for all pods. A name is mapped to `request` or `limit`, and to
the resource.
"""
_VERBS: Final[Mapping[tuple[str, bool], str]] = {
    ("request", True): "the pod requests",
    ("request", False): "the {} pods together request",
    ("limit", True): "the pod has limits of",
    ("limit", False): "the {} pods together have limits of",
}
"""The beginning of a message, by `request` or `limit`, and by whether only one pod is counted."""
_OF_PODS: Final = ("pods", "count/pods")
_COUNT: Final = "count/"
_COUNTED_WITHOUT_PREFIX: Final = frozenset(
    ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services")
)
"""Resources that a quota may also count without the prefix `count/`."""
_OF_CLAIMS: Final = (".deviceclass.resource.k8s.io/devices", "requests.deviceclass.resource.kubernetes.io/")
_CREATED: Final[Mapping[tuple[str, str], Mapping[str, int]]] = {
    ("apps", "Deployment"): {"replicasets.apps": 1},
    ("batch", "CronJob"): {"jobs.batch": 1},
    ("batch.volcano.sh", "Job"): {"podgroups.scheduling.volcano.sh": 1},
    LEADER_WORKER_SET: {"statefulsets.apps": 1},
    ("ray.io", "RayCluster"): {"services": 1},
    ("ray.io", "RayService"): {"rayclusters.ray.io": 1, "services": 1},
    TRAIN_JOB: {"jobsets.jobset.x-k8s.io": 1},
}
"""The least number of objects that the controller of a kind creates, by resource."""
_OF_KUBERNETES: Final = ("", "apps", "batch")
"""API groups of kinds. The controllers of these kinds create only objects that are counted here."""


def check_portable_gpu_in_quota(subject: Subject) -> Iterator[Problem]:
    """Report the portable name `gpu` in a ResourceQuota, because this name counts no device."""
    spec = subject.typed(ResourceQuota).spec
    for name in _OF_QUOTAS:
        if name in spec.hard:
            yield resource_name_problem(spec.path("hard", name), name, "requests.nvidia.com/gpu")


def validate_namespace_quota(subject: Subject) -> Iterator[Problem]:
    """Report a workload with devices that a ResourceQuota of the namespace does not allow. Jobs that MultiKueue may run
    in another cluster are not reported.
    """
    if _pods_with_devices(subject):
        yield from problems_of_quotas(subject)


def check_autoscaler_in_quota(subject: Subject) -> Iterator[Problem]:
    """Report an autoscaler with a maximum of replicas that need more devices than a ResourceQuota allows."""
    scaling, view = subject.once(scaling_of_autoscaler), subject.cluster_view()
    if scaling is None or not scaling.devices or not view.namespace:
        return
    allowed = [
        (amount.value() // count, quota)
        for quota in view.list_typed(ResourceQuota, view.namespace)
        for name, count in scaling.devices.items()
        if not quota.spec.has_scopes
        and (amount := quantity.read_quantity_or_none(quota.spec.hard.get(f"requests.{name}"))) is not None
    ]
    if not allowed:
        return
    replicas, quota = min(allowed, key=lambda each: each[0])
    if 0 < replicas < scaling.most:
        allows = f"ResourceQuota `{quota.name}`{view.file_of_object_as_text(quota.json)} of the namespace allows"
        yield scaling.problem(SCALING, f"{allows} devices for", replicas, "ask the administrator to raise the quota")


def _pods_with_devices(subject: Subject) -> list[DevicePods]:
    pods = subject.once(read_device_workload).device_pods
    return [each for each in pods if each.devices and each.podset.pods]


def problems_of_quotas(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a workload with the ResourceQuotas of the namespace, also for pods without devices."""
    view = subject.cluster_view()
    listed = view.list_typed(ResourceQuota, view.namespace) if view.namespace else ()
    quotas = [each for each in listed if not each.spec.has_scopes]
    if not quotas or may_run_elsewhere(subject):
        return
    using = [(pods.podset, pods.devices) for pods in _pods_with_devices(subject)]
    requests = _simultaneous_requests(using, subject)
    for quota in quotas:
        quota_text = f"`{quota.name}`{view.file_of_object_as_text(quota.json)}"
        for name, request in requests.items():
            allowed = quantity.read_quantity_or_none(quota.spec.hard.get(f"requests.{name}"))
            if allowed is not None and allowed.value() < request.amount:
                yield from without_repeated_problems(
                    (_quota_exceeded_problem(name, request, allowed.value(), quota_text),), subject
                )
        yield from without_repeated_problems(_check_pods_and_amounts(quota, quota_text, subject), subject)
        yield from without_repeated_problems(_check_unset_amounts(quota, quota_text, subject), subject)
        yield from _check_objects(quota, quota_text, subject)


def may_run_elsewhere(subject: Subject) -> bool:
    """Return whether the AdmissionChecks of the job's ClusterQueue may send the job to another cluster."""
    if not subject.once(is_managed_by_kueue):
        return False
    from webhook.facts.kueue.admission_checks import may_run_in_other_cluster
    from webhook.facts.kueue.managed import how_kueue_manages, queue_place_of_job

    queue = queue_place_of_job(subject, subject.once(how_kueue_manages)).queue
    return may_run_in_other_cluster(queue, subject.cluster_view())


def _check_objects(quota: ResourceQuota, quota_text: str, subject: Subject) -> Iterator[Problem]:
    """Report the first kind of objects that a quota limits to fewer objects than the workload needs."""
    created = subject.once(_created_objects)
    for name in quota.spec.hard:
        count, allowed = created.get(_counted_resource(name), 0), quantity.read_quantity_or_none(quota.spec.hard[name])
        if allowed is not None and count > allowed.value():
            refused = "this object" if count == 1 else "some of these objects" if allowed.sign() else "these objects"
            message = f"needs {counted(count, 'object')} of {_counted_resource(name)}"
            but = f"but ResourceQuota {quota_text} of the namespace allows {allowed} `{name}`"
            fix = "use another namespace, or ask the administrator to raise the quota"
            yield OBJECTS.problem("", f"{message}, {but}, so the API server refuses {refused}", fix)
            return


def _counted_resource(name: str) -> str:
    """Return the resource that a name in a quota counts, such as `jobs.batch` for `count/jobs.batch`; "" for a name
    that counts no objects.
    """
    if name.startswith(_COUNT):
        return name.removeprefix(_COUNT)
    return name if name in _COUNTED_WITHOUT_PREFIX else ""


def _created_objects(subject: Subject) -> Mapping[str, int]:
    """Return how many objects a workload needs at least, by resource. The workload itself and the objects that
    controllers create for it are counted, except pods. Call this function through `Subject.once`.
    """
    counts = Counter(_CREATED.get(subject.group_kind, {}))
    resource = subject.attributes.resource
    if subject.group_kind != POD:
        counts[".".join(filter(None, (resource.resource, resource.group)))] += 1
    match subject.group_kind:
        case ("jobset.x-k8s.io", "JobSet"):
            counts["jobs.batch"] += sum(job.replicas for job in subject.typed(JobSet).spec.replicated_jobs)
        case ("apps", "StatefulSet"):
            stateful_set = subject.typed(StatefulSet).spec
            counts["persistentvolumeclaims"] += stateful_set.replicas * len(stateful_set.volume_claim_templates)
        case ("kubeflow.org", "MPIJob") if subject.attributes.kind.version == "v2beta1":
            counts.update({"jobs.batch": 1, "configmaps": 1, "secrets": 1, "services": 1})
    for podset, template in subject.once(located_templates):
        pods, spec = podset.pods or 0, template.spec
        counts["jobs.batch"] += subject.group_kind == TRAIN_JOB
        of_templates = sum(bool(claim.resource_claim_template_name) for claim in spec.resource_claims)
        counts["resourceclaims.resource.k8s.io"] += pods * of_templates
        counts["persistentvolumeclaims"] += pods * sum(bool(volume.ephemeral) for volume in spec.volumes)
    if subject.once(is_managed_by_kueue):
        counts["workloads.kueue.x-k8s.io"] += 1
    return +counts


def quotas_not_compared(subject: Subject) -> Iterator[str]:
    """Yield a sentence for the first ResourceQuota that is not compared but may refuse an object of the workload. Such
    a quota has scopes, counts devices or storage of claims, or counts objects that an unknown controller may create. A
    controller rarely creates more objects of a kind than pods.
    """
    view, created, located = subject.cluster_view(), subject.once(_created_objects), subject.once(located_templates)
    pods = sum(podset.pods or 0 for podset, _ in located)
    has_claims = any(template.spec.resource_claims for _, template in located)
    for quota in view.list_typed(ResourceQuota, view.namespace) if view.namespace else ():
        if quota.spec.has_scopes:
            yield f"ResourceQuota `{quota.name}` has scopes, and is not compared with the pods"
            return
        unset = None if view.is_whole(LimitRange.gvk) else next(_unset_amounts(quota, subject), None)
        if unset is not None:
            refuses = f"ResourceQuota `{quota.name}` refuses pods without {unset[1]}"
            yield f"{refuses}, unless a LimitRange that was not read sets it"
            return
        for name in quota.spec.hard:
            free = _free_amount(quota, name)
            resource = _counted_resource(name)
            is_compared = subject.group_kind[0] in _OF_KUBERNETES or resource in (*created, "", "pods")
            is_of_claims = has_claims and any(part in name for part in _OF_CLAIMS)
            is_of_volumes = created.get("persistentvolumeclaims") and name.endswith("requests.storage")
            if is_of_claims or is_of_volumes or (not is_compared and free is not None and free <= pods):
                yield f"ResourceQuota `{quota.name}` counts {name}, and is not compared with the pods"
                return


def _free_amount(quota: ResourceQuota, name: str) -> int | None:
    """Return the free amount of a quota, or the whole amount if the used amount is not known."""
    allowed = quantity.read_quantity_or_none(quota.spec.hard.get(name))
    used = quantity.read_quantity_or_none(quota.status.used.get(name))
    return None if allowed is None else allowed.value() - (0 if used is None else used.value())


def quotas_in_use(subject: Subject) -> Iterator[str]:
    """Yield a sentence for each ResourceQuota that allows a new workload, but has too little free now. Only
    ResourceQuotas in files have used amounts. A live view omits used amounts, because used amounts change too often.
    """
    if subject.metadata.has("uid"):
        return  # the quota may already count the pods of this object
    view = subject.cluster_view()
    using = [(pods.podset, pods.devices) for pods in _pods_with_devices(subject)]
    of_devices = _simultaneous_requests(using, subject)
    wanted = {f"requests.{name}": request.amount * 1000 for name, request in of_devices.items()}
    wanted |= {name: request.amount for name, request in subject.once(_amounts_of_pods).items()}
    for name, count in subject.once(_created_objects).items():
        wanted |= dict.fromkeys((f"{_COUNT}{name}", name), count * 1000)
    quotas = view.copy_without_missing_objects().list_typed(ResourceQuota, view.namespace)
    for quota in quotas if view.namespace else ():
        if quota.spec.has_scopes:
            continue
        for name, amount in wanted.items():
            allowed = quantity.read_quantity_or_none(quota.spec.hard.get(name))
            used = quantity.read_quantity_or_none(quota.status.used.get(name))
            if allowed is None or used is None or amount > allowed.milli_value():
                continue
            if amount > allowed.milli_value() - used.milli_value():
                quota_text = f"`{quota.name}`{view.file_of_object_as_text(quota.json)}"
                refused = "objects of this kind" if _counted_resource(name) not in ("", "pods") else "pods"
                yield f"ResourceQuota {quota_text} has {used} of {allowed} {name} in use, so it refuses {refused} now"
                break


class _SimultaneousRequest(Struct, frozen=True):
    """The amount that pods request at the same time, and the path of the template that requests most."""

    amount: int
    pods: int
    path: FieldPath


def _simultaneous_requests(
    of_pods: Iterable[tuple[PodSet, Mapping[str, int]]], subject: Subject
) -> Mapping[str, _SimultaneousRequest]:
    """Return the amounts that pods request at the same time, by resource. If some pods may be created only after other
    pods end, only the pod set with the largest amount counts.
    """
    parts: dict[str, list[_SimultaneousRequest]] = {}
    for podset, amounts in of_pods:
        count = podset.pods or 0
        for name, amount in amounts.items():
            parts.setdefault(name, []).append(_SimultaneousRequest(amount * count, count, podset.path))
    largest = {name: max(listed, key=lambda part: part.amount) for name, listed in parts.items()}
    if _may_pods_be_created_later(subject):
        return largest
    return {
        name: _SimultaneousRequest(
            sum(part.amount for part in listed), sum(part.pods for part in listed), largest[name].path
        )
        for name, listed in parts.items()
    }


def _may_pods_be_created_later(subject: Subject) -> bool:
    """Return whether some pods may be created only after other pods end. In a TrainJob, the runtime may decide this."""
    match subject.group_kind:
        case ("jobset.x-k8s.io", "JobSet"):
            return any(job.depends_on for job in subject.typed(JobSet).spec.replicated_jobs)
        case ("batch.volcano.sh", "Job"):
            return any(task.depends_on.json for task in subject.typed(Job).spec.tasks)
        case ("batch.volcano.sh", "CronJob"):
            return any(task.depends_on.json for task in subject.typed(CronJob).spec.job_template.spec.tasks)
    return subject.group_kind == TRAIN_JOB


def _subject_of_sentence(pods: int) -> str:
    return "the pod requests" if pods == 1 else f"the {pods} pods together request"


def _quota_exceeded_problem(name: str, request: _SimultaneousRequest, allowed: int, quota: str) -> Problem:
    refused = "the pod" if request.pods == 1 else "some of the pods"
    message = (
        f"{_subject_of_sentence(request.pods)} {request.amount} `{name}`, but ResourceQuota {quota} of the "
        f"namespace allows {allowed}, so the API server refuses {refused}"
    )
    return DEVICES.problem(
        path_as_text(request.path),
        message,
        f"request at most {allowed} in all, or ask the administrator to raise the quota",
    )


def _check_pods_and_amounts(quota: ResourceQuota, quota_text: str, subject: Subject) -> Iterator[Problem]:
    """Report a number of pods above a quota. If the quota allows the number, report amounts of CPU, memory and storage
    above the quota, in one problem.
    """
    above: dict[str, tuple[_SimultaneousRequest, Quantity]] = {}
    for name, request in subject.once(_amounts_of_pods).items():
        allowed = quantity.read_quantity_or_none(quota.spec.hard.get(name))
        if allowed is not None and request.amount > allowed.milli_value():
            above[name] = request, allowed
    name = next(iter(above), "")
    if not name:
        return
    request, allowed = above[name]
    at, raised = path_as_text(request.path), "ask the administrator to raise the quota"
    refused = "the pod" if request.pods == 1 else "some of the pods" if allowed.sign() else "the pods"
    but = f", but ResourceQuota {quota_text} of the namespace allows"
    if name in _OF_PODS:
        message = f"runs {counted(request.pods, 'pod')} at a time{but} {allowed.value()}"
        fewer = (
            f"run at most {counted(allowed.value(), 'pod')} at a time" if allowed.sign() else "use another namespace"
        )
        yield PODS.problem(at, f"{message}, so the API server refuses {refused}", f"{fewer}, or {raised}")
        return
    side = _COUNTED[name][0]
    both = {_COUNTED[each][1]: pair for each, pair in above.items() if _COUNTED[each][0] == side}
    wanted = _amounts_as_text({resource: request_of_pods.amount for resource, (request_of_pods, _) in both.items()})
    most = _amounts_as_text({resource: limit.milli_value() for resource, (_, limit) in both.items()})
    message = f"{_VERBS[side, request.pods == 1].format(request.pods)} {wanted}{but} {most}"
    yield AMOUNTS.problem(at, f"{message}, so the API server refuses {refused}", f"ask for less, or {raised}")


def _amounts_as_text(amounts: Amounts) -> str:
    return " and ".join(format_thousandths_with_resource_name(name, milli) for name, milli in amounts.items())


def _amounts_of_pods(subject: Subject) -> Mapping[str, _SimultaneousRequest]:
    """Return the amounts of all pods that run at the same time, as quotas count them. The keys are names in a quota,
    and the amounts are in thousandths.
    """
    of_pods = list[tuple[PodSet, Mapping[str, int]]]()
    for each in subject.once(amounts_of_templates):
        amounts = {
            name: each.pod[side][resource] for name, (side, resource) in _COUNTED.items() if resource in each.pod[side]
        }
        of_pods.append((each.podset, {**dict.fromkeys(_OF_PODS, 1000), **amounts}))
    return _simultaneous_requests(of_pods, subject)


def _check_unset_amounts(quota: ResourceQuota, quota_text: str, subject: Subject) -> Iterator[Problem]:
    """Yield containers that do not set an amount that a quota of the namespace counts."""
    if not subject.cluster_view().is_whole(LimitRange.gvk):
        return
    for at, name in _unset_amounts(quota, subject):
        side, resource = _REQUIRED[name]
        message = f"sets no {side} of {resource}, but ResourceQuota {quota_text} of the namespace counts {name}"
        yield UNSET_AMOUNT.problem(at, f"{message}, so the API server refuses the pods", f"set a {side} of {resource}")


def _unset_amounts(quota: ResourceQuota, subject: Subject) -> Iterator[tuple[FieldPath, str]]:
    """Yield the path of each container without an amount that a quota counts, and the name of this amount in the
    quota. Defaults of known LimitRanges count as set.
    """
    required = [name for name in _REQUIRED if name in quota.spec.hard]
    if not required or subject.group_kind in SETS_AMOUNTS:
        return
    for podset, template, containers, _ in subject.once(amounts_of_templates):
        if podset.partial is not None or podset.pods == 0 or template.spec.resources:
            continue
        for listed in containers:
            sides = {"request": listed.requests, "limit": listed.limits}
            name = next((each for each in required if _REQUIRED[each][1] not in sides[_REQUIRED[each][0]]), None)
            if name is not None:
                yield podset.locate(listed.container.at), name
                break


_QUOTAS: Final = frozenset((("", "ResourceQuota"),))
_LIMIT_RANGES: Final = frozenset((("", "LimitRange"),))
CHECKS: Final = (
    Check(
        group="namespace-quota",
        run=validate_namespace_quota,
        kinds=PLACED,
        lookups=(*QUOTA_LOOKUPS, *LIMIT_RANGE_LOOKUPS, *KUEUE_LOOKUPS),
        of_made_objects=False,
    ),
    Check(
        group="namespace-quota",
        run=validate_limit_ranges,
        kinds=PLACED,
        lookups=(*LIMIT_RANGE_LOOKUPS, *KUEUE_LOOKUPS),
        of_made_objects=False,
    ),
    Check(
        group="namespace-quota",
        run=check_autoscaler_in_quota,
        kinds=AUTOSCALERS,
        lookups=(*QUOTA_LOOKUPS, *LIMIT_RANGE_LOOKUPS),
        lookups_of_audits=SCALED_LOOKUPS,
    ),
    Check(group="gpu-quota", run=check_portable_gpu_in_quota, kinds=_QUOTAS),
    Check(group="gpu-quota", run=check_portable_gpu_in_limit_range, kinds=_LIMIT_RANGES),
    Check(group="gpu-quota", run=check_default_devices, kinds=_LIMIT_RANGES),
)
