"""The objects that a policy speaks about: the request's own, and for `expand: pods` every pod template inside it.

With `expand: objects` it speaks about the objects inside the request's too: what an AppWrapper wraps, the TrainJob of
an OptimizationJob. They have the request's namespace and operation, and what is said about them is re-rooted likewise.
A template becomes a virtual Pod with the request's namespace; the operations and selectors of the Pod rule carry over.
With `patches`, too, so does what a TrainJob lays over the templates of its runtime; with `resources`, it is asked about
the object itself where that has resources outside its templates. What is not of the types of its kind is shown to
policies about types alone. What is said about the virtual Pod is re-rooted to the object: messages get the template's
path, mutations go back into the template. Knows the workload table, no expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from webhook import paths
from webhook.attributes import JSON, Attributes, GroupVersionKind, GroupVersionResource, Operation
from webhook.deadline import Deadline
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.typed_input import TypedInput, needs_decoding, typed, typed_input
from webhook.paths import FieldPath
from webhook.policy.compiled import Policy
from webhook.policy.matching import Criteria, Match, matches
from webhook.problem import Problem
from webhook.schema import Decoded, Mismatch
from webhook.workloads.embedded import Embedded, embedded
from webhook.workloads.podsets import PodSet, patches, podsets
from webhook.workloads.resource_fields import has_resources
from webhook.workloads.table import Table

POD = GroupVersionKind("", "v1", "Pod")
PODS = GroupVersionResource("", "v1", "pods")
_Listed: TypeAlias = Callable[[JSON, Table, Deadline], tuple[PodSet, ...]]


@dataclass(frozen=True, slots=True)
class Target:
    """One object that a policy speaks about, in the version that matched.

    `attributes` are its own, which criteria see unless there are `criteria_attributes`, `match` is what `request`
    shows, `podset` the template of a virtual Pod, or the place of an object inside the request's. `object` and
    `old_object` are decoded, `written` is the object as it stands, to which changes are made; `mismatches` are what of
    it is not of its type, and where there are some, the objects are not decoded; `omitted` is where `object` is
    without something that is written.
    """

    attributes: Attributes
    match: Match
    object: JSON
    old_object: JSON
    written: JSON
    podset: PodSet | None = None
    mismatches: tuple[Mismatch, ...] = ()
    omitted: tuple[FieldPath, ...] = ()
    criteria_attributes: Attributes | None = None

    @property
    def seen_by_criteria(self) -> Attributes:
        """The attributes that constraints and bindings match."""
        return self.criteria_attributes or self.attributes

    @property
    def kind(self) -> GroupVersionKind:
        """The kind of the object: Pod for a template."""
        return self.attributes.kind if self.podset else self.match.kind

    def reroot(self, message: str) -> tuple[str, str]:
        """The path that a message is about, and the message with that path as the whole object has it.

        The one place where a sentence is read: the text of a policy that is CEL alone may begin with a field path, as
        the API server's own errors do. What checks say has its path beside it.
        """
        path, rest = paths.leading(message) if message else ((), "")
        if self.podset is None:
            return paths.render(path), message
        where = paths.render(self.podset.locate(path) if path else self.podset.path)
        if not message:
            return where, ""
        return where, f"{where}{self._others(rest)}" if path else f"{where}: {message}"

    def locate(self, problem: Problem) -> Problem:
        """A problem of this object as one of the whole object."""
        if self.podset is None:
            return problem
        path = self.podset.locate(paths.parse(problem.path)) if problem.path else self.podset.path
        return replace(problem, path=paths.render(path))

    def _others(self, text: str) -> str:
        if self.podset is None or self.podset.elsewhere:
            return text
        return paths.reroot_others(text, paths.render(self.podset.locate(("spec",))))


def targets(policy: Policy, context: RequestContext) -> tuple[Target, ...]:
    """The request's own object, if the policy's constraints match it, then its pod templates, if the policy expands.

    Policies with the same constraints get the same value.

    Raises:
        BindingError: the namespace that a selector asks about does not exist.
        LookupFailed: nobody can say.
        BudgetExceeded: the time is up.

    """
    words = (policy.expands, policy.reads_patches, policy.enters, policy.reads_resources)
    key = (id(policy.criteria), *words, policy.judges_types)
    known: tuple[Target, ...] | None = context.matched.get(key)
    if known is None:
        known = context.matched[key] = tuple(_asked(policy, context))
    return known


def _asked(policy: Policy, context: RequestContext) -> Iterator[Target]:
    """The targets of a policy without those that only policies about types are asked about, which are noted."""
    for target in _targets(policy, context):
        if target.mismatches or target.omitted:
            context.inputs[id(target.object)] = target
        if not target.mismatches:
            yield target
        elif policy.judges_types:
            context.judged.add(id(target.object))
            yield target
        else:
            context.undecoded.setdefault(id(target.object), (target, policy))


def _targets(policy: Policy, context: RequestContext) -> Iterator[Target]:
    attributes = context.attributes
    match = matches(policy.criteria, attributes, context.namespace_labels, context.equivalents, context.sent)
    if match is not None:
        yield _whole(match, context)
    if attributes.sub_resource or attributes.operation is Operation.CONNECT:
        return
    labels, equal = context.namespace_labels, context.equivalents
    paced = context.deadline.paced(_inside(policy, context))
    yield from (each for each in paced if matches(policy.criteria, each.seen_by_criteria, labels, equal))


def _inside(policy: Policy, context: RequestContext) -> tuple[Target, ...]:
    """What a policy is asked about besides the request's own object."""
    inside: tuple[Target, ...] = ()
    if policy.reads_resources and has_resources(context.attributes.object, context.table):
        whole = _whole(context.sent, context)
        inside = (replace(whole, criteria_attributes=_as_pod(context.attributes)),)
    if policy.expands:
        inside += _virtual(context)
    if policy.reads_patches:
        inside += _patches(context)
    if policy.enters:
        inside += _entered(context)
    return inside


