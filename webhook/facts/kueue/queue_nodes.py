"""Rules of Kueue for ResourceFlavors, for the levels of a Topology, and for labels of a flavor with a topology.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/resourceflavor_webhook.go and the rules of
config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.names import (
    label_value_errors,
    label_value_fault,
    label_value_fix,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue.groups import KUEUE_QUEUE
from webhook.facts.kueue.queue import immutable_field_problem
from webhook.facts.kueue.queue_flavors import fault_of_count, fix_for_count, too_many_entries_problem
from webhook.facts.kueue.topology import HOSTNAME
from webhook.facts.pods.node_selection import EFFECTS
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import change, counted
from webhook.typed.kueue import ResourceFlavor, ResourceFlavorSpec, Topology, TopologySpec
from webhook.typed.pods import Taint, Toleration
from webhook.yamltext.placeholders import is_placeholder

TOPOLOGY_LEVELS: Final = KUEUE_QUEUE.rule(
    "kueue-queue/topology-levels",
    title="The topology has no level or too many, or a level is repeated, invalid or out of order",
    why="Each level divides the level above, so a label may occur only once.",
    source="kubernetes-sigs/kueue@ff69552e config/components/crd/bases",
    refused_on_updates="",
)
TOPOLOGY_LABEL: Final = KUEUE_QUEUE.rule(
    "kueue-queue/topology-label",
    title="A flavor with a topology has no node label",
    why="Kueue finds the nodes of the topology by the labels of the flavor.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/resourceflavor_webhook.go",
    refused_on_updates="",
)
NODE_LABEL: Final = KUEUE_QUEUE.rule(
    "kueue-queue/node-label",
    title="The node label of the flavor is invalid",
    why="Kueue adds these labels to the node selector of pods, and the API server refuses pods with invalid labels.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/resourceflavor_webhook.go",
    function="ValidateResourceFlavor",
)
NODE_TAINT: Final = KUEUE_QUEUE.rule(
    "kueue-queue/node-taint",
    title="The node taint of the flavor is invalid or listed twice",
    why="Kueue compares these taints with the tolerations of pods, so Kueue refuses taints that no node can have.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/resourceflavor_webhook.go",
    function="validateNodeTaints",
)
TOLERATION: Final = KUEUE_QUEUE.rule(
    "kueue-queue/toleration",
    title="The toleration of the flavor is invalid",
    why="Kueue adds the tolerations of the flavor to the pods.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/resourceflavor_webhook.go",
    function="ValidateResourceFlavor",
)
_MOST_LEVELS: Final = 16
_MOST_OF_FLAVOR: Final = 8
"""The largest numbers of node labels, of taints and of tolerations of a flavor."""
_ONE_OF: Final = "set one of these"


def validate_topology(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that the CustomResourceDefinition of Topologies would report."""
    spec, before = subject.typed(Topology).spec, subject.typed_old(Topology).spec.labels()
    levels, path = spec.labels(), spec.path("levels")
    yield from _check_topology_levels(spec)
    if before and before != levels and not _keeps_hostname_level(before, levels):
        message = f"{change(', '.join(before), ', '.join(levels))} unless {HOSTNAME} is the lowest level of both"
        yield immutable_field_problem(path, message, "restore the levels, or create another Topology")


def _check_topology_levels(spec: TopologySpec) -> Iterator[Problem]:
    """Yield the problems of a Topology without levels, with too many levels, or with invalid or repeated levels."""
    count, before = len(spec.labels()), set[str]()
    if message := fault_of_count(count, _MOST_LEVELS):
        fix = fix_for_count(count, _MOST_LEVELS, "level")
        yield TOPOLOGY_LEVELS.problem(spec.path("levels"), message, fix, shown=counted(count, "level"))
    for index, level in enumerate(spec.levels):
        name, path = level.node_label, level.path("nodeLabel")
        if qualified_name_errors(name) and not is_placeholder(name):
            message = f"cannot be the key of a node label because {qualified_name_fault(name)}"
            yield TOPOLOGY_LEVELS.problem(path, message, qualified_name_fix(name), name)
        if name in before:
            yield TOPOLOGY_LEVELS.problem(path, "is the label of two levels", "remove one of the two", name)
        if name == HOSTNAME and index < len(spec.levels) - 1:
            message = "must be the lowest level because no level is below a node"
            yield TOPOLOGY_LEVELS.problem(path, message, "move this level to the end", name)
        before.add(name)


def _keeps_hostname_level(before: list[str], after: list[str]) -> bool:
    return bool(after) and before[-1] == HOSTNAME == after[-1]


