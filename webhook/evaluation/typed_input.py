"""Decodes the objects of a request by their kinds, so that policies never see a null field or a value of a wrong type.

An object of a built-in kind that an API server has decoded is used unchanged. Every other object is decoded by its
declared type; for a kind without a declared type, only its pod templates. Values of a wrong type are kept as
mismatches: only the policies about them are evaluated on such an object or template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import Struct, field

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON, POD, Attributes, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.patch.schema import is_builtin
from webhook.schema import DecodedValue, Mismatch, decode, decode_object, has_undeclared_field, kubernetes_type, type_of
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.kinds import type_at_path
from webhook.schema.sent import as_sent_by_api_server, pod_as_sent
from webhook.schema.types import Type
from webhook.workloads.podsets import PodSet

TEMPLATE: Final = "core.v1.PodTemplateSpec"
_POD_SPEC: Final = "core.v1.PodSpec"
_METADATA: Final = "meta.v1.ObjectMeta"
_WORK_OF_TEMPLATE: Final = 5
"""Units of work to find the decoded form of one template, some 3 microseconds."""


def needs_decoding(attributes: Attributes, kind: GroupVersionKind) -> bool:
    """Return whether an object of a kind still has to be decoded; an API server has decoded its own kinds already."""
    return not (attributes.is_decoded and is_builtin(kind))


def decode_unless_decoded(
    obj: JSON, kind: GroupVersionKind, attributes: Attributes, deadline: Deadline
) -> DecodedValue:
    """Return an object of a request, or one inside it, decoded."""
    return decode_object(obj, kind, deadline) if needs_decoding(attributes, kind) else DecodedValue(obj)


class DecodedRequestObjects(Struct, frozen=True):
    """The object of a request and its former state, decoded; the other fields are about the object."""

    attributes: Attributes
    object: JSON
    old_object: JSON
    mismatches: tuple[Mismatch, ...] = ()
    unfilled: tuple[FieldPath, ...] = ()
    deadline: Deadline = field(default_factory=Deadline)

    def mismatches_outside_templates(self, podsets: Iterable[PodSet]) -> tuple[Mismatch, ...]:
        """Return the mismatches outside the pod templates."""
        if not self.mismatches:
            return ()
        return tuple(self._mismatches_by_template(podsets).get(None, ()))

    def omitted_paths(self, podsets: Iterable[PodSet]) -> tuple[FieldPath, ...]:
        """Return the paths where the decoded object lacks something: placeholders, and templates that are not
        decoded.
        """
        if not self.mismatches:
            return self.unfilled
        return (*self.unfilled, *(path for path in self._mismatches_by_template(podsets) if path is not None))

    def decode_templates(self, podsets: Sequence[PodSet]) -> tuple[DecodedValue, ...]:
        """Return the templates of the object, decoded; paths of mismatches begin at the template."""
        inside = self._mismatches_by_template(podsets) if self.mismatches else {}
        return tuple(self._decode_template(podset, self.object, inside.get(podset.path, ())) for podset in podsets)

    def old_template(self, podset: PodSet) -> JSON:
        """Return a template of the former object, without values of a wrong type."""
        return self._decode_template(podset, self.old_object, ()).value

    def _mismatches_by_template(self, podsets: Iterable[PodSet]) -> Mapping[FieldPath | None, Sequence[Mismatch]]:
        """Return the mismatches by the path of the template that contains them, in their order; outside by None."""
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
    """Return a decoded embedded object as an API server would send it by itself.

    A pod template becomes a Pod with all defaults of Pods; a patch of a template is completed by nothing.

    Args:
        obj: the object, or the template as a Pod.
        kind: its kind.
        place: where it is.
        deadline: is charged for what is walked.
        is_encoded: whether an API server has encoded the object around it, which is of a built-in kind.
    """
    if obj is None or not is_builtin(kind):
        return obj
    if kind == POD:
        sent = obj if is_encoded else pod_as_sent(obj, deadline, is_whole=not place.is_patch)
        return sent if place.is_patch else with_api_defaults(sent, kind, deadline)
    sent = as_sent_by_api_server(obj, kind, deadline)
    return obj if sent is None else with_api_defaults(sent, kind, deadline)


def is_mistyped(attributes: Attributes, deadline: Deadline) -> bool:
    """Return whether an object or former object that an API server should have decoded has wrong types; true if there
    is no time to check.
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
    """Return whether an object or former object that an API server should have decoded has wrong types, or fields that
    its version does not have; true if there is no time to check.
    """
    of = type_of(attributes.kind)
    try:
        return is_mistyped(attributes, deadline) or (
            attributes.is_decoded
            and is_builtin(attributes.kind)
            and of is not None
            and any(
                has_undeclared_field({name: obj[name] for name in obj if name != "status"}, of, deadline)
                for obj in (attributes.object, attributes.old_object)
                if isinstance(obj, dict)
            )
        )
    except BudgetExceeded:
        return True


def _is_template_type(of: Type | None) -> bool:
    return of is not None and of in (kubernetes_type(TEMPLATE), kubernetes_type(_POD_SPEC))


def _mismatch_inside_template(mismatch: Mismatch, podset: PodSet) -> Mismatch:
    """Return a mismatch inside a template with its path from there."""
    inner = mismatch.at[len(podset.path) :]
    return Mismatch(at=("spec", *inner) if podset.bare else inner, expected=mismatch.expected, value=mismatch.value)