def bound(criteria: Criteria | None, matched: tuple[Target, ...], context: RequestContext) -> tuple[Target, ...]:
    """Those of a policy's targets that the criteria of a binding match too; the same value for the same question.

    Raises:
        BindingError: the namespace that a selector asks about does not exist.
        LookupFailed: nobody can say.

    """
    if criteria is None:
        return matched
    key = (id(criteria), id(matched))
    kept: tuple[Target, ...] | None = context.matched.get(key)
    if kept is None:
        labels, equal = context.namespace_labels, context.equivalents
        paced = context.deadline.paced(matched)
        kept = tuple(each for each in paced if matches(criteria, each.seen_by_criteria, labels, equal))
        context.matched[key] = kept
    return kept


def _typed(context: RequestContext) -> TypedInput:
    """The objects of the request, decoded; once for all policies."""
    if not isinstance(context.typed, TypedInput):
        context.typed = typed_input(context.attributes, context.deadline)
    return context.typed


def _virtual(context: RequestContext) -> tuple[Target, ...]:
    """The pod templates of the request as virtual Pods; the same values for every policy. A Pod holds none."""
    if context.attributes.kind == POD:
        return ()
    if not isinstance(context.virtual, tuple):
        context.virtual = _virtual_pods(podsets, context)
    return context.virtual


def _patches(context: RequestContext) -> tuple[Target, ...]:
    """What the request lays over templates of other objects as virtual Pods; the same values for every policy."""
    if not isinstance(context.patches, tuple):
        context.patches = _virtual_pods(patches, context)
    return context.patches


def _virtual_pods(listed: _Listed, context: RequestContext) -> tuple[Target, ...]:
    pairs = [(podset, old) for podset, old in context.deadline.paced(_pairs(listed, context)) if podset.path]
    made = _typed(context).templates([podset for podset, _ in pairs])
    return tuple(_target(podset, template, old, context) for (podset, old), template in zip(pairs, made, strict=True))


def _as_pod(attributes: Attributes) -> Attributes:
    """A request as criteria about Pods see it."""
    return replace(attributes, kind=POD, resource=PODS, request_kind=POD, request_resource=PODS)


def _target(podset: PodSet, template: Decoded, old: PodSet | None, context: RequestContext) -> Target:
    """One template as a virtual Pod."""
    attributes = context.attributes
    now, written = (None, None) if attributes.object is None else _pods(podset, template, attributes)
    is_kept = old is None or bool(template.mismatches)
    before = old and _pod(old.template if is_kept else _typed(context).old_template(old), attributes)
    virtual = replace(
        _as_pod(attributes),
        object=now,
        old_object=before,
        is_decoded=not needs_decoding(attributes, attributes.kind),
    )
    return Target(virtual, context.sent, now, before, written, podset, template.mismatches)


def _pods(podset: PodSet, template: Decoded, attributes: Attributes) -> tuple[JSON, JSON]:
    """A template as a Pod, decoded and as it is written; one value where they are the same."""
    written = _pod(podset.template, attributes)
    is_kept = bool(template.mismatches) or template.value is podset.template
    return (written if is_kept else _pod(template.value, attributes)), written


def _entered(context: RequestContext) -> tuple[Target, ...]:
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
    if now is not written or before is not old:
        attributes = replace(attributes, object=now, old_object=before)
    return Target(attributes, context.sent, now, before, written, place, own, typed.omitted(held))


def _placed(obj: JSON, attributes: Attributes) -> JSON:
    """An object in the request's namespace."""
    metadata = obj.get("metadata") or {}
    if not attributes.namespace or not isinstance(metadata, dict) or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": attributes.namespace}}


