"""LimitRanges: workloads with amounts that the LimitRanges of their namespace forbid, and LimitRanges that name the
resource `gpu` or give devices to every container.

The API server refuses `gpu`, because a name without a domain must be a resource of Kubernetes. A pod with a forbidden
amount is refused when its controller creates the pod. By then the workload is accepted, and a queue may have admitted
the workload. A container without an amount is reported only if all LimitRanges of the namespace are known, because a
LimitRange may set the amount.

Source: k8s.io/kubernetes v1.36 plugin/pkg/admission/limitranger/admission.go, and
pkg/apis/core/validation/validation.go validateLimitRangeResourceName.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.cluster.controllers import KUEUE
from webhook.facts.gpu.device_pods import (
    located_templates,
    read_device_workload,
    without_repeated_problems,
)
from webhook.facts.gpu.devices import COUNTED, NAME_WORK, device_of_resource_name
from webhook.facts.kueue.configuration import may_concern_kueue
from webhook.facts.kueue.objects import CONFIGURATIONS, LOCAL_QUEUE, QUEUES
from webhook.facts.pods.pod_requests import (
    Amounts,
    NamespaceLimits,
    RequestsOfContainer,
    amounts_in_thousandths,
    find_amounts_out_of_range,
    format_thousandths_with_resource_name,
    limits_of_namespace,
    quota_requests_of_pod,
    requests_of_created_containers,
)
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.cluster_objects import LimitRange
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodTemplate
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
RESOURCE_NAME: Final = GPU_QUOTA.rule(
    "gpu-quota/resource-name",
    title="A ResourceQuota or LimitRange names `gpu`, which no pod can request",
    why=(
        "The API server refuses the name `gpu`. Pods request `nvidia.com/gpu` or another vendor's resource, and the "
        "ResourceQuota or LimitRange must name the same resource."
    ),
    function="ValidateResourceQuotaResourceName",
)
DEFAULT_DEVICES: Final = GPU_QUOTA.rule(
    "gpu-quota/default-devices",
    title="A LimitRange gives devices to every container of its namespace",
    why=(
        "Without a default, `max` is the default limit. A container that needs no device, such as a database, then "
        "takes devices from jobs, or waits for a node with devices."
    ),
    refused_by="",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/v1/defaults.go",
    function="SetDefaults_LimitRangeItem",
    fails="silent",
)
LIMIT_RANGE: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/limit-range",
    title="A LimitRange forbids an amount of the pods",
    why="The workload is accepted, but the API server refuses each pod, so no pod is created.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/limitranger/admission.go",
    function="PodValidateLimitFunc",
)
PORTABLE_NAME: Final = "gpu"
SETS_AMOUNTS: Final = frozenset((("serving.kserve.io", "InferenceService"), ("serving.knative.dev", "Service")))
"""Kinds with controllers that set amounts if the object omits the amounts."""
KUEUE_LOOKUPS: Final = (*QUEUES, CONFIGURATIONS, KUEUE.deployment_interest, NAMESPACES)
"""The objects that show whether Kueue manages a job, and in which ClusterQueue the job waits."""


def check_portable_gpu_in_limit_range(subject: Subject) -> Iterator[Problem]:
    """Report the portable name `gpu` in a LimitRange, because this name limits no device."""
    for item in subject.typed(LimitRange).spec.limits:
        for field in item.fields_with(PORTABLE_NAME):
            yield resource_name_problem(item.path(field, PORTABLE_NAME), PORTABLE_NAME, "nvidia.com/gpu")


def check_default_devices(subject: Subject) -> Iterator[Problem]:
    """Report devices with a default equal to `max` and without `min`: every container without a limit gets `max`
    devices. The API server sets an omitted default to `max`.
    """
    for item in subject.typed(LimitRange).spec.limits:
        if item.type != "Container":
            continue
        default, least = amounts_in_thousandths(item.default), amounts_in_thousandths(item.min)
        for name, most in amounts_in_thousandths(item.max).items():
            subject.deadline.spend(NAME_WORK)
            is_device = device_of_resource_name(name).kind in COUNTED
            if is_device and most and default.get(name, most) == most and not least.get(name):
                count = format_thousandths_with_resource_name(name, most)
                message = f"is also the default, so a container of the namespace without a limit gets {count}"
                path = item.path("max", name)
                yield DEFAULT_DEVICES.problem(path, message, f"set `{name}` to 0 in `default`, beside `max`")


def resource_name_problem(path: FieldPath, name: str, example: str) -> Problem:
    """Return the problem of a name that is no resource. `example` is a resource for the fix."""
    message = "is not a resource of Kubernetes, so the API server refuses the object and no GPU is counted"
    return RESOURCE_NAME.problem(path, message, f"name the resource of a vendor, such as {example}", shown=f"`{name}`")


def is_managed_by_kueue(subject: Subject) -> bool:
    """Return whether Kueue decides when the pods of an object are created; call it through `Subject.once`."""
    if not subject.once(may_concern_kueue):
        return False
    from webhook.facts.kueue.managed import how_kueue_manages

    return not subject.once(how_kueue_manages).why_not


class TemplateAmounts(NamedTuple):
    """The amounts of the containers of a template, and of one pod, as quotas and LimitRanges count them."""

    podset: PodSet
    template: PodTemplate
    containers: Items[RequestsOfContainer]
    pod: Mapping[str, Amounts]


def amounts_of_templates(subject: Subject) -> Items[TemplateAmounts]:
    """Return the amounts of all templates; call it through `Subject.once`."""
    ranges, located = limits_of_namespace(subject.cluster_view()), subject.once(located_templates)
    return located.of([_amounts_of_template(podset, template, ranges) for podset, template in located])


def _amounts_of_template(podset: PodSet, template: PodTemplate, ranges: NamespaceLimits) -> TemplateAmounts:
    containers = requests_of_created_containers(template.spec, ranges)
    limits = [RequestsOfContainer(each.container, each.limits, each.limits) for each in containers]
    pod = {
        "request": quota_requests_of_pod(template.spec, containers, {}),
        "limit": quota_requests_of_pod(template.spec, limits, {}),
    }
    return TemplateAmounts(podset, template, containers, pod)


def validate_limit_ranges(subject: Subject) -> Iterator[Problem]:
    """Yield amounts of pods with devices that the LimitRanges of the namespace forbid. Jobs that Kueue manages are
    skipped, because a rule about Kueue reports these jobs: Kueue does not admit a job with a forbidden amount.
    """
    view = subject.cluster_view()
    if not limits_of_namespace(view).forbids_amounts or not subject.once(read_device_workload).device_pods:
        return
    if not (subject.once(is_managed_by_kueue) and view.has_any(LOCAL_QUEUE, view.namespace)):
        yield from problems_of_limit_ranges(subject)


def problems_of_limit_ranges(subject: Subject) -> Iterator[Problem]:
    """Yield amounts of pods that the LimitRanges of the namespace forbid, also for pods without devices."""
    view = subject.cluster_view()
    ranges = limits_of_namespace(view)
    if not ranges.forbids_amounts:
        return
    is_whole = view.is_whole(LimitRange.gvk) and subject.group_kind not in SETS_AMOUNTS
    for amounts in subject.once(amounts_of_templates):
        if amounts.podset.pods != 0:
            knows_all = is_whole and amounts.podset.partial is None
            problems = _check_limit_ranges(amounts, ranges, subject, is_whole=knows_all)
            yield from without_repeated_problems(problems, subject)


def _check_limit_ranges(
    of: TemplateAmounts, ranges: NamespaceLimits, subject: Subject, *, is_whole: bool
) -> Iterator[Problem]:
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
    above = _request_above_default_limit(containers) if subject.group_kind not in SETS_AMOUNTS else None
    if above is not None:
        container, message, fix = above
        yield LIMIT_RANGE.problem(podset.locate(container.at), f"{message}, so the API server refuses the pods", fix)
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


def _request_above_default_limit(containers: Items[RequestsOfContainer]) -> tuple[Container, str, str] | None:
    """Return the first container that requests more than the limit that a LimitRange sets, with the message and the fix
    (ValidateResourceRequirements).
    """
    for listed in containers:
        resources = listed.container.resources
        for name in resources.requests:
            default = listed.limits.get(name)
            if default is None or name in resources.limits or listed.requests[name] <= default:
                continue
            value = format_thousandths_with_resource_name(name, listed.requests[name])
            bound = format_thousandths_with_resource_name(name, default)
            message = f"requests {value}, more than the limit of {bound} that a LimitRange of the namespace sets"
            return listed.container, message, f"set a limit of {name} that is at least the request"
    return None
