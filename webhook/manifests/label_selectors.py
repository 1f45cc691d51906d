"""Compiles label selectors (metav1.LabelSelector) to predicates on labels.

Semantics: k8s.io/apimachinery v0.36 pkg/labels/selector.go (`Requirement.Matches`) and pkg/apis/meta/v1/helpers.go
(`LabelSelectorAsSelector`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.errors import MistypedLabels
from webhook.manifests.models import LabelSelector
from webhook.schema import Mismatch

Labels: TypeAlias = Mapping[str, str]
_TEXT_OR_ABSENT: Final = (str, type(None))


class Requirement(Struct, frozen=True):
    """One condition on one label. `NotIn` and `DoesNotExist` hold for labels without the key."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """Return the condition in the syntax of API servers (pkg/labels/selector.go String)."""
        if self.operator in ("Exists", "DoesNotExist"):
            return self.key if self.operator == "Exists" else f"!{self.key}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"


class Selector(Struct, frozen=True):
    """A label selector. Labels must meet all requirements. A selector without requirements matches everything."""

    requirements: tuple[Requirement, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset([requirement.key for requirement in self.requirements])

    @property
    def text(self) -> str:
        """Return the selector in the syntax of API servers. Selectors with equal requirements have equal texts."""
        return ",".join(sorted(requirement.text for requirement in self.requirements))

    def matches(self, labels: Labels) -> bool:
        """Return whether the labels meet every requirement. A value that is not a string meets no requirement."""
        for requirement in self.requirements:
            value, operator = labels.get(requirement.key), requirement.operator
            if value is not None and type(value) is not str:
                return False
            if operator in ("In", "Exists"):
                holds = value is not None and (operator == "Exists" or value in requirement.values)
            else:
                holds = value is None or (operator == "NotIn" and value not in requirement.values)
            if not holds:
                return False
        return True

    def selects(self, obj: JSON) -> bool:
        """Return whether the labels of an object meet every requirement.

        Raises:
            MistypedLabels: the result depends on labels that are not strings.
        """
        labels = _labels_or_error(obj)
        if self.matches(labels):
            return True
        mistyped = [each.key for each in self.requirements if type(labels.get(each.key)) not in _TEXT_OR_ABSENT]
        if mistyped and Selector(tuple(each for each in self.requirements if each.key not in mistyped)).matches(labels):
            raise _error_of_label(mistyped[0], labels)
        return False


EVERYTHING = Selector()


def compile_selector(manifest: LabelSelector | None) -> Selector:
    """Compile a selector that has passed validation. None selects everything."""
    if manifest is None:
        return EVERYTHING
    equal = [Requirement(key, "In", frozenset((value,))) for key, value in sorted(manifest.match_labels.items())]
    expressions = [Requirement(e.key, e.operator, frozenset(e.values)) for e in manifest.match_expressions]  # type: ignore[arg-type]
    return Selector((*equal, *expressions))


def labels_of(obj: JSON) -> Labels:
    """Return the labels of an object; {} if metadata or labels are absent or of another type.

    In an object of a file, values of labels may have other types than string.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def string_labels_of(obj: JSON) -> Labels:
    """Return the labels of an object; {} without labels.

    Raises:
        MistypedLabels: a label is not a string.
    """
    labels = _labels_or_error(obj)
    for key, value in labels.items():
        if type(value) not in _TEXT_OR_ABSENT:
            raise _error_of_label(key, labels)
    return labels


def _labels_or_error(obj: JSON) -> Labels:
    """Return the labels of an object, or {}.

    Raises:
        MistypedLabels: metadata or labels are not an object.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if isinstance(labels, dict):
        return labels
    if not isinstance(metadata, dict | None):
        raise _error_of_value(("metadata",), "an object", metadata)
    if labels is not None:
        raise _error_of_value(("metadata", "labels"), "an object", labels)
    return {}


def _error_of_label(key: str, labels: Mapping[str, JSON]) -> MistypedLabels:
    return _error_of_value(("metadata", "labels", key), "a string", labels[key])


def _error_of_value(at: FieldPath, expected: str, value: JSON) -> MistypedLabels:
    mismatch = Mismatch(at=at, expected=expected, value=value)
    return MistypedLabels(f"{mismatch.path}: {mismatch.message}")
