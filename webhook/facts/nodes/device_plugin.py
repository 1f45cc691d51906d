"""Node labels that choose a configuration which does not exist: of NVIDIA's device plugin, and of its MIG manager.

Source: NVIDIA/k8s-device-plugin@1b826acc6 cmd/config-manager/main.go; NVIDIA/gpu-operator@a22dbf671
assets/state-mig-manager. From operator 26.3 on the MIG manager makes its profiles from the hardware unless a ConfigMap
is named. So a profile is reported only if a ClusterPolicy names a ConfigMap and this ConfigMap does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.nodes.nvidia_plugin import CONFIG_LABEL, all_config_maps, parse_configuration
from webhook.facts.nodes.types import DEVICE_PLUGIN, ClusterPolicy
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import either
from webhook.typed.cluster_objects import Node
from webhook.typed.objects import ConfigMap

CONFIG: Final = DEVICE_PLUGIN.rule(
    "device-plugin/config",
    title="A node names a configuration of the device plugin that does not exist",
    why="The config-manager ends with an error, so the plugin keeps its configuration or offers no GPUs.",
    level="advice",
)
MIG_CONFIG: Final = DEVICE_PLUGIN.rule(
    "device-plugin/mig-config",
    title="A node names a MIG configuration that does not exist",
    why="The MIG manager sets nvidia.com/mig.config.state to failed and divides no GPU.",
    source="NVIDIA/gpu-operator@a22dbf671 assets/state-mig-manager",
)
_MIG_LABEL: Final = "nvidia.com/mig.config"
_MIG_KEY: Final = "config.yaml"
_GENERATED: Final = ("", "default-mig-parted-config")
_VERSION: Final = "version: v1"
_MARKS: Final = frozenset(("sharing", "flags", "resources"))
"""Keys; a configuration of the device plugin has at least one of them."""


def check_node_labels(subject: Subject) -> Iterator[Problem]:
    """Yield labels of a Node that name no configuration."""
    node, view = subject.typed(Node), subject.cluster_view()
    if view.is_whole() and (name := node.metadata.labels.get(CONFIG_LABEL, "")):
        yield from _check_plugin_config(node, name, view)
    if name := node.metadata.labels.get(_MIG_LABEL, ""):
        yield from _check_mig_config(node, name, view)


def _check_plugin_config(node: Node, name: str, view: ClusterView) -> Iterator[Problem]:
    """Yield a name that the only ConfigMap with configurations of the plugin does not have."""
    known = [each for each in all_config_maps(view) if _has_plugin_configurations(each)]
    if len(known) == 1 and name not in known[0].data:
        message = f"is not a key of ConfigMap `{known[0].name}`, whose keys are {either(known[0].data)}"
        path = node.metadata.path("labels", CONFIG_LABEL)
        yield CONFIG.problem(path, message, "name one of its keys, or add the key", name)


def _has_plugin_configurations(config_map: ConfigMap) -> bool:
    """Return whether the values of a ConfigMap are configurations of the device plugin: version v1 and its fields."""
    texts = config_map.data.values()
    is_known = (_VERSION in text and any(f"{key}:" in text for key in _MARKS) for text in texts)
    return bool(texts) and all(is_known)


def _check_mig_config(node: Node, name: str, view: ClusterView) -> Iterator[Problem]:
    """Yield a profile set that the ConfigMap which a ClusterPolicy names does not have."""
    for policy in view.copy_without_missing_objects().list_typed(ClusterPolicy):
        own = policy.spec.mig_manager.config.name
        texts = [each.data.get(_MIG_KEY, "") for each in all_config_maps(view) if each.name == own]
        parsed = parse_configuration(texts[0], view) if len(texts) == 1 and own not in _GENERATED else None
        if parsed is not None and parsed.mig_configs and name not in parsed.mig_configs:
            message = f"is not a profile of ConfigMap `{own}`, whose profiles are {either(parsed.mig_configs)}"
            path = node.metadata.path("labels", _MIG_LABEL)
            yield MIG_CONFIG.problem(path, message, "name one of its profiles, or add the profile", name)
