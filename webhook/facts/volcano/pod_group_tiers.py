"""Rules for the tiers of HyperNodes within which a PodGroup, or a subgroup of it, may be placed.

How they are looked up and compared is in network_topology.py.
"""

from __future__ import annotations

from typing import Final

from webhook.facts.volcano.groups import VOLCANO_POD_GROUP, VOLCANO_POD_GROUP_ADVICE
from webhook.facts.volcano.network_topology import TopologyRules

POD_GROUP_TIER: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/tier",
    title="A HyperNode is of a tier that the PodGroup allows.",
    why=(
        "A gang with a hard network topology is placed within one HyperNode of at most the highest tier that it "
        "allows. Where there is none, it waits for ever."
    ),
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go",
    function="isEligibleHyperNode",
)
POD_GROUP_TIER_NAME: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/tier-name",
    title="The name of a tier is one that HyperNodes have.",
    why=(
        "Where no HyperNode has it, the scheduler logs a warning and leaves the topology out, so the pods may be "
        "placed far from each other."
    ),
    refused_by="nobody; the topology has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/framework/session.go",
    function="adjustNetworkTopologySpec",
    fails="silent",
)
POD_GROUP_TIER_ORDER: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/tier-order",
    title="Parts of a gang are kept closer together than the whole.",
    why=(
        "The scheduler looks for a HyperNode for each part inside the one that the whole gang is kept in, so a higher "
        "tier of a part allows nothing more."
    ),
    refused_by="nobody; the topology of the part has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/actions/allocate/allocate.go",
    function="allocateForJob",
    severity="low",
    fails="silent",
)
POD_GROUP_HIGHEST_TIER: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/highest-tier",
    title="The highest tier of a PodGroup's topology is given by its number or its name, not both.",
    why="Two statements could contradict each other.",
    function="validateNetworkTopology",
)
OF_POD_GROUPS: Final = TopologyRules(POD_GROUP_HIGHEST_TIER, POD_GROUP_TIER, POD_GROUP_TIER_NAME, POD_GROUP_TIER_ORDER)
