"""Reads the references of policies and bindings to parameters: paramKind and paramRef."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.manifests.label_selectors import compile_selector
from webhook.manifests.models import ParamKind, ParamRef
from webhook.policy.compiled import ParamSource


def gvk_of_param_kind(kind: ParamKind | None) -> GroupVersionKind | None:
    """Return the kind of a policy's parameters; None if it has none."""
    if kind is None:
        return None
    group, _, version = kind.api_version.rpartition("/")
    return GroupVersionKind(group, version, kind.kind)


def param_source(reference: ParamRef | None) -> ParamSource | None:
    """Return the source of a binding's parameters; None if it names none."""
    if reference is None:
        return None
    chosen = compile_selector(reference.selector) if reference.selector is not None else None
    return ParamSource(reference.name, reference.namespace, chosen, reference.parameter_not_found_action != "Allow")
