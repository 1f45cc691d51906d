"""What a kustomization calls objects: their namespace, and what comes before and after their names.

Source: sigs.k8s.io/kustomize api v0.20 internal/konfig/builtinpluginconsts (namespace, nameprefix, namesuffix) and
internal/builtins/PrefixTransformer.go: the kinds that keep their names, and Namespaces, whose name is the namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON
from webhook.cluster.cluster_scoped import CLUSTER_SCOPED

_NAMESPACE: Final = ("", "Namespace")
_KEEP_NAMES: Final = (
    _NAMESPACE,
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What the kustomizations around an object make of its name.

    Args:
        namespace: where it is put, "" for where it says.
        prefix, suffix: what its name gets.
        is_known: whether nobody else may name it otherwise.
    """

    namespace: str = ""
    prefix: str = ""
    suffix: str = ""
    is_known: bool = True

    def inside(self, outer: Naming) -> Naming:
        """The same where a further kustomization takes the result, whose namespace then counts."""
        return Naming(
            namespace=outer.namespace or self.namespace,
            prefix=f"{outer.prefix}{self.prefix}",
            suffix=f"{self.suffix}{outer.suffix}",
            is_known=self.is_known and outer.is_known,
        )

    def applied(self, obj: JSON) -> JSON:
        """An object as it is named in the end; the same where nothing is set."""
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


AS_WRITTEN: Final = Naming()
UNKNOWN: Final = Naming(is_known=False)


def group_kind(obj: Mapping[str, JSON]) -> tuple[str, str]:
    """Group and kind, each "" where it is no text."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    group, slash, _ = version.partition("/") if isinstance(version, str) else ("", "", "")
    return group if slash else "", kind if isinstance(kind, str) else ""