def _whole(match: Match, context: RequestContext) -> Target:
    """The request's own object; in the version it was sent, the same value for every policy."""
    if not isinstance(context.whole, Target):
        sent = context.attributes
        if needs_decoding(sent, sent.kind):
            context.whole = _decoded(sent, _typed(context), None, context)
        else:
            context.whole = Target(sent, context.sent, sent.object, sent.old_object, sent.object)
    whole = context.whole
    if match is context.sent:
        return whole
    now, before = (_in_version(each, match) for each in (whole.object, whole.old_object))
    written = now if whole.written is whole.object else _in_version(whole.written, match)
    return Target(whole.attributes, match, now, before, written, None, whole.mismatches, whole.omitted)


def _in_version(obj: JSON, match: Match) -> JSON:
    if match.conversion != "version" or not isinstance(obj, dict):
        return obj
    return {**obj, "apiVersion": match.kind.api_version}


def _pairs(listed: _Listed, context: RequestContext) -> Iterator[tuple[PodSet, PodSet | None]]:
    """The templates or patches of the object with those of their names in the old one; on DELETE the old ones."""
    attributes, table, until = context.attributes, context.table, context.deadline
    old = listed(attributes.old_object, table, until) if attributes.old_object else ()
    before = {podset.name: podset for podset in old}
    if attributes.object is None:
        yield from ((podset, podset) for podset in before.values())
        return
    for podset in listed(attributes.object, table, until):
        yield podset, before.get(podset.name)


def _pod(template: JSON, attributes: Attributes) -> JSON:
    """A template as a Pod."""
    metadata = _metadata(template)
    if attributes.namespace and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": attributes.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def _metadata(template: JSON) -> JSON:
    """The metadata of a template; none where a text or a list stands in its place, which no controller takes."""
    metadata = template.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def refresh(target: Target, obj: JSON, deadline: Deadline | None = None) -> Target | None:
    """The target in the object as it is by now; None when its template is gone."""
    podset = target.podset
    if podset is None:
        seen = _in_version(obj, target.match)
        return target if seen is target.written else _renewed(target, seen, deadline)
    template_now = paths.get(obj, podset.path)
    template = {"spec": template_now} if podset.bare else template_now
    if not isinstance(template_now, dict):
        return None
    if template_now is (podset.template.get("spec") if podset.bare else podset.template):
        return target
    now = replace(podset, template=template)
    return _renewed(replace(target, podset=now), _pod(template, target.attributes), deadline)


def _renewed(target: Target, written: JSON, deadline: Deadline | None) -> Target:
    made = typed(written, target.kind, target.attributes, deadline or Deadline())
    return replace(target, object=made.value, written=written)


class Rewriting:
    """The whole object while its templates are changed one after the other.

    What stands on the way to a template is copied once and then changed in place: thousands of templates of one list
    would otherwise be as many copies of that list. Whoever shows the object, or an object inside it, to somebody who
    may remember it by its identity must call `seal` first.
    """

    def __init__(self) -> None:
        self._own: dict[int, JSON] = {}  # kept alive so that their ids stay theirs

    def seal(self) -> None:
        """Leave everything that was made so far as it is."""
        if self._own:
            self._own = {}

    def put(self, obj: JSON, path: paths.FieldPath, new: JSON) -> JSON:
        """The object with another value at a path."""
        if not path:
            return new
        root = inner = self._owned(obj)
        for step in path[:-1]:
            held = self._owned(inner[step])
            inner[step] = held
            inner = held
        inner[path[-1]] = new
        return root

    def _owned(self, held: JSON) -> JSON:
        if id(held) not in self._own:
            held = held.copy()
            self._own[id(held)] = held
        return held


def put_back(obj: JSON, target: Target, pod: JSON, rewriting: Rewriting | None = None) -> JSON:
    """The whole object with a changed virtual Pod back in its template; everything untouched stays the same value."""
    into = rewriting or Rewriting()
    podset, before = target.podset, target.written
    if pod is before:
        return obj
    if podset is None:
        return pod if target.match.conversion == "none" else {**pod, "apiVersion": obj["apiVersion"]}
    if podset.bare:
        return into.put(obj, podset.path, pod.get("spec"))
    template = dict(podset.template)
    if "spec" not in pod:
        template.pop("spec", None)
    elif pod["spec"] is not before["spec"]:
        template["spec"] = pod["spec"]
    if pod.get("metadata") is not before["metadata"]:
        added = not _metadata(podset.template).get("namespace")
        metadata = {k: v for k, v in _metadata(pod).items() if not (added and k == "namespace")}
        if metadata or "metadata" in template:
            template["metadata"] = metadata
    return into.put(obj, podset.path, template)
