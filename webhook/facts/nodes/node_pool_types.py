"""The instance types that a NodePool of AWS allows for a pod, by the requirements of the NodePool and of the pod.

Numbers in requirements limit the resources of a node of any type: a node with instance-gpu-count below 8 has at most 7
GPUs. The allowed types are known only if a requirement lists instance types or families, and aws_instances.yaml has all
these types.

Source: kubernetes-sigs/karpenter@226646810 pkg/scheduling/requirement.go; aws/karpenter-provider-aws@1d927085d
pkg/providers/instancetype/types.go for the labels of AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from webhook.facts.nodes.node_offers import NodeOffer, PodNeeds
from webhook.facts.nodes.types import NodePool
from webhook.facts.pods.node_selection import labels_meet_requirement
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.typed.pods import SelectorRequirement
from webhook.yamltext import yamlfile

AWS: Final = "karpenter.k8s.aws"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_FAMILY: Final = f"{AWS}/instance-family"
_GPU_COUNT: Final = f"{AWS}/instance-gpu-count"
_NUMBERS: Final[Mapping[str, tuple[tuple[str, ...], int]]] = {
    _GPU_COUNT: (("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi"), 1),
    f"{AWS}/instance-accelerator-count": (("aws.amazon.com/neuron",), 1),
    f"{AWS}/instance-cpu": (("cpu",), 1000),
    f"{AWS}/instance-memory": (("memory",), 1 << 20),
}
"""For each label with a number: the resources that the number limits, and the factor from the number to Kueue's
units.
"""
_CLOSED: Final = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}
"""Operators that only Karpenter has, with the equivalent operator of Kubernetes and the change of the number."""
_TYPES: Final = Path(__file__).with_name("aws_instances.yaml")


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a pod or a NodePool requires of one label."""

    key: str
    operator: str
    values: tuple[str, ...]

    @property
    def as_text(self) -> str:
        """Return the requirement as a text for messages."""
        return f"{self.key} {self.operator} {', '.join(self.values)}".rstrip()

    @property
    def in_words(self) -> str:
        """Return `key=value` if the requirement allows exactly one value; otherwise the same as `as_text`."""
        return f"{self.key}={self.values[0]}" if self.operator == "In" and len(self.values) == 1 else self.as_text


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest or smallest amount that one requirement allows a node to have of some resources."""

    names: tuple[str, ...]
    amount: int
    requirement: Requirement
    is_least: bool


def single_value(key: str, value: str) -> Requirement:
    """Return the requirement of one label of a nodeSelector."""
    return Requirement(key, "In", (value,))


def read_requirement(requirement: SelectorRequirement) -> Requirement:
    """Return a requirement of a pod or of a NodePool."""
    return Requirement(requirement.key, requirement.operator, tuple(requirement.values))


def meets(value: str, requirement: Requirement) -> bool:
    """Return whether the value of a label meets a requirement."""
    operator, values = requirement.operator, list(requirement.values)
    if operator in _CLOSED and values and _is_number(values[0]):
        operator, step = _CLOSED[operator]
        values = [str(int(values[0]) + step)]
    wanted = {"key": requirement.key, "operator": operator, "values": values}
    return labels_meet_requirement({requirement.key: value}, SelectorRequirement.of(wanted))


def requirements_of_pod(needs: PodNeeds) -> Iterator[list[Requirement]]:
    """Yield the requirements of a pod for labels, one list for each term of required affinity. Each list also has the
    requirements of nodeSelector.
    """
    selected = [single_value(key, value) for key, value in needs.spec.node_selector.items()]
    terms = [[read_requirement(each) for each in term.match_expressions] for term in needs.spec.required_node_terms()]
    yield from ([*selected, *term] for term in terms or ([],))


def requirements_of_pool(pool: NodePool) -> list[Requirement]:
    """Return the requirements of a NodePool."""
    return [read_requirement(each) for each in pool.spec.template.spec.requirements]


def is_of_aws(pool: NodePool) -> bool:
    """Return whether Karpenter's provider for AWS creates the nodes of a NodePool."""
    return pool.spec.template.spec.node_class_ref.group == AWS


def bounds_of_requirements(requirements: Iterable[Requirement]) -> Iterator[Bound]:
    """Yield the largest and smallest amounts of a node that requirements with numbers allow."""
    for each in requirements:
        if each.key not in _NUMBERS or not each.values or not all(map(_is_number, each.values)):
            continue
        (names, unit), numbers = _NUMBERS[each.key], [int(value) for value in each.values]
        if each.operator in ("In", "Lt", "Lte"):
            yield Bound(names, (max(numbers) - (each.operator == "Lt")) * unit, each, is_least=False)
        if each.operator in ("In", "Gt", "Gte"):
            yield Bound(names, (min(numbers) + (each.operator == "Gt")) * unit, each, is_least=True)


def _is_number(text: str) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 12


def known_types(pool: NodePool, of_pod: Sequence[Requirement]) -> tuple[NodeOffer, ...] | None:
    """Return the instance types that a NodePool and a pod allow; None if aws_instances.yaml may lack one of these
    types.
    """
    if not is_of_aws(pool):
        return None
    known, requirements = aws_instance_types(), [*requirements_of_pool(pool), *of_pod]
    families = {name.partition(".")[0] for name in known}
    is_known = any(
        each.operator == "In"
        and (
            (each.key == INSTANCE_TYPE and set(each.values) <= known.keys())
            or (each.key == _FAMILY and set(each.values) <= families)
        )
        for each in requirements
    )
    if not is_known:
        return None
    return tuple(
        offer
        for _, offer in sorted(known.items())
        if all(meets(offer.labels[wanted.key], wanted) for wanted in requirements if wanted.key in offer.labels)
    )


@cache
def aws_instance_types() -> Mapping[str, NodeOffer]:
    """Return the instance types of AWS with accelerators, by name."""
    (document,) = yamlfile.read(_TYPES)
    return {row["name"]: _offer_of_type(row) for row in document.value["types"]}


def _offer_of_type(row: Mapping[str, object]) -> NodeOffer:
    amounts, name = dict[str, int](), str(row["name"])
    labels = {INSTANCE_TYPE: name, _FAMILY: name.partition(".")[0]}
    for key, value in row.items():
        if key in ("cpu", "memory") or "/" in key:
            amounts[key] = parse_amount_in_kueue_units(key, str(value)) or 0
        elif key != "name":
            labels[f"{AWS}/{key}"] = str(value)
    gpus = sum(count for key, count in amounts.items() if key.endswith(".com/gpu"))
    if gpus:
        labels[_GPU_COUNT] = str(gpus)
    return NodeOffer(name, labels, {}, (), amounts)
