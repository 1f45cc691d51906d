"""The objects inside a request's own: its pod templates as virtual Pods, what it wraps, and itself as policies see it.

A template becomes a Pod with the request's namespace; an inner object has the namespace and operation of the request.
All are made once for a request, and kept in its context, so that every policy gets the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from webhook.attributes import JSON, Attributes, GroupVersionKind, GroupVersionResource
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.evaluation.typed_input import TypedInput, needs_decoding, typed_input
from webhook.facts.assumptions import Assumptions
from webhook.facts.pods.pod_sets import listed
from webhook.facts.train_job_pods.fields import pruned_once, pruned_part
from webhook.facts.train_job_pods.installation import known_to
from webhook.facts.view import View
from webhook.paths import render
from webhook.policy.candidates import as_pod
from webhook.policy.matching import Match
from webhook.releases import Release
from webhook.schema import Decoded
from webhook.workloads.embedded import Embedded, embedded
from webhook.workloads.podsets import PodSet, patches, podsets
from webhook.workloads.table import Table

_Listed: TypeAlias = Callable[[JSON, Table, View], tuple[PodSet, ...]]


def _typed(context: RequestContext) -> TypedInput:
    """The objects of the request, decoded; once for all policies."""
    if not isinstance(context.typed, TypedInput):
        context.typed = typed_input(context.attributes, context.deadline)
    return context.typed


def virtual(context: RequestContext) -> tuple[Target, ...]:
    """The pod templates of the request as virtual Pods; the same values for every policy."""
    if not isinstance(context.virtual, tuple):
        context.virtual = _virtual_pods(listed, context)
    return context.virtual


def laid_over(context: RequestContext) -> tuple[Target, ...]:
    """What the request lays over templates of other objects as virtual Pods; the same values for every policy.

    What the installed release of Trainer drops of a patch does not exist, and no policy is asked about it.

    Raises:
        LookupFailed: nobody can say which release is installed.

    """
    if not isinstance(context.patches, tuple):
        made = _virtual_pods(_patches, context)
        if made:
            release = known_to(context.view().unnoted(), Assumptions()).release
            if not _keeps_all(release, context):
                made = tuple(each for each in (_kept(target, release, context) for target in made) if each is not None)
        context.patches = made
    return context.patches


def _keeps_all(release: Release, context: RequestContext) -> bool:
    """Whether a release of Trainer drops nothing of a new object, as nearly always."""
    obj, kind = context.attributes.object, context.attributes.kind.kind
    is_new = obj is not None and context.attributes.old_object is None
    return is_new and pruned_once(obj, kind, release, context.view()) is obj


def _patches(obj: JSON, table: Table, view: View) -> tuple[PodSet, ...]:
    return patches(obj, table, view.deadline)


def _kept(target: Target, release: Release, context: RequestContext) -> Target | None:
    """A patch without what a release of Trainer drops; None where that is all of it."""
    now, before = (_kept_pod(each, target, release, context) for each in (target.object, target.old_object))
    if now is target.object and before is target.old_object:
        return target
    if now is None and before is None:
        return None
    attributes = replace(target.attributes, object=now, old_object=before)
    written = now if target.written is target.object else _kept_pod(target.written, target, release, context)
    return replace(target, attributes=attributes, object=now, old_object=before, written=written)


def _kept_pod(pod: JSON, target: Target, release: Release, context: RequestContext) -> JSON:
    if pod is None or target.podset is None:
        return pod
    at, kind = target.podset.locate(("spec",)), context.attributes.kind.kind
    spec = pruned_part(pod["spec"], at, kind, release, context.deadline)
    return pod if spec is pod["spec"] else None if spec is None else {**pod, "spec": spec}


def _virtual_pods(of: _Listed, context: RequestContext) -> tuple[Target, ...]:
    pairs = [(podset, old) for podset, old in context.deadline.paced(_pairs(of, context)) if podset.path]
    made = _typed(context).templates([podset for podset, _ in pairs])
    return tuple(_target(podset, template, old, context) for (podset, old), template in zip(pairs, made, strict=True))


def _target(podset: PodSet, template: Decoded, old: PodSet | None, context: RequestContext) -> Target:
    """One template as a virtual Pod."""
    attributes = context.attributes
    now, written = (None, None) if attributes.object is None else _pods(podset, template, attributes)
    is_kept = old is None or bool(template.mismatches)
    before = old and pod_of(old.template if is_kept else _typed(context).old_template(old), attributes)
    is_decoded = not needs_decoding(attributes, attributes.kind)
    virtual = as_pod(attributes, object=now, old_object=before, is_decoded=is_decoded)
    place = podset.name if podset.is_patch else render(podset.path)  # a patch is named after its place
    return Target(virtual, context.sent, now, before, written, podset, template.mismatches, place=place)


def _pods(podset: PodSet, template: Decoded, attributes: Attributes) -> tuple[JSON, JSON]:
    """A template as a Pod, decoded and as it is written; one value where they are the same."""
    written = pod_of(podset.template, attributes)
    is_kept = bool(template.mismatches) or template.value is podset.template
    return (written if is_kept else pod_of(template.value, attributes)), written


def entered(context: RequestContext) -> tuple[Target, ...]:
    """The objects inside the request's own; the same values for every policy."""
    if not isinstance(context.entered, tuple):
        attributes, table, paced = context.attributes, context.table, context.deadline.paced
        before = {each.path: each for each in paced(embedded(attributes.old_object, table))}
        now = {each.path: each for each in paced(embedded(attributes.object, table))} or before
        context.entered = tuple(_inner(each, before.get(path), context) for path, each in paced(now.items()))
    return context.entered


