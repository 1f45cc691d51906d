"""Compares workloads with the ResourceQuotas and LimitRanges of their namespace, and reports ResourceQuotas and
LimitRanges that name the resource `gpu`.

The API server refuses `gpu`, because a name without a domain must be a resource of Kubernetes. A pod that exceeds a
quota is refused when its controller creates the pod. By then the workload is accepted, and a queue may have admitted
it. The check compares pods with the whole quota, not with its free part. A quota with scopes may be about other pods,
so it is not compared. A quota of CPU or memory also refuses pods with a container that does not set the amount. A
LimitRange may set the amount. So such a container is reported only if all LimitRanges of the namespace are known.

Source: k8s.io/kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go, plugin/pkg/admission/limitranger/admission.go, and
pkg/apis/core/validation/validation.go ValidateResourceQuotaResourceName and validateLimitRangeResourceName.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.apimachinery.quantity import Quantity
from webhook.cluster.controllers import KUEUE
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import (
    PLACED,
    DevicePods,
    located_templates,
    read_device_workload,
    without_repeated_problems,
)
from webhook.facts.kinds import LEADER_WORKER_SET, POD, TRAIN_JOB
from webhook.facts.kueue.configuration import may_concern_kueue
from webhook.facts.kueue.objects import CONFIGURATIONS, LOCAL_QUEUE, QUEUES
from webhook.facts.pods.pod_requests import (
    LIMIT_RANGE_LOOKUPS,
    Amounts,
    NamespaceLimits,
    RequestsOfContainer,
    find_amounts_out_of_range,
    format_thousandths_with_resource_name,
    limits_of_namespace,
    quota_requests_of_pod,
    requests_of_created_containers,
)
from webhook.facts.subject import Check, Subject
from webhook.facts.view import NAMESPACES
from webhook.facts.volcano_objects.types import CronJob, Job
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.text.wording import counted
from webhook.typed.cluster_objects import LimitRange, StatefulSet
from webhook.typed.collections import Items
from webhook.typed.fields import Part, Raw, Texts, ValueMap
from webhook.typed.job_sets import JobSet
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed
from webhook.workloads.podsets import PodSet

NAMESPACE_QUOTA: Final = RuleGroup(
    "namespace-quota",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go",
    level="warn",
    fails="controller",
)
"""Pods that the ResourceQuotas and LimitRanges of a namespace never allow. The free amounts of quotas change too often
to be checked.
"""
GPU_QUOTA: Final = RuleGroup(
    "gpu-quota",
    refused_by="the API server",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    level="warn",
    fails="create",
)


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


RESOURCE_NAME: Final = GPU_QUOTA.rule(
    "gpu-quota/resource-name",
    title="A ResourceQuota or LimitRange names `gpu`, which no pod can request",
    why=(
        "The API server refuses the name `gpu`. Pods request `nvidia.com/gpu` or another vendor's resource, and the "
        "ResourceQuota or LimitRange must name the same resource."
    ),
    function="ValidateResourceQuotaResourceName",
)
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
LIMIT_RANGE: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/limit-range",
    title="A LimitRange forbids an amount of the pods",
    why="The workload is accepted, but the API server refuses each pod, so no pod is created.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/limitranger/admission.go",
    function="PodValidateLimitFunc",
)
QUOTA_LOOKUPS: Final = (interest_in_fields(ResourceQuota.gvk, "spec.hard", "spec.scopes", "spec.scopeSelector"),)
_NAME: Final = "gpu"
_OF_QUOTAS: Final = (_NAME, f"requests.{_NAME}", f"limits.{_NAME}")
_REQUIRED: Final[Mapping[str, tuple[str, str]]] = {
    **{name: ("request", name) for name in ("cpu", "memory")},
    **{f"{side}s.{name}": (side, name) for side in ("request", "limit") for name in ("cpu", "memory")},
}
"""Names in a quota for amounts that each container must set, such as `requests.cpu`: for each, the side of `resources`
and the resource.
"""
_COUNTED: Final[Mapping[str, tuple[str, str]]] = {
    **_REQUIRED,
    "ephemeral-storage": ("request", "ephemeral-storage"),
    **{f"{side}s.ephemeral-storage": (side, "ephemeral-storage") for side in ("request", "limit")},
}
"""Names in a quota for amounts that the quota adds up for all pods: for each, the side of `resources` and the
resource.
"""
_VERBS: Final[Mapping[tuple[str, bool], str]] = {
    ("request", True): "the pod requests",
    ("request", False): "the {} pods together request",
    ("limit", True): "the pod has limits of",
    ("limit", False): "the {} pods together have limits of",
}
"""The beginning of a message, by the side of `resources` and by whether there is only one pod."""
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
"""API groups of kinds with controllers that create only objects that are counted here."""
_COMPLETED: Final = frozenset((("serving.kserve.io", "InferenceService"), ("serving.knative.dev", "Service")))
"""Kinds with controllers that set amounts if the object omits the amounts."""


def check_portable_gpu_in_quota(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of the portable name `gpu` in a ResourceQuota, which counts no device."""
    spec = subject.typed(ResourceQuota).spec
    for name in _OF_QUOTAS:
        if name in spec.hard:
            yield _resource_name_problem(spec.path("hard", name), name, "requests.nvidia.com/gpu")


