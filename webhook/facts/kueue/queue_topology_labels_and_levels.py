"""Rules of Kueue for the levels of a Topology, and for the labels of a flavor with a topology.

Source: the rules of kubernetes-sigs/kueue@ff69552e config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE
from webhook.facts.kueue.queue import immutable_field_problem
from webhook.facts.kueue.queue_too_many_entries import fault_of_count, fix_for_count
from webhook.facts.kueue.topology import HOSTNAME
from webhook.facts.kueue.types import (
    ResourceFlavorSpec,
    Topology,
    TopologySpec,
)
from webhook.facts.subject import Subject
from webhook.name_faults import qualified_name_fault
from webhook.names import USE_KEY, qualified_name_errors
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import change, counted

TOPOLOGY_LEVELS: Final = KUEUE_QUEUE.rule(
    "kueue-queue/topology-levels",
    title="The levels of a topology are 1 to 16 different node labels, the host as the lowest.",
    why="Each level divides the one above.",
    source="kubernetes-sigs/kueue@ff69552e config/components/crd/bases",
    refused_on_updates="",
)

_MOST_LEVELS: Final = 16
TOPOLOGY_LABEL: Final = KUEUE_QUEUE.rule(
    "kueue-queue/topology-label",
    title="A flavor with a topology has a node label.",
    why="Kueue finds the nodes of the topology by the labels of the flavor.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/resourceflavor_webhook.go",
    refused_on_updates="",
)


def validate_topology(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that the CustomResourceDefinition of Topologies would report."""
    spec, before = subject.typed(Topology).spec, subject.typed_old(Topology).spec.labels()
    levels, path = spec.labels(), spec.path("levels")
    yield from _check_topology_levels(spec)
    if before and before != levels and not _keeps_hostname_level(before, levels):
        message = f"{change(', '.join(before), ', '.join(levels))} unless {HOSTNAME} is the lowest level of both"
        yield immutable_field_problem(path, message, "restore the levels, or create another Topology")


def _check_topology_levels(spec: TopologySpec) -> Iterator[Problem]:
    """Yield the problems of too many levels or none, and of invalid or repeated levels."""
    count, before = len(spec.labels()), set[str]()
    if message := fault_of_count(count, _MOST_LEVELS):
        fix = fix_for_count(count, _MOST_LEVELS, "level")
        yield TOPOLOGY_LEVELS.problem(spec.path("levels"), message, fix, shown=counted(count, "level"))
    for index, level in enumerate(spec.levels):
        name, path = level.node_label, level.path("nodeLabel")
        if qualified_name_errors(name) and not is_placeholder(name):
            message = f"cannot be the key of a node label because {qualified_name_fault(name)}"
            yield TOPOLOGY_LEVELS.problem(path, message, USE_KEY, name)
        if name in before:
            yield TOPOLOGY_LEVELS.problem(path, "is the label of two levels", "remove one of the two", name)
        if name == HOSTNAME and index < len(spec.levels) - 1:
            message = "must be the lowest level because a node has no levels below it"
            yield TOPOLOGY_LEVELS.problem(path, message, "move this level to the end", name)
        before.add(name)


def _keeps_hostname_level(before: list[str], after: list[str]) -> bool:
    return bool(after) and before[-1] == HOSTNAME == after[-1]


def validate_node_labels_for_topology(spec: ResourceFlavorSpec) -> Iterator[Problem]:
    """Yield the problem of a flavor with a topology and without node labels."""
    if spec.topology_name and not spec.node_labels:
        message = "must have a label because topologyName is set, and Kueue finds the nodes of the topology by a label"
        fix = "add a label that the nodes of the topology have"
        yield TOPOLOGY_LABEL.problem(spec.path("nodeLabels"), message, fix)
