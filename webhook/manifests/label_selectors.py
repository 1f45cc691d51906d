"""Label selectors: metav1.LabelSelector to a predicate on labels.

Knows labels only, neither objects nor requests. Semantics: k8s.io/apimachinery v0.36 pkg/labels/selector.go
(`Requirement.Matches`) and pkg/apis/meta/v1/helpers.go (`LabelSelectorAsSelector`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.manifests.models import LabelSelector

Labels: TypeAlias = Mapping[str, str]


class Requirement(Struct, frozen=True):
    """One condition on one label. `NotIn` and `DoesNotExist` hold for labels without the key."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """Write the condition as the API server reads it (k8s.io/apimachinery v0.36 pkg/labels/selector.go String)."""
        if self.operator in ("Exists", "DoesNotExist"):
            return self.key if self.operator == "Exists" else f"!{self.key}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"


class Selector(Struct, frozen=True):
    """A label selector: labels must meet all its requirements; without requirements it matches everything. none selects
    everything.
    """

    requirements: tuple[Requirement, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Return the labels that the selector reads."""
        return frozenset(requirement.key for requirement in self.requirements)

    @property
    def text(self) -> str:
        """Write the selector as the API server reads it, the same for all that require the same."""
        return ",".join(sorted(requirement.text for requirement in self.requirements))

    def matches(self, labels: Labels) -> bool:
        """Say whether the labels meet every requirement."""
        for requirement in self.requirements:
            value, operator = labels.get(requirement.key), requirement.operator
            if operator in ("In", "Exists"):
                holds = value is not None and (operator == "Exists" or value in requirement.values)
            else:
                holds = value is None or (operator == "NotIn" and value not in requirement.values)
            if not holds:
                return False
        return True


EVERYTHING = Selector()


def compile_selector(manifest: LabelSelector | None) -> Selector:
    """Return the predicate of a selector that has passed verification; no selector at all selects everything."""
    if manifest is None:
        return EVERYTHING
    equal = [Requirement(key, "In", frozenset((value,))) for key, value in sorted(manifest.match_labels.items())]
    expressions = [Requirement(e.key, e.operator, frozenset(e.values)) for e in manifest.match_expressions]  # type: ignore[arg-type]
    return Selector((*equal, *expressions))


def labels_of(obj: JSON) -> Labels:
    """Return the labels of an object, or none where any level is absent or has another shape."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
