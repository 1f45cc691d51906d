"""The fact `portableGpu`: requests of the portable name `gpu`, and the resource that `gpu` means in the namespace.

Docker, OpenSandbox and the Kubeflow SDK write `gpu`; Kubernetes knows only the extended resources of vendors. The
fact has the written values and their meaning. The policy decides which values are translated and which are refused. A
count is a positive whole number of at most 18 digits, as a text or a number. Spaces around the count, a plus sign and
leading zeros are allowed. A value with a placeholder is not translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.apimachinery import paths, quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.cel.types import BOOL, STRING, list_of
from webhook.errors import LookupFailed
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.gpu.gpu_requests import WINDOWS_LOOKUPS, has_no_windows_field, path_of_windows_field
from webhook.facts.kinds import POD
from webhook.facts.subject import Fact, Subject
from webhook.facts.view import NAMESPACES
from webhook.text.caches import cache_for_short_texts
from webhook.typed.collections import Items
from webhook.typed.objects import Namespace
from webhook.typed.pods import Container, Pod, PodSpec, PodTemplate, Resources
from webhook.workloads.embedded import embedded_objects, holds_objects
from webhook.workloads.podsets import TemplateFragment, group_kind, partial_pod_templates
from webhook.workloads.resource_fields import ResourceField, resource_fields
from webhook.yamltext.placeholders import is_placeholder

NAME: Final = "gpu"
SIDES: Final = ("limits", "requests")
_COUNT: Final = re.compile(r"[+]?0*([1-9][0-9]{0,17})")
_ZERO: Final = re.compile(r"[+-]?0{1,18}")
LABEL: Final = "claimgate.dev/gpu"
DEFAULT: Final = "nvidia.com/gpu"
OWN: Final = "own"
"""The value of the label if the params name a resource for this namespace. Other values name a vendor."""
AMOUNT: Final = declare_structure(
    "PortableAmount",
    path=(STRING, 'the path of the amount below the limits and requests: `limits["nvidia.com/gpu"]`'),
    pointer=(STRING, "the same path as a JSON Pointer: `/limits/nvidia.com~1gpu`"),
    isSet=(BOOL, "whether the key exists"),
    isNull=(BOOL, "whether the key exists and is null"),
    isKept=(BOOL, "whether the update leaves the amount unchanged"),
    text=(STRING, 'the amount as the user wrote it, an empty text with its quotes; `""` for null'),
    count=(STRING, 'number of devices in plain digits; `""` if the amount is not a number'),
)
ASK: Final = declare_structure(
    "PortableAsk",
    path=(STRING, "the path of the amount that counts"),
    resources=(STRING, "the path of the limits and requests"),
    pointer=(STRING, "the same path as a JSON Pointer"),
    isPatch=(BOOL, "whether null removes an amount of the template, as in shardPatches"),
    isWindows=(BOOL, "whether the pod runs on Windows, where `gpu` gives no GPU"),
    isNull=(BOOL, "whether every limit and request of `gpu` is null"),
    outcome=(STRING, "the result if the key is removed without a replacement: `no GPU is requested`"),
    isInvalid=(BOOL, "whether the amount is neither a positive whole number nor the word `all`; false on Windows"),
    isZero=(BOOL, "whether the amount is 0, which requests nothing; false on Windows and in a patch of a template"),
    isAll=(BOOL, "whether the amount is the word `all`; false on Windows"),
    isEqual=(BOOL, "whether limit and request are equal, or only one is set, or one is `all`; true on Windows"),
    hasLimits=(BOOL, "whether there are any limits"),
    count=(
        STRING,
        'number of devices in plain digits: limit, or request; `""` if neither is a number, and on Windows',
    ),
    asked=(AMOUNT.type, "the amount that counts: the limit, or the request if there is no limit"),
    limit=(AMOUNT.type, "the limit of `gpu`"),
    request=(AMOUNT.type, "the request of `gpu`"),
    ownLimit=(AMOUNT.type, "the limit of the resource that `gpu` means, in the same place"),
    ownRequest=(AMOUNT.type, "the request of the resource that `gpu` means"),
    contradicting=(
        list_of(AMOUNT.type),
        "`ownLimit` and `ownRequest`, each only if its count differs from the count of `gpu`",
    ),
)
DEVICE: Final = declare_structure(
    "PortableDevice",
    path=(STRING, "the path of the field"),
    pointer=(STRING, "the field with the name of the device, as a JSON Pointer"),
)
MISPLACED: Final = declare_structure(
    "MisplacedGpu",
    path=(STRING, "the path of the request"),
    isEphemeral=(
        BOOL,
        "whether the request is in an ephemeral container; false for a request of the pod as a whole",
    ),
)
MISTYPED: Final = declare_structure(
    "MistypedGpu", path=(STRING, "the path of the value"), found=(STRING, "the value in short, such as `a list`")
)
PORTABLE: Final = declare_structure(
    "PortableGpu",
    resource=(STRING, 'the extended resource that `gpu` means in the namespace; `""` if nothing requests `gpu`'),
    unknownVendor=(STRING, "the value of the label `claimgate.dev/gpu` of the namespace, if no vendor has this name"),
    vendors=(list_of(STRING), "vendors that the params name"),
    paths=(list_of(STRING), "places that request `gpu`"),
    asks=(list_of(ASK.type), "limits and requests that name `gpu` and are new or have changed"),
    devices=(
        list_of(DEVICE.type),
        "fields with the name of a device that were changed to `gpu`, as in a SparkApplication",
    ),
    mistyped=(list_of(MISTYPED.type), "values of `gpu` that are neither texts nor numbers"),
    misplaced=(list_of(MISPLACED.type), "places where a Pod requests `gpu` and Kubernetes accepts no device"),
)
_WORK_OF_REQUEST: Final = 20
"""The charge for describing the requests of one place, some 30 microseconds."""
_NOTHING: Final[Mapping[str, JSON]] = {
    "resource": "",
    "unknownVendor": "",
    **{name: [] for name in ("vendors", "paths", "asks", "devices", "mistyped", "misplaced")},
}


class ResourcePlace(Struct, frozen=True):
    """The limits and requests of a container or another part of an object. In a patch of a template, null removes an
    amount of the template.
    """

    resources: Resources
    is_windows: bool = False
    is_patch: bool = False

    @property
    def path(self) -> FieldPath:
        """Return the path of the limits and requests."""
        return self.resources.at

    def amounts(self, side: str) -> Mapping[str, JSON]:
        """Return the limits or the requests, by resource."""
        return self.resources.written_limits if side == "limits" else self.resources.written_requests

    @property
    def requests_portable_gpu(self) -> bool:
        """Return whether limits or requests have `gpu`, and no value is a placeholder."""
        values = [amounts[NAME] for side in SIDES if NAME in (amounts := self.amounts(side))]
        return bool(values) and not any(isinstance(value, str) and is_placeholder(value) for value in values)

    def mistyped_gpu_values(self) -> Iterator[tuple[FieldPath, JSON]]:
        """Yield values of `gpu` that are neither texts nor numbers, with their paths."""
        for side in SIDES:
            if isinstance(value := self.amounts(side).get(NAME), dict | list | bool):
                yield (*self.path, side, NAME), value


def changed_places_requesting_gpu(subject: Subject) -> list[tuple[ResourcePlace, ResourcePlace | None]]:
    """Return the places that request `gpu` and are new or changed, each with its state before the update."""
    old = () if subject.old_object is None else _places_of_object(subject.old_object, subject)
    before = {place.path: place for place in old}
    pairs = (
        (place, before.get(place.path))
        for place in _places_of_object(subject.object, subject)
        if place.requests_portable_gpu
    )
    return [(place, old) for place, old in pairs if old is None or old.resources.differs(place.resources)]


def _places_of_object(obj: JSON, subject: Subject) -> Iterator[ResourcePlace]:
    """Yield the containers of a Pod. For another object, yield the resources outside pod templates."""
    if group_kind(obj) == POD:
        pod = PodTemplate.of(obj, (), subject.reading_context)
        yield from _places_in_template(pod, is_windows=_is_bound_to_windows(pod.spec, subject))
        return
    for path, root in _object_and_inner_objects(obj, subject):
        for field in _resource_fields_outside_templates(root, subject):
            if not field.is_device:
                yield ResourcePlace(Resources.of(field.resources, (*path, *field.path), subject.reading_context))
        # the CRD of runtime patches allows no resources in containers
        for fragment in partial_pod_templates(root, subject.table, subject.deadline, of_runtime=False):
            yield from _places_in_partial_template(fragment, path, root, subject)


def _object_and_inner_objects(obj: JSON, subject: Subject) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield an object and its embedded objects, each with its path; nothing for a deleted object."""
    if not obj:
        return
    yield (), obj
    if holds_objects(obj, subject.table):
        yield from (
            (each.path, each.object)
            for each in subject.deadline.items_with_clock_checks(embedded_objects(obj, subject.table, subject.deadline))
        )


