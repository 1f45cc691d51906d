"""The checks that compare nodes with the pods of workloads, and check labels of nodes."""

from __future__ import annotations

from functools import partial
from typing import Final

from webhook.facts.gpu.device_pods import PLACED
from webhook.facts.nodes.device_plugin import (
    PLUGIN_LOOKUPS,
    check_default_configuration,
    check_kubelet_socket,
    check_node_labels,
    check_sharing,
)
from webhook.facts.nodes.node_devices import validate_node_devices
from webhook.facts.nodes.node_offers import CLASS_LOOKUPS, NODE_LOOKUPS
from webhook.facts.nodes.node_pools import NODE_CLASSES, NODE_POOL_LOOKUPS, validate_node_pools
from webhook.facts.nodes.shared_cards import check_amounts, check_cards, check_pods_of_hami
from webhook.facts.nodes.shared_gpus import advise_mig_processes, check_shared_gpus
from webhook.facts.nodes.tpu_slices import check_tpu_slices
from webhook.facts.nodes.types import GpuDevicePlugin
from webhook.facts.pods.node_sources import SOURCE_LOOKUPS
from webhook.facts.subject import Check, group_kinds_of_types
from webhook.facts.view import NAMESPACES
from webhook.typed.cluster_objects import DaemonSet
from webhook.typed.objects import ConfigMap

_check: Final = partial(
    Check,
    kinds=PLACED,
    lookups=(*NODE_LOOKUPS, *CLASS_LOOKUPS, *NODE_POOL_LOOKUPS, NAMESPACES),
    of_made_objects=False,
)
_CONFIGURATIONS: Final = group_kinds_of_types(ConfigMap)
"""The kinds with configurations of device plugins."""
_SHARES: Final = group_kinds_of_types(ConfigMap, DaemonSet, GpuDevicePlugin)
"""The kinds that say how device plugins share GPUs."""

CHECKS: Final = (
    _check(group="node-devices", run=validate_node_devices, lookups_of_audits=SOURCE_LOOKUPS),
    _check(group="node-pool", run=validate_node_pools, kinds_in_files=NODE_CLASSES),
    _check(group="shared-gpu", run=check_shared_gpus, kinds_in_files=_SHARES),
    _check(group="shared-gpu", run=advise_mig_processes),
    _check(group="shared-gpu", run=check_cards),
    _check(group="shared-gpu", run=check_pods_of_hami),
    _check(group="shared-gpu", run=check_amounts),
    Check(group="tpu", run=check_tpu_slices, kinds=PLACED, of_made_objects=False),
    Check(
        group="device-plugin",
        run=check_node_labels,
        kinds=frozenset((("", "Node"),)),
        lookups_of_audits=PLUGIN_LOOKUPS,
        kinds_in_files=_CONFIGURATIONS,
    ),
    Check(group="device-plugin", run=check_sharing, kinds=frozenset((("", "ConfigMap"),))),
    Check(
        group="device-plugin",
        run=check_default_configuration,
        kinds=frozenset((("apps", "DaemonSet"), ("nvidia.com", "ClusterPolicy"))),
        kinds_in_files=_CONFIGURATIONS,
    ),
    Check(group="device-plugin", run=check_kubelet_socket, kinds=frozenset((("apps", "DaemonSet"),))),
)
