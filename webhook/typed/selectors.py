"""The types by which objects select others: by labels, by the labels of nodes, by their taints."""

from __future__ import annotations

from webhook.typed.fields import Labels, OptionalNumber, Part, Parts, Text, Texts
from webhook.typed.view import Typed


class Requirement(Typed):
    """meta/v1 LabelSelectorRequirement, and core/v1 NodeSelectorRequirement."""

    key = Text()
    operator = Text()
    values = Texts()


class LabelSelector(Typed):
    """meta/v1 LabelSelector."""

    match_expressions = Parts(Requirement)
    match_labels = Labels()


class NodeSelectorTerm(Typed):
    """core/v1 NodeSelectorTerm."""

    match_expressions = Parts(Requirement)


class NodeSelector(Typed):
    """core/v1 NodeSelector."""

    node_selector_terms = Parts(NodeSelectorTerm)


class NodeAffinity(Typed):
    """core/v1 NodeAffinity."""

    required = Part(NodeSelector, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Typed):
    """core/v1 Affinity."""

    node_affinity = Part(NodeAffinity)


class Taint(Typed):
    """core/v1 Taint."""

    key = Text()
    value = Text()
    effect = Text()


class Toleration(Typed):
    """core/v1 Toleration."""

    key = Text()
    operator = Text()
    value = Text()
    effect = Text()
    toleration_seconds = OptionalNumber()
