"""What Kueue refuses of ResourceFlavors, Topologies and AdmissionChecks.

Sources: kubernetes-sigs/kueue@ff69552e pkg/webhooks/resourceflavor_webhook.go and the rules of
config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.kueue.queue_validation import count_errors, spec_of
from webhook.facts.kueue.topology import HOSTNAME
from webhook.facts.pods.node_selection import EFFECTS
from webhook.facts.subject import Subject
from webhook.name_faults import key_fault, value_fault
from webhook.names import USE_KEY, USE_VALUE, label_value, qualified_name
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import change, counted

problem: Final = Group("kueue-queue").problem
_MOST_OF_FLAVOR: Final = 8
"""Node labels, taints and tolerations, each."""
_MOST_LEVELS: Final = 16


def validate_resource_flavor(subject: Subject) -> Iterator[Problem]:
    """As ValidateResourceFlavor."""
    spec = spec_of(subject)
    labels = spec.get("nodeLabels", {})
    for name in ("nodeLabels", "nodeTaints", "tolerations"):
        count = len(spec.get(name, ()))
        if count > _MOST_OF_FLAVOR:
            message = f"must not have more than {_MOST_OF_FLAVOR} entries"
            yield problem("too-many", ("spec", name), message, "use fewer", shown=counted(count, "entry", "entries"))
    for key, value in subject.deadline.paced(labels.items()):
        if (qualified_name(key) or label_value(value)) and not is_placeholder(f"{key}{value}"):
            is_key = bool(qualified_name(key))
            part, fault = ("key", key_fault(key)) if is_key else ("value", value_fault(value))
            message = f"is not a valid label because {fault.replace('it ', f'its {part} ', 1)}"
            yield problem(
                "node-label",
                ("spec", "nodeLabels", key),
                message,
                f"in the {part}, {USE_KEY if is_key else USE_VALUE}",
                shown=f"`{key}: {value}`",
            )
    yield from _validate_taints(spec.get("nodeTaints", []), subject)
    yield from _validate_tolerations(spec.get("tolerations", []), subject)
    topology = spec.get("topologyName")
    if topology and not labels:
        message = "must have a label because topologyName is set, and Kueue finds the nodes of the topology by a label"
        yield problem("topology-label", "spec.nodeLabels", message, "add a label that the nodes of the topology have")
    before = get(subject.old_object, ("spec", "topologyName"))
    if before and topology != before:
        message = f"{change(before, topology)} because a flavor keeps its topology"
        yield problem("immutable", "spec.topologyName", message, f"restore `{before}`, or create another flavor")


def _fault_of_key(key: str) -> str:
    return f"cannot be the key of a taint because {key_fault(key)}"


def _validate_taints(taints: JSON, subject: Subject) -> Iterator[Problem]:
    known: set[tuple[str, str]] = set()
    for index, taint in enumerate(subject.deadline.paced(taints)):
        at: FieldPath = ("spec", "nodeTaints", index)
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if qualified_name(key) and not is_placeholder(key):
            yield problem("node-taint", (*at, "key"), _fault_of_key(key), USE_KEY, key)
        if label_value(taint.get("value", "")) and not is_placeholder(taint.get("value", "")):
            message = f"cannot be the value of a taint because {value_fault(taint['value'])}"
            yield problem("node-taint", (*at, "value"), message, USE_VALUE, taint["value"])
        if effect not in EFFECTS and not is_placeholder(effect):
            message = f"must be one of {', '.join(EFFECTS)}"
            yield problem("node-taint", (*at, "effect"), message, "set one of these", effect)
        if (key, effect) in known:
            message = "is listed twice"
            yield problem("node-taint", at, message, "remove one of the two", shown=f"{key}:{effect}")
        known.add((key, effect))


def _validate_tolerations(tolerations: JSON, subject: Subject) -> Iterator[Problem]:
    for index, each in enumerate(subject.deadline.paced(tolerations)):
        at: FieldPath = ("spec", "tolerations", index)
        key, operator = each.get("key", ""), each.get("operator") or "Equal"
        if key and qualified_name(key) and not is_placeholder(key):
            yield problem("toleration", (*at, "key"), _fault_of_key(key), USE_KEY, key)
        if operator not in ("Equal", "Exists"):
            yield problem("toleration", (*at, "operator"), "must be Equal or Exists", "set one of these", operator)
        if not key and operator != "Exists":
            message = "must be Exists because the toleration has no key and tolerates every taint"
            yield problem("toleration", (*at, "operator"), message, "set Exists, or a key", operator)
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            message = "must be NoExecute because tolerationSeconds is set"
            yield problem("toleration", (*at, "effect"), message, "set NoExecute, or remove tolerationSeconds")
        if operator == "Exists" and each.get("value"):
            message = "must not be set because operator Exists tolerates every value"
            yield problem("toleration", (*at, "value"), message, "remove the value, or use Equal", each["value"])


def validate_topology(subject: Subject) -> Iterator[Problem]:
    """The rules of the CustomResourceDefinition of Topologies."""
    levels = [each.get("nodeLabel", "") for each in spec_of(subject).get("levels", [])]
    yield from count_errors("topology-levels", ("spec", "levels"), len(levels), _MOST_LEVELS, "level")
    known: set[str] = set()
    for index, name in enumerate(subject.deadline.paced(levels)):
        path = ("spec", "levels", index, "nodeLabel")
        if qualified_name(name) and not is_placeholder(name):
            message = f"cannot be the key of a node label because {key_fault(name)}"
            yield problem("topology-levels", path, message, USE_KEY, name)
        if name in known:
            yield problem("topology-levels", path, "is the label of two levels", "remove one of the two", name)
        if name == HOSTNAME and index < len(levels) - 1:
            message = "must be the lowest level because a node has no levels below it"
            yield problem("topology-levels", path, message, "move this level to the end", name)
        known.add(name)
    before = [each.get("nodeLabel", "") for each in get(subject.old_object, ("spec", "levels"), [])]
    if before and before != levels and not _keeps_hosts(before, levels):
        message = f"{change(', '.join(before), ', '.join(levels))} unless {HOSTNAME} is the lowest level of both"
        yield problem("immutable", "spec.levels", message, "restore the levels, or create another Topology")


def _keeps_hosts(before: list[str], after: list[str]) -> bool:
    return bool(after) and before[-1] == HOSTNAME == after[-1]


def validate_admission_check(subject: Subject) -> Iterator[Problem]:
    """Its controller stays."""
    old, new = get(subject.old_object, ("spec", "controllerName")), spec_of(subject).get("controllerName")
    if subject.old_object is not None and old != new:
        message = f"{change(old, new)} because an AdmissionCheck keeps its controller"
        yield problem(
            "immutable", "spec.controllerName", message, f"set `{old}` again, or create another AdmissionCheck"
        )
