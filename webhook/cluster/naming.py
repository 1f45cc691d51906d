"""The names that a kustomization gives to objects: their namespace, and prefix and suffix of their names.

Source: sigs.k8s.io/kustomize api v0.20 internal/konfig/builtinpluginconsts (namespace, nameprefix, namesuffix) and
internal/builtins/PrefixTransformer.go: the kinds that keep their names, and Namespaces, whose name is the namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.cluster.known_kinds import CLUSTER_SCOPED

_NAMESPACE: Final = ("", "Namespace")
_KEEP_NAMES: Final = (
    _NAMESPACE,
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
)


class NameChanges(Struct, frozen=True, kw_only=True):
    """The changes of an object's name by the kustomizations that use it.

    Args:
        namespace: the namespace that it gets; "" if it keeps its own.
        prefix, suffix: additions to its name.
        is_known: whether no other kustomization may give it another name.
    """

    namespace: str = ""
    prefix: str = ""
    suffix: str = ""
    is_known: bool = True

    def combine_with_outer(self, outer: NameChanges) -> NameChanges:
        """Return the naming if another kustomization uses the result; its namespace takes precedence."""
        return NameChanges(
            namespace=outer.namespace or self.namespace,
            prefix=f"{outer.prefix}{self.prefix}",
            suffix=f"{self.suffix}{outer.suffix}",
            is_known=self.is_known and outer.is_known,
        )

    def apply_to_object(self, obj: JSON) -> JSON:
        """Return an object with its final name; the same object if nothing changes."""
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        if not self.is_known or not isinstance(metadata, dict) or self == AS_WRITTEN:
            return obj
        kind, named = group_kind(obj), dict(metadata)
        if isinstance(name := metadata.get("name"), str) and kind not in _KEEP_NAMES:
            named["name"] = f"{self.prefix}{name}{self.suffix}"
        if self.namespace and kind == _NAMESPACE:
            named["name"] = self.namespace
        elif self.namespace and kind not in CLUSTER_SCOPED:
            named["namespace"] = self.namespace
        return obj if named == metadata else {**obj, "metadata": named}


AS_WRITTEN: Final = NameChanges()
UNKNOWN: Final = NameChanges(is_known=False)


def group_kind(obj: Mapping[str, JSON]) -> tuple[str, str]:
    """Return group and kind, "" for each that is not a text."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    group, slash, _ = version.partition("/") if isinstance(version, str) else ("", "", "")
    return group if slash else "", kind if isinstance(kind, str) else ""
