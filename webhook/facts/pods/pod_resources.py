"""Validates resources of containers, of a pod as a whole and of its overhead, as Kubernetes does.

Functions have the names of Kubernetes' functions. Only the first rule that an amount breaks is reported. Any
qualified name with `kubernetes.io/` is accepted. An amount or a name with `$` or `{{` is a placeholder, and is not
validated. The resources of a pod as a whole are compared with the larger of two sums: containers and sidecars, or one
init container and the sidecars that start before this init container.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go, validatePodResourceConsistency for a pod as a
whole, after the defaults of pkg/apis/core/v1/defaults.go; the API server applies defaultPodRequests and
defaultHugePagePodLimits to pods and not to templates. k8s.io/component-helpers v0.36 resource/helpers.go
AggregateContainerRequests for the sums.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import qualified_name_errors, qualified_name_fault
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.quantity import example_quantities, nearest_quantity
from webhook.deadline import Deadline
from webhook.facts.pods import amounts
from webhook.facts.pods.amounts import HUGE, STANDARD, ResourceName
from webhook.facts.resource_units import format_amount_in_kueue_units
from webhook.rules.problem import Problem
from webhook.rules.rule import BY_POD_VALIDATION, Rule, RuleGroup
from webhook.text.caches import cache_for_short_texts
from webhook.text.wording import did_you_mean
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodSpec, Resources
from webhook.typed.view import ReadingContext
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_non_text

POD_RESOURCES: Final = RuleGroup(
    "pod-resources",
    refused_by=BY_POD_VALIDATION,
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""Rules of Kubernetes for the resources of pods, for kinds with templates that the API server does not check."""
RESOURCE_NAME: Final = POD_RESOURCES.rule(
    "pod-resources/resource-name",
    title="The resource name of the device is invalid",
    why="A resource name is a domain, one slash and a name. The API server refuses pods with other names.",
    function="validateContainerResourceName",
)
UNKNOWN_RESOURCE: Final = POD_RESOURCES.rule(
    "pod-resources/unknown-resource",
    title="Kubernetes does not know this resource",
    why=(
        "Only cpu, memory, ephemeral-storage and hugepages have names without a domain. A GPU has the name of its "
        "device plugin, such as nvidia.com/gpu."
    ),
    function="validateContainerResourceName",
    issues=(
        "https://github.com/flyteorg/flyte/issues/180",
        "https://github.com/flyteorg/flyte/issues/1452",
    ),
    yields_to=(
        "gpu-portable/number",
        "gpu-portable/all",
        "gpu-portable/equal",
        "gpu-portable/contradiction",
        "gpu-portable/whole-number",
        "gpu-portable/untranslated",
    ),
)
RESOURCE_CASE: Final = POD_RESOURCES.rule(
    "pod-resources/resource-case",
    title="The resource name has capital letters",
    why="Resource names are case-sensitive, so no node has `CPU`.",
    function="validateContainerResourceName",
)
PAGE_SIZE: Final = POD_RESOURCES.rule(
    "pod-resources/page-size",
    title="The hugepages resource does not name a page size",
    why="The page size is a part of the name, as in hugepages-2Mi. The API server refuses the pod without a page size.",
    function="validateResourceQuantityHugePageValue",
)
QUANTITY: Final = POD_RESOURCES.rule(
    "pod-resources/quantity",
    title="The amount is not a quantity",
    why="The API server cannot read the object, and refuses it before all other checks.",
    source="k8s.io/apimachinery v0.36 pkg/api/resource/quantity.go",
    function="ParseQuantity",
)
NOT_NEGATIVE: Final = POD_RESOURCES.rule(
    "pod-resources/not-negative",
    title="The amount is negative",
    why="The API server refuses negative amounts.",
    function="ValidateResourceQuantityValue",
)
WHOLE_NUMBER: Final = POD_RESOURCES.rule(
    "pod-resources/whole-number",
    title="The number of devices is not a whole number",
    why="A device plugin allocates whole devices. Parts of a GPU, such as MIG slices, have their own resource names.",
    function="ValidateResourceQuantityValue",
)
WHOLE_PAGES: Final = POD_RESOURCES.rule(
    "pod-resources/whole-pages",
    title="The amount of hugepages is not a multiple of the page size",
    why="A node gives only whole pages, so the amount must be a multiple of the page size.",
    function="validateResourceQuantityHugePageValue",
)
LIMIT_REQUIRED: Final = POD_RESOURCES.rule(
    "pod-resources/limit-required",
    title="The device or hugepages have a request but no limit",
    why=(
        "Kubernetes does not let containers share these resources, so request and limit must be equal. With only a "
        "limit, Kubernetes sets the request to the same amount."
    ),
    function="ValidateContainerResourceRequirements",
    issues=("https://github.com/kubeflow/mpi-operator/issues/25",),
)
LIMIT_LEFT_TO_AUTOPILOT: Final = POD_RESOURCES.rule(
    "pod-resources/limit-left-to-autopilot",
    title="The device has no limit, and only GKE Autopilot adds the limit",
    why=(
        "GKE Autopilot sets missing limits to the requests before the API server checks a pod. In all other clusters "
        "the API server refuses the pods."
    ),
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-resource-requests",
    level="advice",
)
REQUEST_EQUALS_LIMIT: Final = POD_RESOURCES.rule(
    "pod-resources/request-equals-limit",
    title="The request of the device or hugepages differs from the limit",
    why=(
        "Kubernetes does not let containers share these resources, so request and limit must be equal. With only a "
        "limit, Kubernetes sets the request to the same amount."
    ),
    function="ValidateContainerResourceRequirements",
    issues=("https://github.com/volcano-sh/kthena/issues/576",),
)
REQUEST_ABOVE_LIMIT: Final = POD_RESOURCES.rule(
    "pod-resources/request-above-limit",
    title="The request is above the limit",
    why="A container can never use more than its limit, so the API server refuses the request.",
    function="ValidateContainerResourceRequirements",
)
HUGEPAGES_ALONE: Final = POD_RESOURCES.rule(
    "pod-resources/hugepages-alone",
    title="Hugepages are requested without cpu or memory",
    why="Every container also uses CPU and ordinary memory, so the API server refuses hugepages alone.",
    function="ValidateContainerResourceRequirements",
)
EPHEMERAL_CONTAINER: Final = POD_RESOURCES.rule(
    "pod-resources/ephemeral-container",
    title="An ephemeral container sets resources",
    why="An ephemeral container joins a running pod and uses the resources that the pod already has.",
    function="validateEphemeralContainers",
)
POD_LEVEL_NAME: Final = POD_RESOURCES.rule(
    "pod-resources/pod-level-name",
    title="The resource cannot be set for the pod as a whole",
    why="Kubernetes allocates devices to containers, not to a pod as a whole.",
    function="validatePodResources",
)
OVERHEAD_WITHOUT_CLASS: Final = POD_RESOURCES.rule(
    "pod-resources/overhead-without-class",
    title="The pod sets overhead without a RuntimeClass",
    why="Only a RuntimeClass may set the overhead. The API server refuses an overhead without a RuntimeClass.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/runtimeclass/admission.go",
    function="validateOverhead",
)
POD_LEVEL_WINDOWS: Final = POD_RESOURCES.rule(
    "pod-resources/pod-level-windows",
    title="A Windows pod sets resources for the pod as a whole",
    why="Resources for the pod as a whole need Linux control groups.",
    function="validateWindows",
)
POD_LEVEL_SUM: Final = POD_RESOURCES.rule(
    "pod-resources/pod-level-sum",
    title="The containers request more than the pod as a whole",
    why="The pod must have at least as much as its containers together request.",
    function="validatePodResourceConsistency",
)
ABOVE_POD_LEVEL: Final = POD_RESOURCES.rule(
    "pod-resources/above-pod-level",
    title="The container's limit is above the limit of the pod as a whole",
    why="The container can never use more than the limit of its pod.",
    function="validatePodResourceConsistency",
)
Part: TypeAlias = Literal["containers", "initContainers", "ephemeralContainers", "pod", "overhead"]
_UNSET: Final = object()
_OF_GKE: Final = "cloud.google.com/"
_OF_PODMAN: Final = re.compile(r"[a-z0-9.-]{1,253}/[\w.-]{1,63}=\S{1,253}")
"""Matches a device of CDI, such as `nvidia.com/gpu=all`, and `podman.io/device=/dev/vfio` (podman-kube-play(1))."""
Side: TypeAlias = Literal["limits", "requests"]
SIDES: Final[tuple[Side, ...]] = ("limits", "requests")


