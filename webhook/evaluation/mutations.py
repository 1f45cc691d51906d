"""Applies one mutation to one target, and puts the changed target back into the whole object.

The value of the expression becomes a patch, and the patch is applied. An ApplyConfiguration for a custom kind needs
its CustomResourceDefinition. With a definition, the result of a JSONPatch also gets defaults and loses unknown
fields. A live view has no definitions for policies with only JSON patches, because the API server sets defaults and
removes unknown fields after the webhook. Without a definition, unknown fields stay.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/mutating/patch/{json_patch,smd}.go and
pkg/cel/mutation/dynamic/objects.go (the check of type names).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from msgspec import structs

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import CRD, JSON, GroupVersionKind
from webhook.cel.values import MAPS, Struct, map_items
from webhook.deadline import Deadline
from webhook.errors import LookupFailed, PatchError
from webhook.evaluation import patch_values as patchvalues
from webhook.evaluation.conversions import convert_to_version
from webhook.evaluation.invocations import Invocation
from webhook.evaluation.request_objects import EvaluationTarget, metadata_of, pod_of_template
from webhook.evaluation.typed_input import convert_applied_object, decode_patched_object, decode_unless_decoded
from webhook.patch import configuration, jsonpatch, structural
from webhook.patch.schema import is_builtin_group, schema_of_definition
from webhook.policy.compiled import Mutation
from webhook.workloads.podsets import PodSet, template_with_metadata


def apply_mutation(
    change: Mutation,
    value: Any,
    obj: JSON,
    kind: GroupVersionKind,
    deadline: Deadline,
    *,
    tracker: patchvalues.JsonPartTracker,
    crd: JSON = None,
    sent: JSON = None,
) -> JSON:
    """Return the object after a mutation. If nothing changed, return the same object.

    Args:
        change: the mutation.
        value: the value of its expression.
        obj: the current object.
        kind: the kind of the object.
        deadline: the deadline of the review.
        tracker: finds the parts of `value` that come from objects that the expression has read.
        crd: the CustomResourceDefinition of a custom kind, if it is known.
        sent: the object before the first mutation.

    Raises:
        UndecodableObject: the patched object is not an object of its kind.
        PatchError: the patch is invalid or does not apply. The message is that of API servers.
        BudgetExceeded: the time is up.
    """
    patchvalues.require_bounded_value(value, deadline)
    declared = schema_of_definition(crd, kind.version) if crd else None
    if change.kind == "JSONPatch":
        changed = _patch_object(value, obj, kind, deadline, tracker)
    else:
        refuse_wrong_type_names(value)
        head = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
        applied = {**patchvalues.apply_configuration_of_value(value, tracker), **head}
        deadline.check_clock()  # the merge itself does not read the clock
        merged = configuration.apply_configuration(obj, applied, kind, crd=crd, sent=sent, deadline=deadline)
        if tracker.has_nil:
            merged = structural.object_as_stored(merged, declared.schema if declared else None, deadline)
        changed = convert_applied_object(merged, obj, kind, deadline)
    return structural.with_schema_defaults(changed, declared.schema, deadline) if declared else changed


def _patch_object(
    value: Any, obj: JSON, kind: GroupVersionKind, deadline: Deadline, tracker: patchvalues.JsonPartTracker
) -> JSON:
    operations = [_operation_as_json(each, tracker) for each in deadline.items_with_clock_checks(value)]
    if not operations:
        return obj
    try:
        patched = jsonpatch.apply_operations(obj, operations, deadline)
    except jsonpatch.FailedTest:
        return obj
    except PatchError as error:
        raise PatchError(f"JSON Patch: {error}") from error
    return decode_patched_object(patched, obj, kind, deadline)


def _operation_as_json(value: Struct, tracker: patchvalues.JsonPartTracker) -> JSON:
    operation: dict[str, JSON] = {"op": value.get("op", ""), "path": value.get("path", "")}
    if value.get("from"):
        operation["from"] = value["from"]
    if "value" in value:
        if type(value["value"]) is Struct:
            refuse_wrong_type_names(value["value"])
        operation["value"] = patchvalues.json_value(value["value"], tracker)
    return operation


def refuse_wrong_type_names(value: Struct) -> None:
    """Refuse `Object.spec{selector: Object.spec.wrong{}}`: a type must have the name of its field.

    Raises:
        PatchError: a type has another name.
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


def refresh_target(target: EvaluationTarget, obj: JSON, deadline: Deadline | None = None) -> EvaluationTarget | None:
    """Return the target with the content of the current object. Return None if its template no longer exists."""
    podset = target.podset
    if podset is None:
        seen = convert_to_version(obj, target.match, deadline or Deadline())
        return target if seen is target.written else _target_with_object(target, seen, deadline)
    template_now = paths.get(obj, podset.path)
    if not isinstance(template_now, dict):
        return None
    template = {"spec": template_now} if podset.bare else template_now
    if podset.metadata:
        template = template_with_metadata(template, obj, podset.metadata)
    if template is podset.template or _is_same_template(template, podset.template):
        return target
    now = structs.replace(podset, template=template)
    return _target_with_object(replace(target, podset=now), pod_of_template(template, target.attributes), deadline)


