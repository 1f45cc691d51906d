"""Decodes submitted and patched objects by the types of their kinds, so that policies never see null fields or values
of wrong types.

An object of a built-in kind that an API server has decoded is used unchanged. Every other object is decoded by its
declared type. If its kind has no declared type, only its pod templates are decoded. Values of a wrong type are kept as
mismatches. Only the policies about wrong types are evaluated on such an object or template.

A built-in object is decoded into Go's types after every mutation. A value of a wrong type or an unknown field is an
error, empty lists and maps are removed, and null means absent. Only changed parts are checked, because unchanged parts
were decoded before. Custom resources stay unchanged. Source: sigs.k8s.io/json as k8s.io/apimachinery v0.36
pkg/runtime/serializer/json uses it, pkg/runtime/converter.go for ApplyConfiguration; the fields of kinds are those of
the schema in patch/.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from msgspec import Struct, field

from webhook.apimachinery import paths, quantity
from webhook.apimachinery.attributes import JSON, POD, Attributes, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, PatchError
from webhook.patch.schema import Node, is_builtin, schema_of_kind, shape_of_node
from webhook.schema import DecodedValue, Mismatch, decode, decode_object, has_undeclared_field, kubernetes_type, type_of
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.kinds import type_at_path
from webhook.schema.sent import as_sent_by_api_server, pod_as_sent
from webhook.schema.types import Type
from webhook.workloads.podsets import PodSet

_INT64 = frozenset(
    (
        *("activeDeadlineSeconds", "deletionGracePeriodSeconds", "generation", "gracePeriodSeconds"),
        *("observedGeneration", "terminationGracePeriodSeconds", "expirationSeconds", "tolerationSeconds"),
        *("fsGroup", "runAsGroup", "runAsUser", "supplementalGroups"),
    )
)
"""The integer fields that are int64 in k8s.io/api v0.36. All other integer fields of these kinds are int32."""
_WORDS = {str: "string", bool: "bool", list: "array", dict: "object"}
_ABSENT = object()
_QUANTITY, _INT_OR_STRING = "#api.resource.Quantity", "#util.intstr.IntOrString"


class UndecodableObject(PatchError):
    """The error for a patched object that cannot be decoded. The request fails with any failurePolicy."""


def decode_patched_object(
    patched: JSON, before: JSON, kind: GroupVersionKind, deadline: Deadline | None = None
) -> JSON:
    """Return the object of a JSON patch after decoding.

    Raises:
        UndecodableObject: the value is not an object of the kind, has values of wrong types, or has unknown fields.
    """
    if not isinstance(patched, dict) or not patched.get("kind"):
        text = json.dumps(patched, separators=(",", ":"), sort_keys=True, default=str)
        raise UndecodableObject(f"Object 'Kind' is missing in '{text}'")
    node = schema_of_kind(kind)
    if not isinstance(node, str):
        return patched
    until = deadline or Deadline()
    for wrong in _decoding_errors(patched, before, node, kind.kind, "", deadline=until):
        raise UndecodableObject(wrong)
    if unknown := [f'unknown field "{path}"' for path in _unknown_fields(patched, before, node, "", until)]:
        raise UndecodableObject(f"strict decoding error: {', '.join(unknown)}")
    return _without_empty_values(patched, before, node, until)


def convert_applied_object(
    merged: JSON, before: JSON, kind: GroupVersionKind, deadline: Deadline | None = None
) -> JSON:
    """Return the object of an ApplyConfiguration after the conversion to Go's types.

    Raises:
        PatchError: an integer field has a number with a fraction.
    """
    node = schema_of_kind(kind)
    if not isinstance(node, str):
        return merged
    until = deadline or Deadline()
    for path in _integer_fields_with_fractions(merged, before, node, "", until):
        number_type = "int64" if path in _INT64 else "int32"
        raise PatchError(
            f"unable to convert unstructured object to {kind.api_version}, Kind={kind.kind}: "
            f"cannot convert float64 to {number_type}"
        )
    return _without_empty_values(merged, before, node, until)


def _integer_fields_with_fractions(
    value: JSON, before: JSON, node: Node, name: str, deadline: Deadline
) -> Iterator[str]:
    if value is not before and node is not None and shape_of_node(node).scalar == "numeric":
        if isinstance(value, float) and not value.is_integer():
            yield name
        return
    for key, item, old, child_node in _changed_parts(value, before, node, deadline):
        yield from _integer_fields_with_fractions(
            item, old, child_node, key if isinstance(key, str) else name, deadline
        )


def _changed_parts(
    value: JSON, before: JSON, node: Node, deadline: Deadline
) -> Iterator[tuple[str | int, JSON, JSON, Node]]:
    """Yield each changed part of a value: its key, new value, old value and schema node. Keys have the order of Go's
    JSON.
    """
    if value is before or node is None:
        return
    deadline.spend(1)
    shape = shape_of_node(node)
    if shape.map and isinstance(value, dict):
        old_fields: Mapping[str, JSON] = before if isinstance(before, dict) else {}
        fields, other = shape.map.fields, shape.map.other
        changed = [
            name for name, item in deadline.charge_for_items(value.items()) if old_fields.get(name, _ABSENT) is not item
        ]
        for name in sorted(changed):
            yield name, value[name], old_fields.get(name, _ABSENT), fields.get(name, other)
    elif shape.list and isinstance(value, list):
        for index, item in enumerate(deadline.charge_for_items(value)):
            old = before[index] if isinstance(before, list) and index < len(before) else _ABSENT
            if item is not old:
                yield index, item, old, shape.list.element


def _decoding_errors(
    value: JSON, before: JSON, node: Node, struct: str, path: str, *, deadline: Deadline
) -> Iterator[str]:
    """Yield Go's decoding errors for values of the wrong type. `struct` is the Go type around the field."""
    if value is None or node is None:
        return
    if complaint := _decoding_error_of_value(value, node, struct, path):
        yield complaint
        return
    struct_of_value = _go_struct_of_node(node) or struct if isinstance(value, dict) else struct
    fields = shape_of_node(node).map.fields if isinstance(value, dict) and shape_of_node(node).map else {}  # type: ignore[union-attr]
    for key, item, old, child_node in _changed_parts(value, before, node, deadline):
        inside = f"{path}.{key}" if key in fields else path
        yield from _decoding_errors(item, old, child_node, struct_of_value, inside, deadline=deadline)