def _resource_fields_outside_templates(root: JSON, subject: Subject) -> Items[ResourceField]:
    """Return the resource fields outside the templates of an object."""
    return Items(tuple(resource_fields(root, subject.table, subject.deadline)), subject.deadline)


def _places_in_partial_template(
    fragment: TemplateFragment, path: FieldPath, root: JSON, subject: Subject
) -> Iterator[ResourcePlace]:
    """Yield the containers of a partial template."""
    template = PodTemplate.of(fragment.template, (*path, *fragment.path), subject.reading_context)
    is_patch = fragment.of.startswith("spec.")
    into = PodTemplate.of(paths.get(root, tuple(fragment.of.split("."))) if is_patch else None)
    os = template.spec.os if "os" in template.spec.json else into.spec.os
    is_windows = os.name == "windows" or _is_bound_to_windows(template.spec, subject)
    if "os" not in template.spec.json:
        is_windows = is_windows or _is_bound_to_windows(into.spec, subject)
    yield from _places_in_template(template, is_windows=is_windows, is_patch=is_patch)


def _is_bound_to_windows(pod: PodSpec, subject: Subject) -> bool:
    return (
        not has_no_windows_field(pod)
        and path_of_windows_field(pod, subject.cluster_view().copy_without_missing_objects()) != ()
    )


