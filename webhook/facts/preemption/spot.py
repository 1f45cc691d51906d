"""Spot nodes: which pods run on them, and whether they tolerate their taints. Their names are data, spot.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from webhook import yamlfile
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import DevicePods, workload
from webhook.facts.kinds import NODE
from webhook.facts.pods.node_selection import KEEPS_OUT, REQUIRED_TERMS, untolerated
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath, get
from webhook.problem import Problem

problem: Final = Group("preemption").problem
FILE: Final = Path(__file__).with_name("spot.yaml")
_PREFERRED: Final = ("affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")


@dataclass(frozen=True, slots=True)
class SpotNodes:
    """One row of spot.yaml."""

    cloud: str
    key: str
    value: str
    taint: str


@cache
def _keys() -> frozenset[str]:
    """The labels of spot nodes: most selectors have none of them."""
    return frozenset(each.key for each in spot_nodes())


@cache
def spot_nodes() -> tuple[SpotNodes, ...]:
    """The shipped rows; read on first use."""
    (document,) = yamlfile.read(FILE)
    return tuple(SpotNodes(**row) for row in document.value["nodes"])


def selected(pods: DevicePods) -> tuple[SpotNodes, FieldPath] | None:
    """The spot nodes that pods are bound to, and where they say so; None for pods that may run elsewhere too."""
    selector = mapping(pods.spec.get("nodeSelector"))
    terms = items(get(pods.spec, REQUIRED_TERMS)) if pods.spec.get("affinity") else []
    if not terms and _keys().isdisjoint(selector):
        return None
    for each in spot_nodes():
        if selector.get(each.key) == each.value:
            return each, pods.at("nodeSelector", each.key)
        if terms and all(_requires(term, each) for term in terms):
            return each, pods.at(*REQUIRED_TERMS)
    return None


def _requires(term: JSON, nodes: SpotNodes) -> bool:
    return any(
        mapping(each).get("key") == nodes.key
        and mapping(each).get("operator") == "In"
        and items(mapping(each).get("values")) == [nodes.value]
        for each in items(mapping(term).get("matchExpressions"))
    )


def advise_spot(subject: Subject) -> Iterator[Problem]:
    """Selectors of spot nodes without the toleration that they need, and the reverse."""
    for pods in subject.once(workload).device_pods:
        bound = selected(pods)
        tolerations = [mapping(each) for each in subject.deadline.paced(items(pods.spec.get("tolerations")))]
        if bound is None:
            yield from _unselected(pods, tolerations)
        elif not _tolerates(tolerations, bound[0], subject.deadline) and _is_tainted(bound[0], subject):
            nodes, path = bound
            message = (
                f"selects spot nodes of {nodes.cloud}, but the pods do not tolerate the taint of these nodes and stay "
                "Pending"
            )
            yield problem("spot-toleration", path, message, f"tolerate `{nodes.key}={nodes.value}:NoSchedule`")


def _tolerates(tolerations: Sequence[JSON], nodes: SpotNodes, deadline: Deadline) -> bool:
    taint = {"key": nodes.key, "value": nodes.value, "effect": "NoSchedule"}
    return untolerated((taint,), tolerations, deadline) is None


def _is_tainted(nodes: SpotNodes, subject: Subject) -> bool:
    """Whether all such nodes have the taint: because the cloud does it, or as the nodes of the view show."""
    return nodes.taint == "always" or nodes in subject.once(_tainted_in_the_view)


def _tainted_in_the_view(subject: Subject) -> frozenset[SpotNodes]:
    """Rows of which a whole cluster has nodes, all with the taint; what is not in the view may have none."""
    view, seen, untainted = subject.view(), set[SpotNodes](), set[SpotNodes]()
    for node in view.deadline.paced(view.objects(NODE)) if view.is_whole() else ():
        labels = mapping(get(node, ("metadata", "labels")))
        for row in spot_nodes():
            if labels.get(row.key) == row.value:
                (seen if _has_taint(node, row) else untainted).add(row)
    return frozenset(seen - untainted)


def _has_taint(node: JSON, nodes: SpotNodes) -> bool:
    taints = (mapping(each) for each in items(get(node, ("spec", "taints"))))
    return any(
        each.get("key") == nodes.key and each.get("value") == nodes.value and each.get("effect") in KEEPS_OUT
        for each in taints
    )


def _unselected(pods: DevicePods, tolerations: list[dict[str, JSON]]) -> Iterator[Problem]:
    """A toleration that a cloud's spot nodes alone need, where nothing asks for them."""
    named = {each.key: each for each in spot_nodes() if each.taint != "none"}
    if any(key in mapping(pods.spec.get("nodeSelector")) for key in named) or get(pods.spec, _PREFERRED):
        return
    for index, each in enumerate(tolerations):
        nodes = named.get(text(each.get("key")))
        if nodes and not get(pods.spec, REQUIRED_TERMS) and text(each.get("value")) in ("", nodes.value):
            message = (
                f"tolerates spot nodes of {nodes.cloud} but does not select them, so the pods may run on other nodes "
                "as well"
            )
            fix = f"select `{nodes.key}={nodes.value}` if the pods should run only on spot nodes"
            yield problem("spot-selector", pods.at("tolerations", index), message, fix)