def _inner(inner: Embedded, before: Embedded | None, context: RequestContext) -> Target:
    """One object inside the request's own, as if it were sent itself."""
    attributes = context.attributes
    group, version = inner.row.group, str(inner.object["apiVersion"]).rpartition("/")[2]
    kind = GroupVersionKind(group, version, inner.row.kind)
    resource = GroupVersionResource(group, version, inner.row.resource)
    written = _placed(inner.object, attributes) if attributes.object is not None else None
    old = _placed(before.object, attributes) if before is not None else None
    virtual = replace(attributes, kind=kind, resource=resource, request_kind=kind, request_resource=resource)
    virtual = replace(virtual, object=written, old_object=old, is_decoded=False)
    place = PodSet(name="", path=inner.path, template=inner.object)
    return _decoded(virtual, typed_input(virtual, context.deadline), place, context)


def _decoded(attributes: Attributes, typed: TypedInput, place: PodSet | None, context: RequestContext) -> Target:
    """An object as policies see it, which is as it stands where it is not of its type outside its pod templates."""
    written, old = attributes.object, attributes.old_object
    held = podsets(written, context.table, context.deadline) if typed.mismatches else ()
    own = typed.own(held)
    now, before = (written, old) if own else (typed.object, typed.old_object)
    at = render(place.path) if place else ""
    if now is not written or before is not old:
        attributes = replace(attributes, object=now, old_object=before)
    return Target(attributes, context.sent, now, before, written, place, own, typed.omitted(held), place=at)


def _placed(obj: JSON, attributes: Attributes) -> JSON:
    """An object in the request's namespace."""
    metadata = obj.get("metadata") or {}
    if not attributes.namespace or not isinstance(metadata, dict) or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": attributes.namespace}}


def whole(match: Match, context: RequestContext) -> Target:
    """The request's own object; in the version it was sent, the same value for every policy."""
    if not isinstance(context.whole, Target):
        sent = context.attributes
        if needs_decoding(sent, sent.kind):
            context.whole = _decoded(sent, _typed(context), None, context)
        else:
            context.whole = Target(sent, context.sent, sent.object, sent.old_object, sent.object)
    own = context.whole
    if match is context.sent:
        return own
    now, before = (in_version(each, match) for each in (own.object, own.old_object))
    written = now if own.written is own.object else in_version(own.written, match)
    return Target(own.attributes, match, now, before, written, None, own.mismatches, own.omitted)


def in_version(obj: JSON, match: Match) -> JSON:
    """An object in the version that matched, where only its apiVersion differs."""
    if match.conversion != "version" or not isinstance(obj, dict):
        return obj
    return {**obj, "apiVersion": match.kind.api_version}


def _pairs(of: _Listed, context: RequestContext) -> Iterator[tuple[PodSet, PodSet | None]]:
    """The templates or patches of the object with those of their names in the old one; on DELETE the old ones."""
    attributes, table, view = context.attributes, context.table, context.view()
    old = of(attributes.old_object, table, view) if attributes.old_object else ()
    before = {podset.name: podset for podset in old}
    if attributes.object is None:
        yield from ((podset, podset) for podset in before.values())
        return
    for podset in of(attributes.object, table, view):
        yield podset, before.get(podset.name)


def pod_of(template: JSON, attributes: Attributes) -> JSON:
    """A template as a Pod."""
    metadata = metadata_of(template)
    if attributes.namespace and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": attributes.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def metadata_of(template: JSON) -> JSON:
    """The metadata of a template; none where a text or a list stands in its place, which no controller takes."""
    metadata = template.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
