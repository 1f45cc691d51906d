"""Finds the parameters of a binding, and decides what happens without parameters.

A policy is evaluated once for each parameter. The parameter None means an evaluation without parameter. Source:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/generic/policy_dispatcher.go (CollectParams).

A policy with checks has default levels in the catalogue of its rules. If its parameter is missing and the binding
allows that, the policy is evaluated with an empty parameter. So a deleted ConfigMap does not switch off all rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from webhook.apimachinery.attributes import JSON, Attributes, GroupVersionKind
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.known_kinds import is_built_in, is_cluster_scoped
from webhook.cluster.layered import LayeredCluster
from webhook.cluster.packed import charge_for_objects
from webhook.cluster.site_params import SITE, is_below_site, site_keys_of, with_keys
from webhook.deadline import Deadline
from webhook.errors import BindingError, MissingParams, UnknownNamespaceOrName
from webhook.manifests.configuration import EMPTY, FileConfiguration
from webhook.policy.compiled import Binding, ParamSource, Policy
from webhook.policy.policy_set import PolicySet
from webhook.policy.static_params import Param, create_param, is_static

EMPTY_KEYS: Final[Mapping[str, JSON]] = MappingProxyType({})


class RequestParams:
    """Finds the parameters of bindings for one request: in the cluster, or among the shipped parameters if the cluster
    has none.

    `static` has the parameters that are the same for all requests (policy/static_params.py).
    """

    __slots__ = (
        "_attributes",
        "_cluster",
        "_configuration",
        "_deadline",
        "_of_request",
        "_own_namespace",
        "_shipped",
        "static",
    )

    def __init__(self, attributes: Attributes, cluster: Cluster, policies: PolicySet, deadline: Deadline) -> None:
        self._attributes = attributes
        self._cluster = cluster
        self._deadline = deadline
        self._configuration = policies.configuration
        self._own_namespace = policies.own_namespace
        self._shipped = policies.shipped_params
        self.static = policies.static_params.params_found_in(cluster)
        self._of_request: dict[Binding, Sequence[Param]] = {}

    def params_of_binding(self, policy: Policy, binding: Binding) -> Sequence[Param]:
        """Return the parameters for a policy; () if there is no parameter and the binding allows this.

        Raises:
            BindingError: the reference cannot be used for this request, or there is no parameter and the binding does
                not allow this.
            LookupFailed: the objects are unknown.
        """
        params = self.static.get(binding)
        if params is None:
            params = self._of_request.get(binding)
        if params is None:
            params = self._collect_params(policy, binding)
            source = binding.param_source
            is_same_for_all = policy.param_kind is None or source is None or is_static(source)
            (self.static if is_same_for_all else self._of_request)[binding] = params
        return params

    def _collect_params(self, policy: Policy, binding: Binding) -> Sequence[Param]:
        kind, source = policy.param_kind, binding.param_source
        if kind is None or source is None:
            return (create_param(binding, None),)
        objects = self._find_params_or_shipped_ones(kind, source)
        if not objects and policy.checks:
            objects = ({"apiVersion": kind.api_version, "kind": kind.kind},)  # without data
        if is_below_site(kind, source.namespace, source.name, self._own_namespace):
            objects = _with_new_keys(objects, source, self._keys_of_site(source.name))
        configuration = self._configuration
        if configuration is not EMPTY and kind.kind == "ConfigMap":
            objects = _with_configured_keys(objects, source, configuration, has_checks=bool(policy.checks))
        return tuple(create_param(binding, obj) for obj in objects)

    def _keys_of_site(self, name: str) -> dict[str, JSON]:
        """Return the keys of a ConfigMap that the cluster's `claimgate-site` sets.

        Raises:
            LookupFailed: the objects are unknown.
        """
        return site_keys_of(self._cluster.get(SITE.gvk, self._own_namespace, SITE.scope.name), name)

    def _find_params_or_shipped_ones(self, kind: GroupVersionKind, source: ParamSource) -> Sequence[JSON]:
        """Return the objects that a reference names in the cluster. If the cluster has none, return the shipped
        objects. If the request's namespace is unknown, only shipped objects are searched.
        """
        shipped, namespace = self._shipped, self._attributes.namespace
        cluster = self._cluster if shipped is None else LayeredCluster(self._cluster, shipped)
        try:
            return _params_named_or_selected(kind, source, namespace, cluster, self._deadline)
        except UnknownNamespaceOrName:
            return _params_named_or_selected(kind, source, namespace, shipped or FilesCluster(), self._deadline)


def _with_configured_keys(
    objects: Sequence[JSON], source: ParamSource, configuration: FileConfiguration, *, has_checks: bool
) -> Sequence[JSON]:
    """Return the ConfigMaps with the keys that the configuration sets. If there is no ConfigMap and the configuration
    sets keys for it, a ConfigMap is created.
    """
    releases = configuration.releases.model_dump(exclude_none=True) if has_checks else {}
    released = tuple(with_keys(obj, releases) for obj in objects)
    return _with_new_keys(released, source, configuration.params.get(source.name, {}), releases)


def _with_new_keys(
    objects: Sequence[JSON], source: ParamSource, new_keys: Mapping[str, JSON], others: Mapping[str, JSON] = EMPTY_KEYS
) -> Sequence[JSON]:
    """Return the ConfigMaps with `new_keys` set. If there is no ConfigMap and `new_keys` is not empty, return a new
    ConfigMap with `others` and `new_keys`.
    """
    if new_keys and not objects:
        metadata = {"name": source.name, "namespace": source.namespace}
        return ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**others, **new_keys}},)
    return tuple(with_keys(obj, new_keys) for obj in objects)


def _params_named_or_selected(
    kind: GroupVersionKind, source: ParamSource, namespace: str, cluster: Cluster, deadline: Deadline
) -> Sequence[JSON]:
    namespace_of_params = _namespace_of_params(kind, source, namespace, cluster)
    if source.name:
        param = cluster.get(kind, namespace_of_params, source.name)
        params = () if param is None else (_param_with_kind(param, kind),)
    else:
        selected = _params_selected(kind, source, namespace_of_params, cluster, deadline)
        params = tuple(_param_with_kind(param, kind) for param in selected)
    if not params and source.denies_absence:
        raise MissingParams(_missing_params_in_words(kind, source, namespace_of_params))
    return params


def _missing_params_in_words(kind: GroupVersionKind, source: ParamSource, namespace: str) -> str:
    """Return a text for a missing parameter, such as "no ConfigMap `limits` in namespace `team`"."""
    chosen = source.selector.text if source.selector is not None else ""
    name = f" `{source.name}`" if source.name else f" with labels `{chosen}`" if chosen else ""
    return f"no {kind.kind}{name}{f' in namespace `{namespace}`' if namespace else ''}"


def _namespace_of_params(kind: GroupVersionKind, source: ParamSource, namespace: str, cluster: Cluster) -> str:
    if has_no_namespace(kind, cluster):
        if source.namespace:
            raise BindingError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not source.namespace and not namespace:
        raise BindingError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return source.namespace or namespace


def has_no_namespace(kind: GroupVersionKind, cluster: Cluster) -> bool:
    """Return whether a parameter kind is cluster-scoped. For a custom kind, the view of the cluster says this."""
    if is_cluster_scoped(kind):
        return True
    return not is_built_in(kind) and cluster.is_namespaced(kind) is False


def _params_selected(
    kind: GroupVersionKind, source: ParamSource, namespace: str, cluster: Cluster, deadline: Deadline
) -> Sequence[JSON]:
    chosen = source.selector
    if chosen is None:
        return ()
    objects = cluster.list(kind, namespace or None, chosen.text)
    params = [param for param in charge_for_objects(objects, deadline) if chosen.selects(param)]
    return sorted(
        params,
        key=lambda param: (
            _metadata_of_param(param).get("namespace") or "",
            _metadata_of_param(param).get("name") or "",
        ),
    )


def _metadata_of_param(param: JSON) -> JSON:
    return param.get("metadata") or {}


def _param_with_kind(param: JSON, kind: GroupVersionKind) -> JSON:
    """Return a parameter with the apiVersion and kind of the paramKind, because the view may have another version of
    the parameter.
    """
    if param.get("apiVersion") == kind.api_version and param.get("kind") == kind.kind:
        return param
    return {**param, "apiVersion": kind.api_version, "kind": kind.kind}