class ResourcesOfPart(NamedTuple):
    """The resources of a container or of the pod as a whole, or the overhead of the pod. An overhead is in `limits`,
    because the rules for limits apply to it.
    """

    part: Part
    path: FieldPath
    limits: Mapping[str, JSON]
    requests: Mapping[str, JSON]
    holder: Container | PodSpec | None = None

    @property
    def is_of_sidecar(self) -> bool:
        return self.holder is not None and self.holder.restart_policy == "Always"


def resources_in_pod(pod: PodSpec) -> Items[ResourcesOfPart]:
    """Return the resources of all containers, of the pod as a whole, and the overhead, in a PodSpec."""
    containers = pod.containers
    lists: list[tuple[Part, Items[Container]]] = [("containers", containers)]
    if pod.has("initContainers"):
        lists.append(("initContainers", pod.init_containers))
    if pod.has("ephemeralContainers"):
        lists.append(("ephemeralContainers", pod.ephemeral_containers))
    listed = [
        _resources_of_part(part, container)
        for part, holders in lists
        for container in holders
        if container.json.get("resources") and container.resources.json
    ]
    if pod.has("resources") and pod.resources:  # a pod without containers gets a container with these resources
        listed.append(_resources_of_part("pod" if containers else "containers", pod))
    if pod.has("overhead") and pod.overhead:
        listed.append(ResourcesOfPart("overhead", pod.path("overhead"), pod.overhead, {}))
    return containers.of(listed)


