"""InferencePools that send requests to model servers, the routes to the pools, and the autoscalers of the servers.

clients.py and server_checks.py have the rules about pools and autoscalers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.model_servers.server_candidates import MODEL_SERVER
from webhook.facts.shapes.selectors import BY_LABEL
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.autoscaling import HorizontalPodAutoscaler
from webhook.typed.cluster_objects import Service
from webhook.typed.fields import Labels, OptionalNumber, Part, Parts, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed

ROUTE_BACKEND: Final = MODEL_SERVER.rule(
    "model-server/route-backend",
    title="An HTTPRoute names an InferencePool that the gateway does not find or may not use",
    why=(
        "A backend without a group is of the core group, which has no InferencePool. A pool of another namespace needs "
        "a ReferenceGrant there. Otherwise the gateway answers requests with an error."
    ),
    refused_by="the gateway, in the status of the route",
    source="kubernetes-sigs/gateway-api apis/v1/object_reference_types.go",
    function="BackendObjectReference",
    fails="silent",
    issues=("https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/1530",),
)

ROUTE_GROUP: Final = MODEL_SERVER.rule(
    "model-server/route-group",
    title="An HTTPRoute names an InferencePool by a group that the pool does not have",
    why="The alpha API and the v1 API of InferencePools have different groups. The gateway may not find the pool.",
    source="kubernetes-sigs/gateway-api apis/v1/object_reference_types.go",
    function="BackendObjectReference",
    level="advice",
    fails="silent",
)


class PoolPort(Typed):
    """inference.networking.k8s.io Port."""

    number = OptionalNumber()


class PoolSelector(Typed):
    """inference.networking.k8s.io LabelSelector."""

    match_labels = Labels()


class PoolSpec(Typed):
    """inference.networking.k8s.io InferencePoolSpec."""

    selector = Part(PoolSelector)
    target_ports = Parts(PoolPort)


class InferencePool(Object):
    """inference.networking.k8s.io InferencePool."""

    gvk = GroupVersionKind("inference.networking.k8s.io", "v1", "InferencePool")
    spec = Part(PoolSpec)

    @property
    def selected_labels(self) -> Mapping[str, str]:
        """Return the labels that the pool selects."""
        return self.spec.selector.match_labels

    @property
    def numbers(self) -> Sequence[int]:
        """Return the ports of the pool."""
        return [each.number for each in self.spec.target_ports if each.number is not None]


class AlphaPoolSpec(Typed):
    """inference.networking.x-k8s.io v1alpha2 InferencePoolSpec."""

    selector = Labels()
    target_port_number = OptionalNumber()


class AlphaInferencePool(Object):
    """inference.networking.x-k8s.io InferencePool, the API before v1."""

    gvk = GroupVersionKind("inference.networking.x-k8s.io", "v1alpha2", "InferencePool")
    spec = Part(AlphaPoolSpec)

    @property
    def selected_labels(self) -> Mapping[str, str]:
        """Return the labels that the pool selects."""
        return self.spec.selector

    @property
    def numbers(self) -> Sequence[int]:
        """Return the port of the pool, in a list."""
        number = self.spec.target_port_number
        return [] if number is None else [number]


class Backend(Typed):
    """gateway.networking.k8s.io BackendObjectReference; without a group, the kind is of the core group."""

    group = Text()
    kind = Text()
    name = Text()
    namespace = Text()


class RouteRule(Typed):
    """gateway.networking.k8s.io HTTPRouteRule."""

    backend_refs = Parts(Backend)


class RouteSpec(Typed):
    """gateway.networking.k8s.io HTTPRouteSpec."""

    rules = Parts(RouteRule)


class HttpRoute(Object):
    """gateway.networking.k8s.io HTTPRoute."""

    gvk = GroupVersionKind("gateway.networking.k8s.io", "v1", "HTTPRoute")
    spec = Part(RouteSpec)


class GrantSide(Typed):
    """gateway.networking.k8s.io ReferenceGrantFrom and ReferenceGrantTo."""

    group = Text()
    kind = Text()
    name = Text()
    namespace = Text()


class GrantSpec(Typed):
    """gateway.networking.k8s.io ReferenceGrantSpec."""

    from_kinds = Parts(GrantSide, name="from")
    to_kinds = Parts(GrantSide, name="to")


class ReferenceGrant(Object):
    """gateway.networking.k8s.io ReferenceGrant: routes of which namespaces may name backends of its namespace."""

    gvk = GroupVersionKind("gateway.networking.k8s.io", "v1beta1", "ReferenceGrant")
    spec = Part(GrantSpec)


def check_backends_of_route(subject: Subject) -> Iterator[Problem]:
    """Report each backend of an HTTPRoute that names a missing InferencePool, an InferencePool of another API group, or
    an InferencePool that no ReferenceGrant allows. Only administrators learn of InferencePools in other namespaces.
    """
    view = subject.cluster_view()
    for rule in subject.typed(HttpRoute).spec.rules:
        for backend in rule.backend_refs:
            namespace = backend.namespace or subject.namespace
            if backend.kind != InferencePool.gvk.kind or (
                namespace != subject.namespace and not view.sees_all_namespaces
            ):
                continue
            yield from _check_backend(backend, namespace, subject.namespace, view)


def _check_backend(backend: Backend, namespace: str, own: str, view: ClusterView) -> Iterator[Problem]:
    name, group = backend.name, backend.group
    pools = [each for each in _POOLS if view.get_without_noting(each, namespace, name) is not None]
    right = pools[0].group if pools else InferencePool.gvk.group
    at, fix = backend.path("group"), f"set group {right}"
    if any(each.group == group for each in pools):
        if namespace == own or not view.is_whole(ReferenceGrant.gvk) or _is_granted(backend, namespace, own, view):
            return
        at, fix = backend.path("namespace"), f"create a ReferenceGrant in namespace {namespace}"
        message = f"is {namespace}, where no ReferenceGrant lets HTTPRoutes of {own} name InferencePool `{name}`"
    elif not group:
        at, message = backend.at, f"has no group, so the gateway looks for InferencePool `{name}` in the core group"
    elif group not in _GROUPS:
        return
    elif pools:
        message = f"is {group}, but InferencePool `{name}` has the group {right}"
        if not any(each.group == group and view.is_absent(each, namespace, name) for each in _POOLS):
            yield ROUTE_GROUP.problem(at, message, fix)
            return
    elif all(view.is_absent(each, namespace, name) for each in _POOLS):
        at, fix = backend.path("name"), "create the InferencePool, or write its name"
        message = f"is `{name}`, but namespace {namespace} has no InferencePool with this name"
    else:
        return
    yield ROUTE_BACKEND.problem(at, message, fix)


def _is_granted(backend: Backend, namespace: str, own: str, view: ClusterView) -> bool:
    """Return whether a ReferenceGrant lets HTTPRoutes of namespace `own` name a backend of another namespace."""
    return any(
        any((each.group, each.kind, each.namespace) == (*_ROUTE, own) for each in grant.spec.from_kinds)
        and any(
            (each.group, each.kind) == (backend.group, backend.kind) and each.name in ("", backend.name)
            for each in grant.spec.to_kinds
        )
        for grant in view.list_typed(ReferenceGrant, namespace)
    )


_ROUTE: Final = (HttpRoute.gvk.group, HttpRoute.gvk.kind)
_POOLS: Final = (InferencePool.gvk, AlphaInferencePool.gvk)
_GROUPS: Final = frozenset(each.group for each in _POOLS)


def _scaled_object(autoscaler: JSON) -> Sequence[str]:
    """Return the kind and name of the target of an autoscaler."""
    target = HorizontalPodAutoscaler.of(autoscaler).spec.scale_target_ref
    return (f"{target.kind}/{target.name}",)


BY_TARGET: Final = Index("the object that it scales", _scaled_object)


POOL_LOOKUPS: Final = (
    interest_in_fields(InferencePool.gvk, "spec.selector", "spec.targetPorts"),
    interest_in_fields(AlphaInferencePool.gvk, "spec.selector", "spec.targetPortNumber"),
)
ROUTE_LOOKUPS: Final = (*POOL_LOOKUPS, interest_in_fields(ReferenceGrant.gvk, "spec.from", "spec.to"))
LOOKUPS: Final = (
    interest_in_fields(
        Service.gvk,
        *("spec.selector", "spec.ports", "spec.clusterIP", "spec.publishNotReadyAddresses", "spec.type"),
        indexes=(BY_LABEL,),
    ),
    *POOL_LOOKUPS,
    interest_in_fields(HorizontalPodAutoscaler.gvk, "spec.scaleTargetRef", "spec.metrics", indexes=(BY_TARGET,)),
)