def validate_node_labels_for_topology(spec: ResourceFlavorSpec) -> Iterator[Problem]:
    """Yield the problem of a flavor with a topology and without node labels."""
    if spec.topology_name and not spec.node_labels:
        message = "has no label, but Kueue finds the nodes of the topology by a label"
        fix = "add a label that the nodes of the topology have"
        yield TOPOLOGY_LABEL.problem(spec.path("nodeLabels"), message, fix)


def validate_resource_flavor(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateResourceFlavor would report."""
    spec, before = subject.typed(ResourceFlavor).spec, subject.typed_old(ResourceFlavor).spec.topology_name
    yield from _validate_list_lengths(spec)
    for key, value in spec.node_labels.items():
        yield from _check_node_label(spec.path("nodeLabels", key), key, value)
    yield from _validate_taints(spec)
    for toleration in spec.tolerations:
        yield from _validate_toleration(toleration)
    yield from validate_node_labels_for_topology(spec)
    if before and spec.topology_name != before:
        message = f"{change(before, spec.topology_name)} because a flavor keeps its topology"
        yield immutable_field_problem(
            spec.path("topologyName"), message, f"restore `{before}`, or create another flavor"
        )


def _validate_list_lengths(spec: ResourceFlavorSpec) -> Iterator[Problem]:
    for name, count in (
        ("nodeLabels", len(spec.node_labels)),
        ("nodeTaints", len(spec.node_taints)),
        ("tolerations", len(spec.tolerations)),
    ):
        if count > _MOST_OF_FLAVOR:
            message = f"are more than the {_MOST_OF_FLAVOR} that are allowed"
            yield too_many_entries_problem(
                spec.path(name), message, "use fewer entries", counted(count, "entry", "entries")
            )


def _check_node_label(path: FieldPath, key: str, value: str) -> Iterator[Problem]:
    is_key_invalid = bool(qualified_name_errors(key))
    if (is_key_invalid or label_value_errors(value)) and not is_placeholder(f"{key}{value}"):
        part, fault = ("key", qualified_name_fault(key)) if is_key_invalid else ("value", label_value_fault(value))
        message = f"is not a valid label because {fault.replace('it ', f'its {part} ', 1)}"
        fix = f"in the {part}, {qualified_name_fix(key) if is_key_invalid else label_value_fix(value)}"
        yield NODE_LABEL.problem(path, message, fix, shown=f"`{key}: {value}`")


def _fault_and_fix_of_taint_key(key: str) -> tuple[str, str]:
    return f"cannot be the key of a taint because {qualified_name_fault(key)}", qualified_name_fix(key)


def _validate_taints(spec: ResourceFlavorSpec) -> Iterator[Problem]:
    before: set[tuple[str, str]] = set()
    for taint in spec.node_taints:
        yield from _check_node_taint(taint, before)
        before.add((taint.key, taint.effect))


def _check_node_taint(taint: Taint, before: set[tuple[str, str]]) -> Iterator[Problem]:
    """Yield problems of a taint that has an invalid key, value or effect, or is listed twice."""
    if qualified_name_errors(taint.key) and not is_placeholder(taint.key):
        yield NODE_TAINT.problem(taint.path("key"), *_fault_and_fix_of_taint_key(taint.key), taint.key)
    if label_value_errors(taint.value) and not is_placeholder(taint.value):
        message = f"cannot be the value of a taint because {label_value_fault(taint.value)}"
        yield NODE_TAINT.problem(taint.path("value"), message, label_value_fix(taint.value), taint.value)
    if taint.effect not in EFFECTS and not is_placeholder(taint.effect):
        yield NODE_TAINT.problem(taint.path("effect"), f"must be one of {', '.join(EFFECTS)}", _ONE_OF, taint.effect)
    if (taint.key, taint.effect) in before:
        shown = f"{taint.key}:{taint.effect}"
        yield NODE_TAINT.problem(taint.at, "is listed twice", "remove one of the two", shown=shown)


def _validate_toleration(toleration: Toleration) -> Iterator[Problem]:
    key, operator = toleration.key, toleration.operator or "Equal"
    if key and qualified_name_errors(key) and not is_placeholder(key):
        yield TOLERATION.problem(toleration.path("key"), *_fault_and_fix_of_taint_key(key), key)
    if operator not in ("Equal", "Exists"):
        yield TOLERATION.problem(toleration.path("operator"), "must be Equal or Exists", _ONE_OF, operator)
    if not key and operator != "Exists":
        message = "must be Exists because a toleration without a key is for all taints"
        yield TOLERATION.problem(toleration.path("operator"), message, "set Exists, or a key", operator)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        message = "must be NoExecute because tolerationSeconds is set"
        yield TOLERATION.problem(toleration.path("effect"), message, "set NoExecute, or remove tolerationSeconds")
    if operator == "Exists" and toleration.value:
        message = "must not be set because operator Exists tolerates every value"
        yield TOLERATION.problem(toleration.path("value"), message, "remove the value, or use Equal", toleration.value)