def _is_same_template(template: JSON, before: JSON) -> bool:
    return template.get("spec") is before.get("spec") and template.get("metadata") == before.get("metadata")


def _target_with_object(target: EvaluationTarget, written: JSON, deadline: Deadline | None) -> EvaluationTarget:
    decoded = decode_unless_decoded(written, target.kind, target.attributes, deadline or Deadline())
    return replace(target, object=decoded.value, written=written, mismatches=(), omitted=())


class TemplateRewriting:
    """Changes templates of an object one by one, and copies each part of the object at most once.

    The parts above a template are copied once and then changed in place. Otherwise a list with thousands of templates
    would be copied thousands of times. Other code caches values by the identity of an object or of a part. Call
    `freeze_copies` before such code gets the object.
    """

    def __init__(self) -> None:
        self._copies: dict[int, JSON] = {}  # this dict keeps the copies alive, so that no other object gets their ids

    def freeze_copies(self) -> None:
        """Stop changing the existing copies; later changes make new copies."""
        if self._copies:
            self._copies = {}

    def put(self, obj: JSON, path: paths.FieldPath, new: JSON) -> JSON:
        """Return the object with the value `new` at a path."""
        if not path:
            return new
        root = parent = self._copy_once(obj)
        for step in path[:-1]:
            copy = self._copy_once(parent[step])
            parent[step] = copy
            parent = copy
        parent[path[-1]] = new
        return root

    def _copy_once(self, value: JSON) -> JSON:
        if id(value) not in self._copies:
            value = value.copy()
            self._copies[id(value)] = value
        return value


def with_changed_pod(
    obj: JSON, target: EvaluationTarget, pod: JSON, rewriting: TemplateRewriting | None = None
) -> JSON:
    """Return the whole object after the virtual Pod of a template changed. Unchanged parts stay the same values."""
    own_rewriting = rewriting or TemplateRewriting()
    podset, before = target.podset, target.written
    if pod is before:
        return obj
    if podset is None:
        return pod if target.match.conversion == "none" else {**pod, "apiVersion": obj["apiVersion"]}
    if podset.metadata:
        obj = _with_changed_metadata(obj, podset, metadata_of(before), metadata_of(pod), own_rewriting)
    if podset.bare:
        return obj if pod.get("spec") is before["spec"] else own_rewriting.put(obj, podset.path, pod.get("spec"))
    template = dict(podset.template)
    if "spec" not in pod:
        template.pop("spec", None)
    elif pod["spec"] is not before["spec"]:
        template["spec"] = pod["spec"]
    if podset.metadata:
        template_in_object = paths.get(obj, podset.path)
        return (
            obj
            if template.get("spec") is template_in_object.get("spec")
            else own_rewriting.put(obj, (*podset.path, "spec"), template["spec"])
        )
    if pod.get("metadata") is not before["metadata"]:
        added = not metadata_of(podset.template).get("namespace")
        metadata = {k: v for k, v in metadata_of(pod).items() if not (added and k == "namespace")}
        if metadata or "metadata" in template:
            template["metadata"] = metadata
    return own_rewriting.put(obj, podset.path, template)


def _with_changed_metadata(obj: JSON, podset: PodSet, before: JSON, after: JSON, rewriting: TemplateRewriting) -> JSON:
    """Return the object with a pod's changed labels and annotations, at the places from which the pod gets them.

    Additions are written to the last place, which overrides the earlier places. Removals apply to all places.
    """
    for name in ("labels", "annotations"):
        old, new = before.get(name) or {}, after.get(name) or {}
        added = {key: value for key, value in new.items() if old.get(key) != value}
        removed = old.keys() - new.keys()
        for place in podset.metadata:
            texts_at_place = paths.get(obj, (*place, name)) or {}
            new_texts = {key: value for key, value in texts_at_place.items() if key not in removed}
            if place == podset.metadata[-1]:
                new_texts = {**new_texts, **added}
            if new_texts != texts_at_place:
                obj = rewriting.put(obj, (*place, name), new_texts)
    return obj


def find_crd_of_target(invocation: Invocation) -> JSON:
    """Return the CustomResourceDefinition of a target's kind; None for built-in kinds, and for kinds without a
    definition.

    The result is also None for the request's own object if policies about Pods match this object
    (`criteria_attributes`).

    Raises:
        LookupFailed: the definition is unknown, and the policy needs it.
    """
    target, policy = invocation.target, invocation.policy
    resource = (target.attributes if target.podset else target.match).resource
    if is_builtin_group(resource.group) or target.criteria_attributes is not None:
        return None
    try:
        return invocation.context.cluster.get(CRD, "", f"{resource.resource}.{resource.group}")
    except LookupFailed:
        if policy.needs_schemas:
            raise
        return None


def without_unknown_fields(obj: JSON, crd: JSON, version: str, deadline: Deadline) -> JSON:
    """Return the object without fields that the definition of its kind does not declare."""
    declared = schema_of_definition(crd, version)
    return structural.without_unknown_fields(obj, declared.schema, deadline) if declared else obj
