"""The objects that a policy speaks about: the request's own, and for `expand: pods` every pod template inside it.

With `expand: objects` it speaks about the objects inside the request's too: what an AppWrapper wraps, the TrainJob of
an OptimizationJob. They have the request's namespace and operation, and what is said about them is re-rooted likewise.
A template becomes a virtual Pod with the request's namespace; the operations and selectors of the Pod rule carry over.
With `patches`, too, so does what a TrainJob lays over the templates of its runtime; with `resources`, it is asked about
the object itself where that has resources outside its templates. What is not of the types of its kind is shown to
policies about types alone. What is said about the virtual Pod is re-rooted to the object: messages get the template's
path (target.py), mutations go back into the template (rewriting.py). Knows the workload table, no expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from webhook.attributes import POD, Operation
from webhook.evaluation.inner_objects import entered, laid_over, virtual, whole
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.evaluation.typed_input import needs_decoding
from webhook.policy.candidates import PODS, Candidate, as_pod
from webhook.policy.compiled import Binding, Policy
from webhook.policy.matching import NAMESPACES, Criteria, Match, matches, matches_namespace
from webhook.workloads.resource_fields import has_resources


def targets(policy: Policy, context: RequestContext) -> tuple[Target, ...]:
    """The request's own object, if the policy's constraints match it, then its pod templates, if the policy expands.

    Policies with the same constraints get the same value.

    Raises:
        BindingError: the namespace that a selector asks about does not exist.
        LookupFailed: nobody can say.
        BudgetExceeded: the time is up.

    """
    key = (id(policy.criteria), policy.judges_types, None if context.is_pod else policy.scope)
    known: tuple[Target, ...] | None = context.matched.get(key)
    if known is None:
        made = tuple(_asked(policy, context))  # one value for the same targets: bindings are asked once about it
        known = context.matched[key] = context.matched.setdefault(("listed", *map(id, made)), made)
    return known


def own(context: RequestContext) -> tuple[Target, ...]:
    """The request's own object where it is all that may be asked about: a Pod that nobody has to decode; else ()."""
    if context.own is None:
        is_all = context.is_pod and not needs_decoding(context.attributes, POD)
        context.own = (whole(context.sent, context),) if is_all else ()
    return context.own


def asked(candidate: Candidate, context: RequestContext) -> tuple[Target, ...]:
    """What a candidate is asked about. Raises as `targets`."""
    return (candidate.is_certain and own(context)) or targets(candidate.policy, context)


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


def _targets(policy: Policy, context: RequestContext) -> Iterable[Target]:
    attributes = context.attributes
    match = _matched(policy.criteria, context)
    own = () if match is None else (whole(match, context),)
    if context.is_pod or attributes.sub_resource or attributes.operation is Operation.CONNECT:
        return own  # a Pod has nothing inside
    return chain(own, _matched_inside(policy, context))


def _matched_inside(policy: Policy, context: RequestContext) -> Iterator[Target]:
    """Those besides the request's own object that the criteria of a policy match."""
    for each in context.deadline.each(_inside(policy, context)):
        if _takes(policy.criteria, each, context):
            yield each


def _takes(criteria: Criteria, target: Target, context: RequestContext) -> bool:
    """Whether criteria match an object of the request; asked once for all templates, unless they select by labels."""
    attributes = target.seen_by_criteria
    resource = attributes.resource
    known = context.certain.get(id(criteria))
    if known is not None and known.templates is not None and resource == attributes.request_resource == PODS:
        return known.templates
    key = ("taken", id(criteria), resource, attributes.request_resource)
    if key in context.matched:
        return bool(context.matched[key])
    labels, equal = context.namespace_labels, context.equivalents
    taken = matches(criteria, attributes, labels, equal, target.match) is not None
    if not criteria.objects.requirements and resource.resource != NAMESPACES.resource:
        context.matched[key] = taken
    return taken


def _matched(criteria: Criteria, context: RequestContext) -> Match | None:
    """As what criteria match the request, asked once for all policies that have them."""
    known = context.certain.get(id(criteria))
    if known is not None and known.request is not None:
        return context.sent if known.request else None
    key = ("request", id(criteria))
    if key not in context.matched:
        labels, equal = context.namespace_labels, context.equivalents
        context.matched[key] = matches(criteria, context.attributes, labels, equal, context.sent)
    match: Match | None = context.matched[key]
    return match


def _inside(policy: Policy, context: RequestContext) -> tuple[Target, ...]:
    """What a policy is asked about besides the request's own object, listed once for all that ask for the same."""
    key = ("inside", policy.scope)
    known: tuple[Target, ...] | None = context.matched.get(key)
    if known is None:
        known = context.matched[key] = _listed_inside(policy, context)
    return known


def _listed_inside(policy: Policy, context: RequestContext) -> tuple[Target, ...]:
    inside: tuple[Target, ...] = ()
    if policy.reads_resources and has_resources(context.attributes.object, context.table):
        own = whole(context.sent, context)
        inside = (replace(own, criteria_attributes=as_pod(context.attributes)),)
    if policy.expands:
        inside += virtual(context)
    if policy.reads_patches:
        inside += laid_over(context)
    if policy.enters:
        inside += entered(context)
    return inside


def bound(binding: tuple[Binding, bool], matched: tuple[Target, ...], context: RequestContext) -> tuple[Target, ...]:
    """Those of a policy's targets that a binding of a candidate applies to; the same value for the same question.

    Raises:
        BindingError: the namespace that a selector asks about does not exist.
        LookupFailed: nobody can say.

    """
    criteria, is_certain = binding[0].criteria, binding[1]
    if criteria is None:
        return matched
    if is_certain and matched is context.own:
        return matched if _is_selected(criteria, context) else ()
    key = (id(criteria), id(matched))
    kept: tuple[Target, ...] | None = context.matched.get(key)
    if kept is None:
        kept = tuple([each for each in context.deadline.each(matched) if _takes(criteria, each, context)])
        context.matched[key] = kept
    return kept


def _is_selected(criteria: Criteria, context: RequestContext) -> bool:
    """Whether criteria select the request's namespace, asked once for all bindings that have them."""
    key = ("namespace", id(criteria))
    selected: bool | None = context.matched.get(key)
    if selected is None:
        selected = matches_namespace(criteria.namespaces, context.attributes, context.namespace_labels)
        context.matched[key] = selected
    return selected