def resources_in_json_spec(spec: Mapping[str, JSON], deadline: Deadline) -> Items[ResourcesOfPart]:
    """Return the result of `resources_in_pod` for a PodSpec in JSON."""
    return resources_in_pod(PodSpec.of(spec, ("spec",), ReadingContext(deadline)))


def _resources_of_part(part: Part, holder: Container | PodSpec) -> ResourcesOfPart:
    resources = holder.resources
    return ResourcesOfPart(part, resources.at, resources.written_limits, resources.written_requests, holder)


def without_devices_of_podman(place: ResourcesOfPart) -> ResourcesOfPart:
    """Return the resources without the devices that only `podman kube play` reads. An API server refuses the names of
    such devices, so a file with such a name is for Podman.
    """
    if not any("=" in name for name in (*place.limits, *place.requests)):
        return place
    limits, requests = (
        {name: value for name, value in listed.items() if not _OF_PODMAN.fullmatch(name)}
        for listed in (place.limits, place.requests)
    )
    return place._replace(limits=limits, requests=requests)


def may_be_for_autopilot(pod: PodSpec) -> bool:
    """Return whether a template selects nodes of GKE. There, Autopilot's webhook may set limits in the pods."""
    return any(key.startswith(_OF_GKE) for key in pod.node_selector)


def validate_resource_requirements(
    place: ResourcesOfPart, *, is_completed: bool = False, has_default: Callable[[str], bool] = lambda _: False
) -> Iterator[Problem]:
    """Yield the problems of ValidateContainerResourceRequirements, validatePodResources and overhead.

    `is_completed`: whether a webhook may set the limits that Kubernetes requires. `has_default`: whether a LimitRange
    sets the limit of a resource before the API server checks the pod. All unknown names together make one problem,
    because fields with a wrong indentation also look like unknown names.
    """
    is_pod = place.part == "pod"
    unknown: list[Problem] = []
    for name, value in place.limits.items():
        broken = _first_broken_rule(name, value, is_pod=is_pod)
        if broken:
            side = () if place.part == "overhead" else ("limits",)
            problem = broken.problem_at((*place.path, *side, name), value)
            if broken.rule is UNKNOWN_RESOURCE:
                unknown.append(problem)
            else:
                yield problem
    for name, value in place.requests.items():
        if place.limits.get(name, _UNSET) != value:
            broken = _first_broken_rule(name, value, is_pod=is_pod) or _rule_broken_by_request_and_limit(
                place, name, value
            )
            if broken and broken.rule is LIMIT_REQUIRED and place.part != "pod" and has_default(name):
                continue
            if broken and broken.rule is LIMIT_REQUIRED and is_completed:
                message = "has no limit, and only GKE Autopilot adds the limit, so other clusters refuse the pod"
                broken = replace(broken, rule=LIMIT_LEFT_TO_AUTOPILOT, message=message)
            if broken and broken.rule is UNKNOWN_RESOURCE:
                unknown.append(broken.problem_at((*place.path, "requests", name), value))
            elif broken:
                yield broken.problem_at((*place.path, "requests", name), value)
    if unknown[1:]:
        first, *others = unknown
        yield replace(first, message=f"must be {_KNOWN_RESOURCE}", also=tuple(each.path for each in others))
    else:
        yield from unknown


