"""Finds mistakes that make a policy fail on every object, although it compiles.

An API server accepts such a policy and reports the failure only at admission, by its failurePolicy: with `Fail`, users
cannot create any object that it matches. Knows the kinds of Kubernetes; the fields of custom kinds are not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.tree import Call, Has, Ident, Literal, Node, Select, children
from webhook.cluster.known_kinds import COMPLETE_GROUPS, KNOWN_KINDS
from webhook.patch.schema import is_builtin
from webhook.policy.atomic_fields import sentences_about_atomic_fields
from webhook.policy.compiled import Policy
from webhook.policy.field_names import undefined_fields, undefined_fields_of_params
from webhook.text.similar_names import nearest_name

_PARAMS = "params"


def sentences_about_certain_failures(policy: Policy) -> Iterator[str]:
    """Yield a sentence, with the fix, for each mistake that makes the policy fail on every object."""
    for fields in (undefined_fields(policy), undefined_fields_of_params(policy)):
        yield from (each.text for each in fields if each.fails)
    yield from sentences_about_atomic_fields(policy)
    yield from _mistakes_in_param_kind(policy)
    yield from _bindings_without_param_ref(policy)


def _mistakes_in_param_kind(policy: Policy) -> Iterator[str]:
    """Yield a paramKind that the API server does not have (policy_source.go: "failed to find resource
    referenced by").
    """
    kind = policy.param_kind
    if kind is None or kind.group not in COMPLETE_GROUPS or is_builtin(kind):
        return
    if (kind.group, kind.kind) in KNOWN_KINDS:
        yield f"spec.paramKind: {kind.kind} has no version `{kind.api_version}`: write a version that is served"
        return
    near = nearest_name(kind.kind, sorted(name for group, name in KNOWN_KINDS if group == kind.group))
    fix = f"did you mean `{near}`?" if near else "name a kind that exists"
    yield f"spec.paramKind: {kind.api_version} has no kind `{kind.kind}`: {fix}"


def _bindings_without_param_ref(policy: Policy) -> Iterator[str]:
    """Yield bindings without a paramRef, which have null `params` (kubernetes v1.36 policy_dispatcher.go
    CollectParams).
    """
    if policy.param_kind is None or not _reads_variable_params(policy) or _asks_for_null_params(policy):
        return
    for binding in policy.bindings:
        if binding.param_source is None:
            example = _fix_for_missing_param_ref(policy.param_kind)
            yield f"binding {binding.name} has no paramRef, so `params` is null and reading it fails: {example}"


def _fix_for_missing_param_ref(kind: GroupVersionKind) -> str:
    return f"add spec.paramRef with the name of a {kind.kind} and a parameterNotFoundAction"


def _reads_variable_params(policy: Policy) -> bool:
    return _PARAMS in policy.names_read_by_body | policy.gate().needs


def _asks_for_null_params(policy: Policy) -> bool:
    """Return whether some expression tests if there are parameters; this is assumed to protect the other
    expressions.
    """
    return any(_compares_params_with_null(parse(each.source)) for each in policy.expressions())


def _compares_params_with_null(node: Node) -> bool:
    if isinstance(node, Call) and node.function in ("_==_", "_!=_") and _is_params_and_null(node.arguments):
        return True
    if isinstance(node, Select) and node.optional and _is_params_variable(node.operand):
        return True
    if isinstance(node, Has) and _is_params_variable(node.operand):
        return True
    return any(map(_compares_params_with_null, children(node)))


def _is_params_variable(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == _PARAMS


def _is_params_and_null(sides: tuple[Node, ...]) -> bool:
    is_null = any(isinstance(side, Literal) and side.value is None for side in sides)
    return is_null and any(map(_is_params_variable, sides))
