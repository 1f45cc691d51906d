"""The parameters of a binding: which objects, where from, and what their absence means.

Knows bindings and the cluster view. One evaluation per parameter; None stands for "without parameters". Source:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/generic/policy_dispatcher.go (CollectParams).

A policy over checks has its defaults in the catalogue of its rules. Where its parameter is missing and the binding
allows that, it is evaluated with an empty one: a ConfigMap that somebody deletes must not switch every rule off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster import Cluster
from webhook.cluster.cluster_scoped import is_built_in, is_cluster_scoped
from webhook.decisions import Decision
from webhook.errors import BindingError
from webhook.evaluation.request_context import RequestContext
from webhook.manifests.label_selectors import labels_of
from webhook.policy.compiled import Binding, ParamSource, Policy
from webhook.policy.standing_params import is_standing


def collect(policy: Policy, binding: Binding, context: RequestContext) -> Sequence[JSON]:
    """The parameters to evaluate a policy with; () when none is found, and the binding allows that.

    Raises:
        BindingError: the reference cannot be used for this request, or none is found and that is denied.
        LookupFailed: nobody can say.

    """
    kind, source = policy.param_kind, binding.param_source
    if kind is None or source is None:
        return _WITHOUT
    key = (id(kind), id(source))
    held = context.standing.params if is_standing(source) else context.params
    collected = held.get(key)
    if collected is None:
        collected = held[key] = _collect(kind, source, context)
    return collected if collected or not policy.checks else _defaults(kind)


_WITHOUT = (None,)


@lru_cache(maxsize=64)
def _defaults(kind: GroupVersionKind) -> Sequence[JSON]:
    """A parameter that says nothing."""
    return ({"apiVersion": kind.api_version, "kind": kind.kind},)


def _collect(kind: GroupVersionKind, source: ParamSource, context: RequestContext) -> Sequence[JSON]:
    cluster = context.cluster
    where = _namespace(kind, source, context.attributes.namespace, cluster)
    if source.name:
        param = cluster.get(kind, where, source.name)
        params = () if param is None else (_typed(param, kind),)
    else:
        params = tuple(_typed(param, kind) for param in _selected(kind, source, where, cluster))
    if not params and source.denies_absence:
        raise BindingError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return params


def _namespace(kind: GroupVersionKind, source: ParamSource, namespace: str, cluster: Cluster) -> str:
    if has_no_namespace(kind, cluster):
        if source.namespace:
            raise BindingError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not source.namespace and not namespace:
        raise BindingError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return source.namespace or namespace


def has_no_namespace(kind: GroupVersionKind, cluster: Cluster) -> bool:
    """Say whether objects of a parameter kind have no namespace; of a custom kind the cluster knows it better."""
    scoped = _built_in_scope(kind)
    return cluster.is_namespaced(kind) is False if scoped is None else scoped


@lru_cache(maxsize=64)
def _built_in_scope(kind: GroupVersionKind) -> bool | None:
    """Whether a built-in kind has no namespace; None for kinds that are not built in."""
    return True if is_cluster_scoped(kind) else False if is_built_in(kind) else None


def _selected(kind: GroupVersionKind, source: ParamSource, namespace: str, cluster: Cluster) -> Sequence[JSON]:
    chosen = source.selector
    if chosen is None:
        return ()
    listed = cluster.list(kind, namespace or None, chosen.text)
    params = [param for param in listed if chosen.matches(labels_of(param))]
    return sorted(
        params, key=lambda param: (_metadata(param).get("namespace") or "", _metadata(param).get("name") or "")
    )


def _metadata(param: JSON) -> JSON:
    return param.get("metadata") or {}


def _typed(param: JSON, kind: GroupVersionKind) -> JSON:
    """A parameter with apiVersion and kind of the paramKind, whichever version the view holds it in."""
    if param.get("apiVersion") == kind.api_version and param.get("kind") == kind.kind:
        return param
    return {**param, "apiVersion": kind.api_version, "kind": kind.kind}


def name_of(param: JSON) -> str:
    """`namespace/name`, or `name` where there is no namespace; "" without parameters."""
    if param is None:
        return ""
    metadata = param.get("metadata") or {}
    namespace, name = metadata.get("namespace"), metadata.get("name") or ""
    return f"{namespace}/{name}" if namespace else name


def admitted(binding: Binding, param: JSON, path: str = "") -> Sequence[Decision]:
    """The decisions of rules that hold with a parameter, on the template at a path."""
    return binding.admits if param is None and not path else _admitted(binding, name_of(param), path)


@lru_cache(maxsize=1024)
def _admitted(binding: Binding, param: str, path: str) -> tuple[Decision, ...]:
    return tuple(replace(decision, param=param, path=path) for decision in binding.admits)