_KNOWN_RESOURCE: Final = "a resource of Kubernetes such as memory, or begin with the domain of a vendor"


class BrokenRule(Struct, frozen=True):
    """A rule that an amount breaks. `is_shown`: the message begins with the amount."""

    rule: Rule
    message: str
    fix: str
    is_shown: bool = True

    def problem_at(self, path: FieldPath, value: JSON) -> Problem:
        return self.rule.problem(
            path, self.message, self.fix, shown=amounts.amount_for_message(value) if self.is_shown else ""
        )


def _first_broken_rule(name: str, value: JSON, *, is_pod: bool) -> BrokenRule | None:
    """Return the first rule that an amount breaks by itself; None for a valid amount."""
    text = amounts.amount_as_string(value)
    return (_broken_pod_level_rule(name, text) if is_pod else None) or _broken_rule_of_amount(name, text)


def _broken_pod_level_rule(name: str, text: str) -> BrokenRule | None:
    is_written = not (is_placeholder(name) or is_placeholder(text))
    if is_written and name not in ("cpu", "memory") and amounts.parse_resource_name(name).page is None:
        rule = f"`{name}` cannot be requested for the pod as a whole, only for its containers"
        return BrokenRule(POD_LEVEL_NAME, rule, f"request `{name}` in a container", is_shown=False)
    return None


@cache_for_short_texts(1 << 20)
def _broken_rule_of_amount(name: str, text: str) -> BrokenRule | None:
    if is_placeholder(name) or is_placeholder_for_non_text(text):
        return None
    known = amounts.parse_resource_name(name)
    return validate_resource_name(known) or validate_resource_quantity_value(known, text)


def validate_resource_name(name: ResourceName) -> BrokenRule | None:
    """Return the rule of validateContainerResourceName that a name breaks; None for a valid name."""
    text = name.text
    full_name = "write a full name such as nvidia.com/gpu"
    if not name.is_qualified and "/" in text:
        message = f"`{text}` cannot be the name of a resource because {_fault_of_resource_name(text)}"
        return BrokenRule(RESOURCE_NAME, message, full_name, is_shown=False)
    if text.lower() in STANDARD and text not in STANDARD:
        return BrokenRule(RESOURCE_CASE, f"`{text}` must be in lower case", f"write `{text.lower()}`", is_shown=False)
    if not name.is_qualified or ("/" not in text and text not in STANDARD and name.page is None):
        message = f"`{text}` must be {_KNOWN_RESOURCE}"
        return BrokenRule(UNKNOWN_RESOURCE, message, full_name, is_shown=False)
    if name.page == 0:
        message = f"`{text}` must end with a page size in a unit of Kubernetes, such as Mi or Gi"
        return BrokenRule(PAGE_SIZE, message, "write a name such as hugepages-2Mi", is_shown=False)
    return None


def _fault_of_resource_name(name: str) -> str:
    if qualified_name_errors(name):
        return qualified_name_fault(name)
    return "it begins with `requests.`" if name.startswith("requests.") else "the part before the slash is too long"


def validate_resource_quantity_value(name: ResourceName, text: str) -> BrokenRule | None:
    """Return the rule of ValidateResourceQuantityValue or validateResourceQuantityHugePageValue that an amount
    breaks.
    """
    amount = amounts.read_quantity(text)
    if amount is None:
        if name.is_extended:
            return BrokenRule(QUANTITY, "must be a whole number because it counts devices", "write a number such as 1")
        fix = did_you_mean(nearest_quantity(text), f"write a number such as {example_quantities((name.text,))}")
        return BrokenRule(QUANTITY, "must be a quantity", fix)
    if amount.sign() < 0:
        return BrokenRule(NOT_NEGATIVE, "must not be negative", "set 0 or more")
    if not amounts.is_small_enough_to_compare(amount):
        return None
    if name.is_extended and not amount.is_whole():
        return BrokenRule(
            WHOLE_NUMBER, "must be a whole number because a device cannot be divided", f"set {amount.value()}"
        )
    if name.page and name.page < amounts.LARGEST and amount.value() % name.page:
        message = "must be a multiple of the page size because a page cannot be divided"
        return BrokenRule(WHOLE_PAGES, message, f"set a multiple of {name.text.removeprefix(HUGE)}")
    return None