def _decoding_error_of_value(value: JSON, node: Node, struct: str, path: str) -> str:
    if node == _QUANTITY:
        return _error_of_quantity(value)
    expected = _expected_go_type(value, node, path)
    if not expected:
        return ""
    return f"json: cannot unmarshal {_value_in_error(value)} into Go struct field {struct}{path} of type {expected}"


def _error_of_quantity(value: JSON) -> str:
    try:
        quantity.parse_quantity(value if isinstance(value, str) else json.dumps(value))
    except ValueError as error:
        return str(error)
    return ""


def _expected_go_type(value: JSON, node: Node, path: str) -> str:
    """Return the Go type that the field needs; "" if the value has this type."""
    shape = shape_of_node(node)
    if shape.map or shape.list:
        fits = isinstance(value, dict if shape.map else list)
    elif node == _INT_OR_STRING:
        fits = isinstance(value, str) or type(value) is int
    elif shape.scalar == "numeric":
        fits = type(value) is int
    elif shape.scalar in _PLAIN:
        fits = isinstance(value, _PLAIN[shape.scalar])
    else:
        fits = True
    return "" if fits else _go_type_of_node(node, path)


_PLAIN: dict[str | None, type] = {"string": str, "boolean": bool}


def _go_type_of_node(node: Node, path: str) -> str:
    shape = shape_of_node(node)
    if shape.scalar:
        name = path.rpartition(".")[2]
        return {"string": "string", "boolean": "bool"}.get(shape.scalar, "int64" if name in _INT64 else "int32")
    if shape.list:
        return f"[]{_go_type_of_node(shape.list.element, path)}"
    if named := _go_struct_of_node(node):
        return f"v1.{named}"
    return (
        f"map[string]{_go_type_of_node(shape.map.other, path)}"
        if shape.map and shape.map.other
        else "map[string]string"
    )


def _go_struct_of_node(node: Node) -> str:
    """Return the name of the Go struct that a schema node describes: PodSpec for `#core.v1.PodSpec`."""
    name = node.get("ref", "") if isinstance(node, dict) else node if node.startswith("#") else ""
    return str(name).rpartition(".")[2]


def _value_in_error(value: JSON) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _WORDS.get(type(value), "object")
    return f"number {json.dumps(value)}" if isinstance(value, float) else "number"


