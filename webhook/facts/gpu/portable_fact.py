"""The fact `portableGpu`: places that request `gpu`, and the extended resource that it means in the namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.cel.types import BOOL, STRING, list_of
from webhook.errors import LookupFailed
from webhook.facts.fact import Fact, FactResult, declare_structure
from webhook.facts.gpu.gpu_requests import WINDOWS_LOOKUPS
from webhook.facts.gpu.portable import (
    NAME,
    SIDES,
    ResourcePlace,
    amount_as_cel_text,
    changed_places_requesting_gpu,
    gpu_count_in_patch,
    intended_gpu_count,
    is_zero,
    misplaced_gpu_requests,
    paths_changed_to_portable_gpu,
    whole_number_text,
)
from webhook.facts.kinds import POD
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.text.caches import cache_for_short_texts
from webhook.typed.objects import Namespace
from webhook.typed.pods import Pod

LABEL: Final = "claimgate.dev/gpu"
DEFAULT: Final = "nvidia.com/gpu"
OWN: Final = "own"
"""The label value that names no vendor, but the params of the namespace itself."""

AMOUNT: Final = declare_structure(
    "PortableAmount",
    path=(STRING, 'its path below the resources of the ask: `limits["nvidia.com/gpu"]`'),
    pointer=(STRING, "the same as JSON Pointer, below the pointer of the ask: `/limits/nvidia.com~1gpu`"),
    isSet=(BOOL, "whether the key exists"),
    isNull=(BOOL, "whether the key exists and is null"),
    isKept=(BOOL, "whether the update did not change it"),
    text=(STRING, 'the amount as the user wrote it, an empty text with its quotes; `""` for null'),
    count=(STRING, 'number of devices in plain digits; `""` if the amount is not a number'),
)
ASK: Final = declare_structure(
    "PortableAsk",
    path=(STRING, "the path of the amount that counts"),
    resources=(STRING, "the path of the limits and requests"),
    pointer=(STRING, "the same as JSON Pointer"),
    isPatch=(BOOL, "whether null removes an amount of the template, as in shardPatches"),
    isWindows=(BOOL, "whether the pod runs on Windows, where this name gives no GPU"),
    isNull=(BOOL, "whether `gpu` is null in all places"),
    outcome=(STRING, "the result if the key is removed without a replacement: `no GPU is requested`"),
    isInvalid=(BOOL, "whether the amount is neither a positive whole number nor the word `all`; not on Windows"),
    isZero=(BOOL, "whether the amount is 0, which requests nothing; not on Windows, nor in a patch of a template"),
    isAll=(BOOL, "whether the amount is the word `all`; not on Windows"),
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
    contradicting=(list_of(AMOUNT.type), "`ownLimit` and `ownRequest`, if their count differs from the count of `gpu`"),
)
DEVICE: Final = declare_structure(
    "PortableDevice", path=(STRING, "its path"), pointer=(STRING, "its name, as JSON Pointer")
)
MISPLACED: Final = declare_structure(
    "MisplacedGpu",
    path=(STRING, "its path"),
    isEphemeral=(BOOL, "whether the place is an ephemeral container; otherwise the pod as a whole"),
)
MISTYPED: Final = declare_structure(
    "MistypedGpu", path=(STRING, "its path"), found=(STRING, "its value in short: `a list`")
)
PORTABLE: Final = declare_structure(
    "PortableGpu",
    resource=(STRING, 'the extended resource that `gpu` means in the namespace; `""` if nothing requests `gpu`'),
    unknownVendor=(STRING, "the value of the label `claimgate.dev/gpu` of the namespace, if no vendor has this name"),
    vendors=(list_of(STRING), "vendors that the params name"),
    paths=(list_of(STRING), "places that request `gpu`"),
    asks=(list_of(ASK.type), "limits and requests that name `gpu` and are new or have changed"),
    devices=(list_of(DEVICE.type), "devices with a quantity, as of a SparkApplication, that are named `gpu` now"),
    mistyped=(list_of(MISTYPED.type), "values of `gpu` that are neither texts nor numbers"),
    misplaced=(list_of(MISPLACED.type), "places where a Pod requests `gpu` and Kubernetes accepts no device"),
)
_WORK_OF_REQUEST: Final = 20
"""Units of work to say what one place requests, some 30 microseconds."""
_NOTHING: Final[Mapping[str, JSON]] = {
    "resource": "",
    "unknownVendor": "",
    **{name: [] for name in ("vendors", "paths", "asks", "devices", "mistyped", "misplaced")},
}


def _names_no_portable_gpu(subject: Subject) -> bool:
    """Return whether a Pod does not have `gpu`, as nearly every Pod."""
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
    resource, meant = _resource_of_namespace(subject)
    portable, own = ([_unset_field(side, name) for side in SIDES] for name in (NAME, resource))
    at = [paths.path_as_text(place.path) for place, _ in until.charge_for_items(places)]
    rendered = [*at, *map(paths.path_as_text, until.charge_for_items(named))]
    return FactResult(
        {
            **meant,
            "resource": resource,
            "unknownVendor": meant["unknownVendor"] if rendered else "",
            "paths": rendered,
            "asks": [
                _request_as_json(place, where, old, portable, own)
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
                {"path": paths.path_as_text(path), "isEphemeral": inner}
                for path, inner in until.charge_for_items(misplaced)
            ],
        }
    )


def _mistyped_value_as_json(path: FieldPath, value: JSON) -> JSON:
    shown_as = (
        "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else f"`{str(value).lower()}`"
    )
    return {"path": paths.path_as_text(path), "found": shown_as}


def _resource_of_namespace(subject: Subject) -> tuple[str, JSON]:
    """Return the resource of the namespace: by its name, otherwise by the vendor in its label, otherwise the resource
    of the cluster.
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
        LookupFailed: it does not exist, or it is not known.
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
    portable: Sequence[_UnsetField],
    meant: Sequence[_UnsetField],
) -> JSON:
    place.resources.reading.deadline.spend(_WORK_OF_REQUEST)
    read = gpu_count_in_patch if place.is_patch else intended_gpu_count
    limit, request = [_amount_as_json(place, old, field, read) for field in portable]
    own = {field.side: _amount_as_json(place, old, field, whole_number_text) for field in meant}
    written = [each for each in (limit, request) if each["isSet"] and not each["isNull"]]
    every = [each for each in written if each["text"].strip().lower() == "all"]
    chosen = (*every, *written, limit)[0]
    number = "" if place.is_windows else limit["count"] or request["count"]
    return {
        "path": f"{at}.{chosen['path']}",
        "resources": at,
        "pointer": paths.json_pointer(place.path),
        "isPatch": place.is_patch,
        "isWindows": place.is_windows,
        "isNull": not written,
        "outcome": _describe_amounts_after_translation(place, own),
        **_state_of_amounts(written, chosen, is_all=bool(every), is_windows=place.is_windows),
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
    """Return the state of the written amounts."""
    counts = {each["count"] or each["text"].strip() for each in written}
    is_invalid = bool(written) and not (is_windows or is_all or chosen["count"])
    return {
        "isInvalid": is_invalid,
        "isZero": is_invalid and is_zero(chosen["text"]),
        "isAll": is_all and not is_windows,
        "isEqual": is_windows or is_all or len(counts) <= 1,
    }


def _describe_amounts_after_translation(place: ResourcePlace, own: Mapping[str, JSON]) -> str:
    """Return a sentence with what is requested once `gpu` is removed."""
    kept = next((each for each in own.values() if each["isSet"] and not (each["isNull"] or each["isKept"])), None)
    if kept:
        return f"{kept['path']} stays `{kept['text']}`"
    return "the shard gets what the template requests" if place.is_patch else "no GPU is requested"


def _contradicts_count(own: JSON, number: str) -> bool:
    """Return whether another count was written together with `gpu`."""
    return own["isSet"] and not own["isNull"] and not own["isKept"] and own["count"] != number


class _UnsetField(NamedTuple):
    """A limit or request, and its value if it is not set, shared by all places."""

    side: str
    name: str
    unset: JSON


@cache_for_short_texts(64 << 10)
def _unset_field(side: str, name: str) -> _UnsetField:
    where = {"path": paths.path_as_text((side, name)), "pointer": paths.json_pointer((side, name))}
    nothing = {**dict.fromkeys(("isSet", "isNull", "isKept"), False), "text": "", "count": ""}
    return _UnsetField(side, name, where | nothing)


def _amount_as_json(
    place: ResourcePlace, old: ResourcePlace | None, field: _UnsetField, read: Callable[[JSON], str]
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
        "they are outside of the pod templates, which are Pods themselves. For an update, they are the changed "
        "places. The param says which "
        "resources there are: `resource`, `resource.<namespace>` and `vendor.<name>`, as in gpu-portable."
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