def _places_in_template(template: PodTemplate, *, is_windows: bool, is_patch: bool = False) -> Iterator[ResourcePlace]:
    holders = chain[PodSpec | Container](template.spec.all_containers(), _pod_spec_if_without_containers(template.spec))
    for holder in holders:
        if holder.resources:
            yield ResourcePlace(holder.resources, is_windows, is_patch)


def _pod_spec_if_without_containers(pod: PodSpec) -> tuple[PodSpec, ...]:
    """Return the PodSpec if it has no containers. A controller then creates a container with these resources."""
    return () if pod.containers else (pod,)


def paths_changed_to_portable_gpu(subject: Subject) -> Iterator[FieldPath]:
    """Yield fields with the name of a device that were changed to `gpu`. A Pod has no such fields."""
    if group_kind(subject.object) == POD:
        return
    before = set(_paths_naming_portable_gpu(subject.old_object, subject)) if subject.old_object is not None else ()
    yield from (path for path in _paths_naming_portable_gpu(subject.object, subject) if path not in before)


def _paths_naming_portable_gpu(obj: JSON, subject: Subject) -> Iterator[FieldPath]:
    for path, root in _object_and_inner_objects(obj, subject):
        for field in _resource_fields_outside_templates(root, subject):
            if field.device == NAME:
                yield (*path, *field.path)


def misplaced_gpu_requests(subject: Subject) -> Iterator[tuple[FieldPath, bool]]:
    """Yield the paths where a Pod requests `gpu` but Kubernetes accepts no device, and whether the path is in an
    ephemeral container.
    Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go validatePodResourceName,
    allowedEphemeralContainerFields.
    """
    pod = subject.typed(Pod).spec if group_kind(subject.object) == POD else PodSpec.of(None)
    whole = (pod,) if pod.containers else ()
    holders: tuple[PodSpec | Container, ...] = (*whole, *pod.ephemeral_containers)
    for holder in holders:
        for side, amounts in (("limits", holder.resources.limits), ("requests", holder.resources.requests)):
            if NAME in amounts:
                yield holder.path("resources", side, NAME), holder is not pod


def intended_gpu_count(value: JSON) -> str:
    """Return the positive whole number of a value, in plain digits: "2" for `" +02 "`; "" for other values."""
    match = _COUNT.fullmatch(amount_as_cel_text(value).strip())
    return match[1] if match else ""


def gpu_count_in_patch(value: JSON) -> str:
    """Return the count in a patch of a template. In a patch, 0 is also a count, because 0 removes the devices of the
    template.
    """
    return intended_gpu_count(value) or ("0" if is_zero(amount_as_cel_text(value)) else "")


def is_zero(text: str) -> bool:
    """Return whether an amount is the whole number 0; the amount is a text of `amount_as_cel_text`."""
    return bool(_ZERO.fullmatch(text.strip()))


