"""What policies and bindings say of their parameters: of which kind they are, and which of them count."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

from webhook.attributes import GroupVersionKind
from webhook.manifests.label_selectors import selector
from webhook.manifests.models import ParamKind, ParamRef
from webhook.policy.compiled import ParamSource

T = TypeVar("T", GroupVersionKind, ParamSource)


def param_kind(kind: ParamKind | None) -> GroupVersionKind | None:
    """The kind of a policy's parameters; None where it has none."""
    if kind is None:
        return None
    group, _, version = kind.api_version.rpartition("/")
    return _one(GroupVersionKind(group, version, kind.kind))


def param_source(reference: ParamRef | None) -> ParamSource | None:
    """Which parameters a binding names; None where it names none."""
    if reference is None:
        return None
    chosen = selector(reference.selector) if reference.selector is not None else None
    return _one(
        ParamSource(reference.name, reference.namespace, chosen, reference.parameter_not_found_action != "Allow")
    )


def _one(value: T) -> T:
    """The same value for equal kinds and sources, so that what many bindings share is looked up once per request."""
    one: T = _first(value)
    return one


@lru_cache(maxsize=4096)
def _first(value: Any) -> Any:
    return value