def _rule_broken_by_request_and_limit(place: ResourcesOfPart, name: str, value: JSON) -> BrokenRule | None:
    """Return the rule that a request breaks together with its limit. Return None for a request that breaks no rule, and
    for placeholders and invalid quantities.
    """
    text, known = amounts.amount_as_string(value), amounts.parse_resource_name(name)
    if is_placeholder(name) or is_placeholder_for_non_text(text):
        return None
    if name not in place.limits:
        if known.may_be_overcommitted:
            return None
        message = "has no limit, and Kubernetes requires a limit for an extended resource"
        return BrokenRule(LIMIT_REQUIRED, message, f"set the limit to `{text}` too", is_shown=False)
    shown = amounts.amount_as_string(place.limits[name])
    request, limit = amounts.read_quantity(text), amounts.read_quantity(shown)
    if request is None or limit is None:
        return None
    difference = request.milli_value() - limit.milli_value()
    if difference and not known.may_be_overcommitted:
        message = f"must equal the limit `{shown}` because Kubernetes does not overcommit an extended resource"
        return BrokenRule(REQUEST_EQUALS_LIMIT, message, "set only the limit, or both to the same number")
    if difference > 0:
        message = f"must not be above the limit `{shown}`"
        return BrokenRule(REQUEST_ABOVE_LIMIT, message, "lower the request or raise the limit")
    return None


def validate_amounts(resources: Resources) -> Iterator[Problem]:
    """Yield the problems of each single amount. Amounts are not compared, because a controller may add amounts."""
    for side, listed in (("limits", resources.written_limits), ("requests", resources.written_requests)):
        for name, value in listed.items():
            if broken := _first_broken_rule(name, value, is_pod=False):
                yield broken.problem_at((*resources.at, side, name), value)


def validate_hugepages_are_not_alone(place: ResourcesOfPart) -> Iterator[Problem]:
    """Yield the problem of hugepages without cpu or memory (end of ValidateContainerResourceRequirements)."""
    limits, requests = place.limits, place.requests
    if "cpu" in limits or "memory" in limits or "cpu" in requests or "memory" in requests:
        return
    if [name for name in (*limits, *requests) if name.startswith(HUGE)]:  # faster than any()
        message = "must not request hugepages alone because Kubernetes refuses hugepages without cpu or memory"
        yield HUGEPAGES_ALONE.problem(place.path, message, "set a memory limit too")


def validate_no_ephemeral_resources(place: ResourcesOfPart) -> Iterator[Problem]:
    """Yield the problem of an ephemeral container with limits or requests."""
    if place.limits or place.requests:
        message = "must not be set because an ephemeral container uses the resources that its pod already has"
        yield EPHEMERAL_CONTAINER.problem(place.path, message, "remove resources")


