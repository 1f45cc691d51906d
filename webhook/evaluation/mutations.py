"""Applies one mutation to one object: converts its expression's value to a patch, and applies the patch.

Knows values and patches, no policies. Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/mutating/patch/
{json_patch,smd}.go and pkg/cel/mutation/dynamic/objects.go (the check of type names).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cel.library.lists import Origins
from webhook.cel.structures import Struct
from webhook.cel.values import MAPS, map_items
from webhook.deadline import Deadline
from webhook.errors import PatchError
from webhook.evaluation import patch_values as patchvalues
from webhook.evaluation.object_decoding import convert_applied_object, decode_patched_object
from webhook.patch import configuration, jsonpatch, structural
from webhook.patch.schema import schema_of_definition
from webhook.policy.compiled import Mutation


def apply_mutation(
    change: Mutation,
    value: Any,
    obj: JSON,
    kind: GroupVersionKind,
    deadline: Deadline,
    *,
    seen: Mapping[str, Any] = MappingProxyType({}),
    origins: Origins | None = None,
    crd: JSON = None,
    sent: JSON = None,
) -> JSON:
    """Return the object after a mutation whose expression gave `value`; the same object if nothing changed.

    Args:
        change: the mutation.
        value: what its expression gave.
        obj: the object as it is.
        kind: its kind.
        deadline: of the review.
        seen: what the expression could read.
        origins: where its lists are from.
        crd: the CustomResourceDefinition of a custom kind, when it is known.
        sent: the object before the first mutation.

    Raises:
        Undecodable: the patched object is no object of its kind.
        PatchError: the patch cannot be read or does not apply; the API server's text.
        BudgetExceeded: the time is up.
    """
    declared = schema_of_definition(crd, kind.version) if crd else None
    given = patchvalues.JsonPartTracker(seen.values(), deadline, origins)
    if change.kind == "JSONPatch":
        changed = _patch_object(value, obj, kind, deadline, given)
    else:
        refuse_wrong_type_names(value)
        head = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
        wanted = {**patchvalues.apply_configuration_of_value(value, given), **head}
        deadline.check_clock()  # merging reads no clock
        merged = configuration.apply_configuration(obj, wanted, kind, crd=crd, sent=sent, deadline=deadline)
        if given.has_nil:
            merged = structural.object_as_stored(merged, declared.schema if declared else None, deadline)
        changed = convert_applied_object(merged, obj, kind, deadline)
    return structural.with_schema_defaults(changed, declared.schema, deadline) if declared else changed


def _patch_object(
    value: Any, obj: JSON, kind: GroupVersionKind, deadline: Deadline, given: patchvalues.JsonPartTracker
) -> JSON:
    operations = [_operation_as_json(each, given) for each in deadline.items_with_clock_checks(value)]
    if not operations:
        return obj
    try:
        patched = jsonpatch.apply_operations(obj, operations, deadline)
    except jsonpatch.FailedTest:
        return obj
    except PatchError as error:
        raise PatchError(f"JSON Patch: {error}") from error
    return decode_patched_object(patched, obj, kind, deadline)


def _operation_as_json(value: Struct, given: patchvalues.JsonPartTracker) -> JSON:
    operation: dict[str, JSON] = {"op": value.get("op", ""), "path": value.get("path", "")}
    if value.get("from"):
        operation["from"] = value["from"]
    if "value" in value:
        if type(value["value"]) is Struct:
            refuse_wrong_type_names(value["value"])
        operation["value"] = patchvalues.json_value(value["value"], given)
    return operation


def refuse_wrong_type_names(value: Struct) -> None:
    """Refuse `Object.spec{selector: Object.spec.wrong{}}`: the type of a field must be named after it.

    Raises:
        PatchError: the wrong names.
    """
    wrong = tuple(_wrong_type_names(value, value.name))
    if wrong:
        raise PatchError("type mismatch: " + "\n".join(wrong))


def _wrong_type_names(value: Any, expected: str) -> Iterator[str]:
    if type(value) is Struct:
        if value.name != expected:
            yield (
                f'unexpected type name "{value.name}", expected "{expected}", which matches field name path from root'
                " Object type"
            )
        for name, item in value.items():
            yield from _wrong_type_names(item, f"{expected}.{name}")
    elif type(value) is list:
        for item in value:
            yield from _wrong_type_names(item, expected)
    elif type(value) in MAPS:
        for _, item in map_items(value):
            yield from _wrong_type_names(item, expected)