def check_portable_gpu_in_limit_range(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of the portable name `gpu` in a LimitRange, which limits no device."""
    for item in subject.typed(LimitRange).spec.limits:
        for field in item.fields_with(_NAME):
            yield _resource_name_problem(item.path(field, _NAME), _NAME, "nvidia.com/gpu")


def _resource_name_problem(path: FieldPath, name: str, example: str) -> Problem:
    message = "is not a resource of Kubernetes, so the API server refuses the object and no GPU is counted"
    return RESOURCE_NAME.problem(path, message, f"name the resource of a vendor, such as {example}", shown=f"`{name}`")


def validate_namespace_quota(subject: Subject) -> Iterator[Problem]:
    """Report a workload with devices that a ResourceQuota of the namespace does not allow. Jobs that MultiKueue may run
    in another cluster are not reported.
    """
    if _pods_with_devices(subject):
        yield from problems_of_quotas(subject)


def _pods_with_devices(subject: Subject) -> list[DevicePods]:
    pods = subject.once(read_device_workload).device_pods
    return [each for each in pods if each.devices and each.podset.pods]


def problems_of_quotas(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a workload with the ResourceQuotas of the namespace, also for pods without devices."""
    using, view = _pods_with_devices(subject), subject.cluster_view()
    listed = view.list_typed(ResourceQuota, view.namespace) if view.namespace else ()
    quotas = [each for each in listed if not each.spec.has_scopes]
    if not quotas or may_run_elsewhere(subject):
        return
    requests = _simultaneous_requests([(pods.podset, pods.devices) for pods in using], subject)
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


def is_managed_by_kueue(subject: Subject) -> bool:
    """Return whether Kueue decides when the pods of an object are created; call it through `Subject.once`."""
    if not subject.once(may_concern_kueue):
        return False
    from webhook.facts.kueue.managed import how_kueue_manages

    return not subject.once(how_kueue_manages).why_not


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
            own = subject.typed(StatefulSet).spec
            counts["persistentvolumeclaims"] += own.replicas * len(own.volume_claim_templates)
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
        for name in quota.spec.hard:
            free = _free_amount(quota, name)
            resource = _counted_resource(name)
            is_own = subject.group_kind[0] in _OF_KUBERNETES or resource in (*created, "", "pods")
            is_of_claims = has_claims and any(part in name for part in _OF_CLAIMS)
            is_of_volumes = created.get("persistentvolumeclaims") and name.endswith("requests.storage")
            if is_of_claims or is_of_volumes or (not is_own and free is not None and free <= pods):
                yield f"ResourceQuota `{quota.name}` counts {name}, and is not compared with the pods"
                return


def _free_amount(quota: ResourceQuota, name: str) -> int | None:
    """Return the free amount of a quota, or the whole amount if the used amount is not known."""
    allowed = quantity.read_quantity_or_none(quota.spec.hard.get(name))
    used = quantity.read_quantity_or_none(quota.status.used.get(name))
    return None if allowed is None else allowed.value() - (0 if used is None else used.value())


def quotas_in_use(subject: Subject) -> Iterator[str]:
    """Yield a sentence for each ResourceQuota that allows a new workload, but has too little free now. Only
    ResourceQuotas in files have used amounts. A live view does not have them, because they change too often.
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
    wanted = _amounts_as_text({resource: own.amount for resource, (own, _) in both.items()})
    most = _amounts_as_text({resource: limit.milli_value() for resource, (_, limit) in both.items()})
    message = f"{_VERBS[side, request.pods == 1].format(request.pods)} {wanted}{but} {most}"
    yield AMOUNTS.problem(at, f"{message}, so the API server refuses {refused}", f"ask for less, or {raised}")


def _amounts_as_text(amounts: Amounts) -> str:
    return " and ".join(format_thousandths_with_resource_name(name, milli) for name, milli in amounts.items())


class _TemplateAmounts(NamedTuple):
    """The amounts of the containers of a template, and of one pod, as quotas and LimitRanges count them."""

    podset: PodSet
    template: PodTemplate
    containers: Items[RequestsOfContainer]
    pod: Mapping[str, Amounts]


def _amounts_of_templates(subject: Subject) -> Items[_TemplateAmounts]:
    """Return the amounts of all templates; call it through `Subject.once`."""
    ranges, located = limits_of_namespace(subject.cluster_view()), subject.once(located_templates)
    return located.of([_amounts_of_template(podset, template, ranges) for podset, template in located])


def _amounts_of_template(podset: PodSet, template: PodTemplate, ranges: NamespaceLimits) -> _TemplateAmounts:
    containers = requests_of_created_containers(template.spec, ranges)
    limits = [RequestsOfContainer(each.container, each.limits, each.limits) for each in containers]
    pod = {
        "request": quota_requests_of_pod(template.spec, containers, {}),
        "limit": quota_requests_of_pod(template.spec, limits, {}),
    }
    return _TemplateAmounts(podset, template, containers, pod)


def _amounts_of_pods(subject: Subject) -> Mapping[str, _SimultaneousRequest]:
    """Return the amounts of all pods that run at the same time, as quotas count them. The keys are names in a quota,
    and the amounts are in thousandths.
    """
    of_pods = list[tuple[PodSet, Mapping[str, int]]]()
    for each in subject.once(_amounts_of_templates):
        amounts = {
            name: each.pod[side][resource] for name, (side, resource) in _COUNTED.items() if resource in each.pod[side]
        }
        of_pods.append((each.podset, {**dict.fromkeys(_OF_PODS, 1000), **amounts}))
    return _simultaneous_requests(of_pods, subject)


def _check_unset_amounts(quota: ResourceQuota, quota_text: str, subject: Subject) -> Iterator[Problem]:
    """Yield containers that do not set an amount that a quota of the namespace counts."""
    view, required = subject.cluster_view(), [name for name in _REQUIRED if name in quota.spec.hard]
    if not required or not view.is_whole(LimitRange.gvk) or subject.group_kind in _COMPLETED:
        return
    for podset, template, containers, _ in subject.once(_amounts_of_templates):
        if podset.partial is not None or podset.pods == 0 or template.spec.resources:
            continue
        for listed in containers:
            sides = {"request": listed.requests, "limit": listed.limits}
            name = next((each for each in required if _REQUIRED[each][1] not in sides[_REQUIRED[each][0]]), None)
            if name is not None:
                side, resource = _REQUIRED[name]
                message = f"sets no {side} of {resource}, but ResourceQuota {quota_text} of the namespace counts {name}"
                fix = f"set a {side} of {resource}"
                at = podset.locate(listed.container.at)
                yield UNSET_AMOUNT.problem(at, f"{message}, so the API server refuses the pods", fix)
                break


def validate_limit_ranges(subject: Subject) -> Iterator[Problem]:
    """Yield amounts of pods with devices that the LimitRanges of the namespace forbid. Jobs that Kueue manages are
    skipped, because a rule about Kueue reports them: Kueue does not admit a job with a forbidden amount.
    """
    view = subject.cluster_view()
    if not limits_of_namespace(view).has_bounds or not subject.once(read_device_workload).device_pods:
        return
    if not (subject.once(is_managed_by_kueue) and view.has_any(LOCAL_QUEUE, view.namespace)):
        yield from problems_of_limit_ranges(subject)


def problems_of_limit_ranges(subject: Subject) -> Iterator[Problem]:
    """Yield amounts of pods that the LimitRanges of the namespace forbid, also for pods without devices."""
    view = subject.cluster_view()
    ranges = limits_of_namespace(view)
    if not ranges.has_bounds:
        return
    is_whole = view.is_whole(LimitRange.gvk) and subject.group_kind not in _COMPLETED
    for amounts in subject.once(_amounts_of_templates):
        if amounts.podset.pods != 0:
            knows_all = is_whole and amounts.podset.partial is None
            yield from without_repeated_problems(_check_limit_ranges(amounts, ranges, is_whole=knows_all), subject)


def _check_limit_ranges(of: _TemplateAmounts, ranges: NamespaceLimits, *, is_whole: bool) -> Iterator[Problem]:
    podset, template, containers, sides = of
    for total in (sides["limit"], sides["request"]):
        outside = next(iter(find_amounts_out_of_range(containers, total, ranges)), None)
        if outside is None:
            continue
        name = outside.resource
        value = format_thousandths_with_resource_name(name, outside.value)
        bound = format_thousandths_with_resource_name(name, outside.bound)
        side, allowed = ("more", "most") if outside.is_above else ("less", "least")
        message = f"asks for {value}, {side} than the {bound} that a LimitRange of the namespace allows"
        fix = f"request at {allowed} {bound}"
        yield LIMIT_RANGE.problem(podset.locate(outside.path), f"{message}, so the API server refuses the pods", fix)
        return
    bounds = (("limit", "most", ranges.most["Pod"]), ("request", "least", ranges.least["Pod"]))
    for side, allowed, amounts in bounds if is_whole else ():
        unset = next((each for each in amounts if each not in sides[side]), None)
        if unset is not None:
            bound = format_thousandths_with_resource_name(unset, amounts[unset])
            message = (
                f"sets no {side} of {unset}, but a LimitRange of the namespace wants at {allowed} {bound} for a pod"
            )
            fix = f"set a {side} of {unset} for each container"
            at = podset.locate(template.spec.at)
            yield LIMIT_RANGE.problem(at, f"{message}, so the API server refuses the pods", fix)
            return


_QUOTAS: Final = frozenset((("", "ResourceQuota"),))
_KUEUE: Final = (*QUEUES, CONFIGURATIONS, KUEUE.deployment_interest, NAMESPACES)
"""The objects that show whether Kueue manages a job, and its ClusterQueue."""
_LIMIT_RANGES: Final = frozenset((("", "LimitRange"),))
CHECKS: Final = (
    Check(
        group="namespace-quota",
        run=validate_namespace_quota,
        kinds=PLACED,
        lookups=(*QUOTA_LOOKUPS, *LIMIT_RANGE_LOOKUPS, *_KUEUE),
        of_made_objects=False,
    ),
    Check(
        group="namespace-quota",
        run=validate_limit_ranges,
        kinds=PLACED,
        lookups=(*LIMIT_RANGE_LOOKUPS, *_KUEUE),
        of_made_objects=False,
    ),
    Check(group="gpu-quota", run=check_portable_gpu_in_quota, kinds=_QUOTAS),
    Check(group="gpu-quota", run=check_portable_gpu_in_limit_range, kinds=_LIMIT_RANGES),
)
