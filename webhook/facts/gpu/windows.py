"""Finds pods that run on Windows, where no vendor of GPUs has a device plugin.

Source: https://kubernetes.io/docs/concepts/windows/user-guide/, which binds pods by their os, by the label
kubernetes.io/os or by a RuntimeClass.
"""

from __future__ import annotations

from typing import Final

from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.types import RuntimeClass
from webhook.facts.view import ClusterView
from webhook.paths import FieldPath
from webhook.typed.pods import PodSpec, SelectorRequirement

LOOKUPS: Final = (interest_in_fields(RuntimeClass.gvk, "scheduling.nodeSelector"),)
_OS: Final = "kubernetes.io/os"
_BINDING: Final = frozenset(("os", "nodeSelector", "affinity", "runtimeClassName"))
"""Fields that may bind a pod to Windows."""


def has_no_windows_field(pod: PodSpec) -> bool:
    """Return whether a pod has none of the fields that may bind it to Windows, as nearly every pod."""
    return _BINDING.isdisjoint(pod.json)


def path_of_windows_field(pod: PodSpec, view: ClusterView) -> FieldPath:
    """Return the path of the field that binds a pod to Windows, () if none does; note a missing RuntimeClass in the
    view.
    """
    if pod.os.name == "windows":
        return pod.os.path("name")
    if pod.node_selector.get(_OS) == "windows":
        return pod.path("nodeSelector", _OS)
    terms = pod.required_node_terms()
    if terms and all(any(map(_requires_windows, term.match_expressions)) for term in terms):
        return pod.affinity.node_affinity.required.path("nodeSelectorTerms")
    name = pod.runtime_class_name
    runtime_class = view.find(RuntimeClass, name, namespaced=False) if name else RuntimeClass.of(None)
    if runtime_class.scheduling.node_selector.get(_OS) == "windows":
        return pod.path("runtimeClassName")
    return ()


def _requires_windows(requirement: SelectorRequirement) -> bool:
    return requirement.key == _OS and requirement.operator == "In" and requirement.values == ["windows"]