def whole_number_text(value: JSON) -> str:
    """Return the whole number that Kubernetes reads in a value: "2" for `2000m`; "" for other values."""
    try:
        amount = quantity.parse_quantity(amount_as_cel_text(value).strip())
    except ValueError:
        return ""
    return str(amount.value()) if amount.is_whole() else ""


def amount_as_cel_text(value: JSON) -> str:
    """Return an amount as CEL shows it: `2` for 2.0; "" for null."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _names_no_portable_gpu(subject: Subject) -> bool:
    """Return whether the object is a Pod that does not request `gpu`, as nearly all Pods are."""
    return subject.group_kind == POD and NAME not in subject.typed(Pod).parts.resource_names


def _compute_portable_fact(subject: Subject) -> FactResult:
    if _names_no_portable_gpu(subject):
        return FactResult(dict(_NOTHING))
    places, named, misplaced = (
        changed_places_requesting_gpu(subject),
        [*paths_changed_to_portable_gpu(subject)],
        [*misplaced_gpu_requests(subject)],
    )
    until = subject.deadline
    wrong = {place.path: [*place.mistyped_gpu_values()] for place, _ in until.charge_for_items(places)}
    if not (places or named or misplaced):
        return FactResult(dict(_NOTHING))
    resource, vendors = _resource_of_namespace(subject)
    gpu_fields, resource_fields = ([_amount_field(side, name) for side in SIDES] for name in (NAME, resource))
    at = [paths.path_as_text(place.path) for place, _ in until.charge_for_items(places)]
    rendered = [*at, *map(paths.path_as_text, until.charge_for_items(named))]
    return FactResult(
        {
            **vendors,
            "resource": resource,
            "unknownVendor": vendors["unknownVendor"] if rendered else "",
            "paths": rendered,
            "asks": [
                _request_as_json(place, where, old, gpu_fields, resource_fields)
                for where, (place, old) in until.items_with_clock_checks(zip(at, places, strict=True))
                if not wrong[place.path]
            ],
            "mistyped": [
                _mistyped_value_as_json(*each)
                for place, _ in until.charge_for_items(places)
                if not place.is_windows
                for each in wrong[place.path]
            ],
            "devices": [
                {"path": paths.path_as_text(path), "pointer": paths.json_pointer((*path, "name"))}
                for path in until.charge_for_items(named)
            ],
            "misplaced": [
                {"path": paths.path_as_text(path), "isEphemeral": is_ephemeral}
                for path, is_ephemeral in until.charge_for_items(misplaced)
            ],
        }
    )


def _mistyped_value_as_json(path: FieldPath, value: JSON) -> JSON:
    shown_as = (
        "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else f"`{str(value).lower()}`"
    )
    return {"path": paths.path_as_text(path), "found": shown_as}


def _resource_of_namespace(subject: Subject) -> tuple[str, JSON]:
    """Return the resource that `gpu` means in the namespace. The params name a resource for the namespace, else for the
    vendor in the namespace's label, else for the cluster.
    """
    settings = dict(subject.assumptions.resources)
    vendors = {key.removeprefix("vendor."): named for key, named in settings.items() if key.startswith("vendor.")}
    own, label = settings.get(f"resource.{subject.namespace}"), _gpu_label_of_namespace(subject)
    resource = own or vendors.get(label) or settings.get("resource") or DEFAULT
    is_unknown = own is None and label not in ("", OWN, *vendors)
    return resource, {"vendors": list(vendors), "unknownVendor": label if is_unknown else ""}


def _gpu_label_of_namespace(subject: Subject) -> str:
    """Return the label of the request's namespace.

    Raises:
        LookupFailed: the namespace does not exist, or is not known.
    """
    if not subject.namespace:
        return ""
    view = subject.cluster_view()
    namespace = view.find(Namespace, subject.namespace, namespaced=False)
    if not namespace:
        raise LookupFailed("; ".join(map(str, view.all_missing_objects())))
    return namespace.metadata.labels.get(LABEL, "")


def _request_as_json(
    place: ResourcePlace,
    at: str,
    old: ResourcePlace | None,
    gpu_fields: Sequence[_AmountField],
    resource_fields: Sequence[_AmountField],
) -> JSON:
    place.resources.reading.deadline.spend(_WORK_OF_REQUEST)
    read = gpu_count_in_patch if place.is_patch else intended_gpu_count
    limit, request = [_amount_as_json(place, old, field, read) for field in gpu_fields]
    own = {field.side: _amount_as_json(place, old, field, whole_number_text) for field in resource_fields}
    written = [each for each in (limit, request) if each["isSet"] and not each["isNull"]]
    saying_all = [each for each in written if each["text"].strip().lower() == "all"]
    chosen = (*saying_all, *written, limit)[0]
    number = "" if place.is_windows else limit["count"] or request["count"]
    return {
        "path": f"{at}.{chosen['path']}",
        "resources": at,
        "pointer": paths.json_pointer(place.path),
        "isPatch": place.is_patch,
        "isWindows": place.is_windows,
        "isNull": not written,
        "outcome": _describe_amounts_without_gpu(place, own),
        **_state_of_amounts(written, chosen, is_all=bool(saying_all), is_windows=place.is_windows),
        "hasLimits": bool(place.amounts("limits")),
        "count": number,
        "asked": chosen,
        "limit": limit,
        "request": request,
        "ownLimit": own["limits"],
        "ownRequest": own["requests"],
        "contradicting": [each for each in own.values() if number and _contradicts_count(each, number)],
    }


def _state_of_amounts(written: Sequence[JSON], chosen: JSON, *, is_all: bool, is_windows: bool) -> JSON:
    """Return whether the written amounts are invalid, zero, equal, or the word `all`."""
    counts = {each["count"] or each["text"].strip() for each in written}
    is_invalid = bool(written) and not (is_windows or is_all or chosen["count"])
    return {
        "isInvalid": is_invalid,
        "isZero": is_invalid and is_zero(chosen["text"]),
        "isAll": is_all and not is_windows,
        "isEqual": is_windows or is_all or len(counts) <= 1,
    }


def _describe_amounts_without_gpu(place: ResourcePlace, own: Mapping[str, JSON]) -> str:
    """Return what is requested after `gpu` is removed, as a clause for messages."""
    remaining = next((each for each in own.values() if each["isSet"] and not (each["isNull"] or each["isKept"])), None)
    if remaining:
        return f"{remaining['path']} stays `{remaining['text']}`"
    return "the shard gets what the template requests" if place.is_patch else "no GPU is requested"


def _contradicts_count(own: JSON, number: str) -> bool:
    """Return whether the user also requests the resource itself, with a different count."""
    return own["isSet"] and not own["isNull"] and not own["isKept"] and own["count"] != number


class _AmountField(NamedTuple):
    """The side (limits or requests) and the resource of an amount. `unset` is the JSON for an amount that is not set.
    All places share this JSON.
    """

    side: str
    name: str
    unset: JSON


@cache_for_short_texts(64 << 10)
def _amount_field(side: str, name: str) -> _AmountField:
    where = {"path": paths.path_as_text((side, name)), "pointer": paths.json_pointer((side, name))}
    nothing = {**dict.fromkeys(("isSet", "isNull", "isKept"), False), "text": "", "count": ""}
    return _AmountField(side, name, where | nothing)


def _amount_as_json(
    place: ResourcePlace, old: ResourcePlace | None, field: _AmountField, read: Callable[[JSON], str]
) -> JSON:
    side, name, unset = field
    amounts = place.amounts(side)
    if name not in amounts:
        return unset
    value = amounts[name]
    return {
        "path": unset["path"],
        "pointer": unset["pointer"],
        "isSet": True,
        "isNull": value is None,
        "isKept": old is not None and old.amounts(side).get(name) == value,
        "text": '""' if value == "" else amount_as_cel_text(value),
        "count": read(value),
    }


PORTABLE_GPU: Final = Fact(
    name="portableGpu",
    about=(
        "The portable resource name `gpu`: the places that request it, the amounts, and the extended resource that "
        "it means in the namespace of the request. For a Pod, the places are its containers. For other objects, "
        "the places are outside of pod templates, because a template is evaluated as a Pod. For an update, only "
        "changed places count. The param names the resources: `resource`, `resource.<namespace>` and "
        "`vendor.<name>`, as in gpu-portable."
    ),
    examples=(
        "portableGpu.asks.all(a, !a.isAll)",
        "portableGpu.asks.all(a, !a.isInvalid)",
        "portableGpu.misplaced.size() == 0",
    ),
    type=PORTABLE.type,
    structures=(PORTABLE, ASK, AMOUNT, DEVICE, MISTYPED, MISPLACED),
    compute=_compute_portable_fact,
    lookups=(NAMESPACES, *WINDOWS_LOOKUPS),
)