def validate_overhead(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problem of an overhead without a RuntimeClass (plugin/pkg/admission/runtimeclass/admission.go)."""
    if pod.overhead and not pod.has("runtimeClassName"):
        message = "must not be set without runtimeClassName because only a RuntimeClass may set it"
        yield OVERHEAD_WITHOUT_CLASS.problem(("spec", "overhead"), message, "remove the overhead")


def validate_pod_resource_consistency(places: Items[ResourcesOfPart]) -> Iterator[Problem]:
    """Compare the sums of the containers, and each limit of a container, with the resources of the pod as a whole."""
    pod = next((place for place in places if place.part == "pod"), None)
    if pod is None:
        return
    containers = places.of([place for place in places if place.part in ("containers", "initContainers")])
    names = {name for name in (*pod.limits, *pod.requests) if name in ("cpu", "memory") or name.startswith(HUGE)}
    sums = {side: requested_sums(containers, names, side) for side in SIDES}
    for name in dict.fromkeys((*pod.requests, *pod.limits)):
        if name in names:
            yield from _validate_sums(pod, name, sums)
    for place in containers:
        if place.part == "containers":
            yield from _validate_limits(pod, place)


def _validate_sums(pod: ResourcesOfPart, name: str, sums: Mapping[Side, Mapping[str, int]]) -> Iterator[Problem]:
    """Report an amount of the pod as a whole that is less than the sum of the requests of its containers. For
    hugepages, also compare the limits.
    """
    limit, request = _amount_in_thousandths(pod.limits, name), _amount_in_thousandths(pod.requests, name)
    is_huge = name.startswith(HUGE)
    pairs: list[tuple[Side, int | None, Side]] = [("requests", request, "requests")]
    if request is None and not is_huge:
        pairs.append(("limits", limit, "requests"))
    if is_huge:
        pairs.append(("limits", limit, "limits"))
    for at, has, side in pairs:
        if has is not None and sums[side].get(name, 0) > has:
            total = _format_thousandths(name, sums[side][name])
            message = f"is less than the {side} of the containers together ({total}), so the containers do not fit"
            fix = f"raise this amount, or lower the {side} of the containers"
            given = pod.requests if at == "requests" else pod.limits
            yield POD_LEVEL_SUM.problem(("spec", "resources", at, name), message, fix, given[name])


def _format_thousandths(name: str, milli: int) -> str:
    return format_amount_in_kueue_units(name, milli if name == "cpu" else -(-milli // 1000))


def _validate_limits(pod: ResourcesOfPart, place: ResourcesOfPart) -> Iterator[Problem]:
    for name in place.limits:
        limit = _amount_in_thousandths(pod.limits, name)
        if limit is not None and (_amount_in_thousandths(place.limits, name) or 0) > limit:
            message = (
                f"must not be above the limit of the pod as a whole, which is {_format_thousandths(name, limit)}, "
                "because a container cannot use more than its pod"
            )
            yield ABOVE_POD_LEVEL.problem(
                (*place.path, "limits", name),
                message,
                "lower this limit, or raise the limit of the pod as a whole",
                place.limits[name],
            )


def requested_sums(containers: Iterable[ResourcesOfPart], names: Collection[str], side: Side) -> Mapping[str, int]:
    """Return the sums of the requests or limits of containers, in thousandths, by the name of the resource."""
    running: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    peak: dict[str, int] = {}
    for place in containers:
        for name in {**place.limits, **place.requests}:
            amount = _limit_or_request(place, name, side) if name in names else 0
            if place.part == "containers":
                running[name] += amount
                continue
            peak[name] = max(peak.get(name, 0), sidecars[name] + amount)
            sidecars[name] += amount if place.is_of_sidecar else 0
    running.update(sidecars)
    return {name: max(running[name], peak.get(name, 0)) for name in names}


def sum_requests_of_containers(
    containers: Sequence[ResourcesOfPart], names: Collection[str], side: Side, deadline: Deadline
) -> Mapping[str, int]:
    """Return the result of `requested_sums`, charged to a deadline."""
    return requested_sums(Items(containers, deadline), names, side)


def _limit_or_request(place: ResourcesOfPart, name: str, side: Side) -> int:
    """Return the limit of a container, or the request; a request that is not set equals the limit."""
    amount = _amount_in_thousandths(place.requests, name) if side == "requests" else None
    return (_amount_in_thousandths(place.limits, name) or 0) if amount is None else amount


def _amount_in_thousandths(given: Mapping[str, JSON], name: str) -> int | None:
    """Return an amount in thousandths; None for an amount that is not set, invalid or negative."""
    value = given.get(name)
    amount = (
        None if value is None or isinstance(value, bool) else amounts.read_quantity(amounts.amount_as_string(value))
    )
    return None if amount is None or amount.sign() < 0 else amount.milli_value()


def check_no_pod_resources_on_windows(pod: PodSpec) -> Iterator[Problem]:
    """Report a Windows pod with resources for the pod as a whole, because validateWindows refuses such a pod."""
    if pod.resources and pod.os.name == "windows":
        message = "must not be set because Windows pods do not support resources for the pod as a whole"
        yield POD_LEVEL_WINDOWS.problem(("spec", "resources"), message, "request the resources in the containers")
