"""Reads paramKind and paramRef, and looks up parameters that are the same for every request.

Nearly all bindings name a parameter with its namespace. Such a parameter is looked up when a request first needs it,
and again after an object of its kind changed in the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster import Cluster
from webhook.errors import LookupFailed
from webhook.facts.assumptions import ClusterAssumptions, read_assumptions
from webhook.manifests.label_selectors import compile_selector
from webhook.manifests.models import ParamKind, ParamRef
from webhook.policy.compiled import Binding, ParamSource, Policy
from webhook.rules.decisions import Decision


def gvk_of_param_kind(kind: ParamKind | None) -> GroupVersionKind | None:
    """Return the kind of a policy's parameters; None without a paramKind."""
    if kind is None:
        return None
    group, _, version = kind.api_version.rpartition("/")
    return GroupVersionKind(group, version, kind.kind)


def param_source(reference: ParamRef | None) -> ParamSource | None:
    """Return the source of a binding's parameters; None without a paramRef."""
    if reference is None:
        return None
    chosen = compile_selector(reference.selector) if reference.selector is not None else None
    return ParamSource(reference.name, reference.namespace, chosen, reference.parameter_not_found_action != "Allow")


class Param(Struct, frozen=True, eq=False):
    """One parameter of a binding. `object` is None for an evaluation without parameter.

    `name` is `namespace/name`, or `name` without a namespace. `admits` has the decisions for validations that are true,
    for the object itself. `assumed` has the assumptions about the cluster in the parameter. If the assumptions cannot
    be read, `assumed` is None, and `refusal` has the reason.
    """

    object: JSON
    name: str
    admits: tuple[Decision, ...]
    assumed: ClusterAssumptions | None
    refusal: str = ""

    def admits_at(self, place: str) -> tuple[Decision, ...]:
        """Return the decisions for validations that are true. If `place` is "", the decisions are about the object
        itself, otherwise about the pod template at this path.
        """
        return tuple([replace(decision, path=place) for decision in self.admits]) if place else self.admits


def create_param(binding: Binding, obj: JSON) -> Param:
    """Return an object as a parameter of a binding."""
    name = _name_with_namespace(obj)
    admits = tuple(replace(decision, param=name) for decision in binding.admits) if name else binding.admits
    try:
        return Param(obj, name, admits, read_assumptions(obj))
    except LookupFailed as error:
        return Param(obj, name, admits, None, str(error))


def _name_with_namespace(obj: JSON) -> str:
    if obj is None:
        return ""
    metadata = obj.get("metadata") or {}
    namespace, name = metadata.get("namespace"), metadata.get("name") or ""
    return f"{namespace}/{name}" if namespace else name


class StaticParams:
    """The static parameters of one policy set, from the view that was used last."""

    __slots__ = ("_kinds", "_params", "_revisions")

    def __init__(self, policies: Iterable[Policy]) -> None:
        kinds = {policy.param_kind for policy in policies if any(map(is_static, _param_sources_of_policy(policy)))}
        self._kinds = tuple(kind for kind in kinds if kind is not None)
        self._revisions: Sequence[object] = ()
        self._params: dict[Binding, Sequence[Param]] = {}

    def params_found_in(self, cluster: Cluster) -> dict[Binding, Sequence[Param]]:
        """Return the cached parameters for the current state of a view, by binding. Callers add to this dict."""
        revisions = [cluster.revision(kind) for kind in self._kinds]
        if self._revisions != revisions:
            self._revisions, self._params = revisions, {}
        return self._params


def is_static(source: ParamSource) -> bool:
    """Return whether a reference names one object for requests in all namespaces."""
    return bool(source.name and source.namespace)


def _param_sources_of_policy(policy: Policy) -> Iterable[ParamSource]:
    return (each.param_source for each in policy.bindings if each.param_source is not None)