def _unknown_fields(value: JSON, before: JSON, node: Node, path: str, deadline: Deadline) -> Iterator[str]:
    for key, item, old, child_node in _changed_parts(value, before, node, deadline):
        field_path = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        if child_node is None:
            yield field_path
        else:
            yield from _unknown_fields(item, old, child_node, field_path, deadline)


def _without_empty_values(value: JSON, before: JSON, node: Node, deadline: Deadline) -> JSON:
    """Return the value as Go writes it: without nulls, and without lists and maps that are empty after a change.

    A whole double in an integer field becomes an integer, and a number in a field for a quantity becomes a text.
    """
    changed = list(_changed_parts(value, before, node, deadline))
    if not changed:
        return value
    if isinstance(value, list):
        result = list(value)
        for key, item, old, child_node in changed:
            result[int(key)] = _without_empty_values(item, old, child_node, deadline)
        return result
    settled: dict[str, Any] = dict(value)
    for name, item, old, child_node in changed:
        new = _without_empty_values(item, old, child_node, deadline)
        if new is None and child_node == "string" and not _go_struct_of_node(node):
            settled[str(name)] = ""  # null in a map of texts becomes an empty text
        elif new is None or (new in ({}, []) and not _go_struct_of_node(child_node)):
            del settled[str(name)]
        elif isinstance(new, float) and new.is_integer() and shape_of_node(child_node).scalar == "numeric":
            settled[str(name)] = int(new)
        elif child_node == _QUANTITY and not isinstance(new, str):
            settled[str(name)] = json.dumps(new)
        else:
            settled[str(name)] = new
    return settled


TEMPLATE: Final = "core.v1.PodTemplateSpec"
_POD_SPEC: Final = "core.v1.PodSpec"
_METADATA: Final = "meta.v1.ObjectMeta"
_WORK_OF_TEMPLATE: Final = 5
"""The units of work to find the decoded form of one template, about 3 microseconds."""


def needs_decoding(attributes: Attributes, kind: GroupVersionKind) -> bool:
    """Return whether an object of a kind must be decoded. In a request of an API server, built-in kinds are already
    decoded.
    """
    return not (attributes.is_decoded and is_builtin(kind))


def decode_unless_decoded(
    obj: JSON, kind: GroupVersionKind, attributes: Attributes, deadline: Deadline
) -> DecodedValue:
    """Return an object of a request, or an embedded object, decoded."""
    return decode_object(obj, kind, deadline) if needs_decoding(attributes, kind) else DecodedValue(obj)


class DecodedRequestObjects(Struct, frozen=True):
    """The decoded object and old object of a request. `mismatches` and `unfilled` are about the object."""

    attributes: Attributes
    object: JSON
    old_object: JSON
    mismatches: tuple[Mismatch, ...] = ()
    unfilled: tuple[FieldPath, ...] = ()
    deadline: Deadline = field(default_factory=Deadline)

    def mismatches_outside_templates(self, podsets: Iterable[PodSet]) -> tuple[Mismatch, ...]:
        if not self.mismatches:
            return ()
        return tuple(self._mismatches_by_template(podsets).get(None, ()))

    def omitted_paths(self, podsets: Iterable[PodSet]) -> tuple[FieldPath, ...]:
        """Return the paths of parts that the decoded object lacks: placeholders, and templates with values of wrong
        types.
        """
        if not self.mismatches:
            return self.unfilled
        return (*self.unfilled, *(path for path in self._mismatches_by_template(podsets) if path is not None))

    def decode_templates(self, podsets: Sequence[PodSet]) -> tuple[DecodedValue, ...]:
        """Return the decoded templates of the object. Paths of mismatches begin at the template."""
        inside = self._mismatches_by_template(podsets) if self.mismatches else {}
        return tuple(self._decode_template(podset, self.object, inside.get(podset.path, ())) for podset in podsets)

    def old_template(self, podset: PodSet) -> JSON:
        """Return a template of the old object, without values of a wrong type."""
        return self._decode_template(podset, self.old_object, ()).value

    def _mismatches_by_template(self, podsets: Iterable[PodSet]) -> Mapping[FieldPath | None, Sequence[Mismatch]]:
        """The key is None outside of templates."""
        places = {podset.path for podset in podsets if podset.path}
        ends = sorted({len(place) for place in places}, reverse=True)
        grouped: dict[FieldPath | None, list[Mismatch]] = {}
        for each in self.deadline.charge_for_items(self.mismatches):
            place = next((each.at[:end] for end in ends if each.at[:end] in places), None)
            grouped.setdefault(place, []).append(each)
        return grouped

    def _decode_template(self, podset: PodSet, whole: JSON, inside: Sequence[Mismatch]) -> DecodedValue:
        self.deadline.spend(_WORK_OF_TEMPLATE)
        kind = self.attributes.kind
        if not needs_decoding(self.attributes, kind):
            return DecodedValue(podset.template)
        if _is_template_type(type_at_path(type_of(kind), podset.path)):
            value = paths.get(whole, podset.path, {})
            value = {"spec": value} if podset.bare else value
            if podset.metadata and "metadata" in podset.template:
                metadata = decode(podset.template["metadata"], kubernetes_type(_METADATA), (), self.deadline).value
                value = {**value, "metadata": metadata}
            return DecodedValue(
                value,
                tuple(_mismatch_inside_template(each, podset) for each in self.deadline.charge_for_items(inside)),
            )
        return decode(podset.template, kubernetes_type(TEMPLATE), (), self.deadline)


def decode_request_objects(attributes: Attributes, deadline: Deadline) -> DecodedRequestObjects:
    """Return the objects of a request, decoded."""
    now = decode_unless_decoded(attributes.object, attributes.kind, attributes, deadline)
    before = decode_unless_decoded(attributes.old_object, attributes.kind, attributes, deadline)
    return DecodedRequestObjects(attributes, now.value, before.value, now.mismatches, now.unfilled, deadline)


def inner_object_as_sent(
    obj: JSON, kind: GroupVersionKind, place: PodSet, deadline: Deadline, *, is_encoded: bool
) -> JSON:
    """Return a decoded embedded object in the form in which an API server would send it alone.

    A pod template becomes a Pod with all defaults of Pods. A patch of a template gets no defaults.

    Args:
        obj: the object, or the template as a Pod.
        kind: the kind of the object.
        place: the place of the object.
        deadline: is charged for every value that is read.
        is_encoded: whether an API server has encoded the outer object, which is of a built-in kind.
    """
    if obj is None or not is_builtin(kind):
        return obj
    if kind == POD:
        sent = obj if is_encoded else pod_as_sent(obj, deadline, is_whole=not place.is_patch)
        return sent if place.is_patch else with_api_defaults(sent, kind, deadline)
    sent = as_sent_by_api_server(obj, kind, deadline)
    return obj if sent is None else with_api_defaults(sent, kind, deadline)


def is_mistyped(attributes: Attributes, deadline: Deadline) -> bool:
    """Return whether a request of an API server has values of wrong types in its object or old object.

    Return True if there is no time to check. API servers never send such values.
    """
    undecoded = replace(attributes, is_decoded=False)
    try:
        return attributes.is_decoded and any(
            decode_unless_decoded(obj, attributes.kind, undecoded, deadline).mismatches
            for obj in (attributes.object, attributes.old_object)
        )
    except BudgetExceeded:
        return True


def is_not_from_api_server(attributes: Attributes, deadline: Deadline) -> bool:
    """Return whether a request that seems to be from an API server has values that API servers never send.

    Such values have wrong types, or are in unknown fields. Return True if there is no time to check.
    """
    schema_type = type_of(attributes.kind)
    try:
        return is_mistyped(attributes, deadline) or (
            attributes.is_decoded
            and is_builtin(attributes.kind)
            and schema_type is not None
            and any(
                has_undeclared_field({name: obj[name] for name in obj if name != "status"}, schema_type, deadline)
                for obj in (attributes.object, attributes.old_object)
                if isinstance(obj, dict)
            )
        )
    except BudgetExceeded:
        return True


def _is_template_type(schema_type: Type | None) -> bool:
    return schema_type is not None and schema_type in (kubernetes_type(TEMPLATE), kubernetes_type(_POD_SPEC))


def _mismatch_inside_template(mismatch: Mismatch, podset: PodSet) -> Mismatch:
    path_in_template = mismatch.at[len(podset.path) :]
    return Mismatch(
        at=("spec", *path_in_template) if podset.bare else path_in_template,
        expected=mismatch.expected,
        value=mismatch.value,
    )
