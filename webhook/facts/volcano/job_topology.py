"""The network topology of a Job and of the partitions of its tasks: what Volcano refuses, and what no pods fit into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano.topology import tier_above_gang, tier_below_all, two_highest_tiers, unknown_tier_name
from webhook.facts.volcano.types import Job, NetworkTopology
from webhook.problem import Problem

HIGHEST_TIER: Final = VOLCANO_JOB.rule(
    "volcano-job/highest-tier",
    title="The highest tier of a network topology is given by its number or its name, not both.",
    why="Two statements could contradict each other.",
    function="validateNetworkTopology",
)
TIER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/tier",
    title="A HyperNode is of a tier that the gang allows.",
    why=(
        "A gang with a hard network topology is placed within one HyperNode of at most the highest tier that it "
        "allows. Where there is none, it waits for ever."
    ),
    refused_by="nobody; the job stays pending",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go",
    function="isEligibleHyperNode",
    fails="pending",
)
TIER_NAME: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/tier-name",
    title="The name of a tier is one that HyperNodes have.",
    why=(
        "Where no HyperNode has it, the scheduler logs a warning and leaves the topology out, so the pods may be "
        "placed far from each other."
    ),
    refused_by="nobody; the topology has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/framework/session.go",
    function="adjustNetworkTopologySpec",
)
TIER_ORDER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/tier-order",
    title="Parts of a gang are kept closer together than the whole.",
    why=(
        "The scheduler looks for a HyperNode for each part inside the one that the whole gang is kept in, so a higher "
        "tier of a part allows nothing more."
    ),
    refused_by="nobody; the topology of the part has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/actions/allocate/allocate.go",
    function="allocateForJob",
    severity="low",
)


def validate_network_topology(topology: NetworkTopology) -> Iterator[Problem]:
    """The highest tier is given by its number or by its name."""
    if reason := two_highest_tiers(topology):
        yield HIGHEST_TIER.problem(reason.path, reason.message, reason.fix, reason.found)


def advise_job_topology(job: Job, subject: Subject) -> Iterator[Problem]:
    """Tiers that there are, and partitions that are nearer together than the whole job."""
    gang = job.spec.network_topology
    yield from _advise_topology(gang, subject)
    for task in job.spec.tasks:
        if part := task.partition_policy.network_topology:
            yield from _advise_topology(part, subject)
            yield from _tier_order(part, gang)


def _advise_topology(topology: NetworkTopology, subject: Subject) -> Iterator[Problem]:
    yield from _tier(topology, subject)
    yield from _tier_name(topology, subject)


def _tier(topology: NetworkTopology, subject: Subject) -> Iterator[Problem]:
    if reason := tier_below_all(topology, subject):
        yield TIER.problem(reason.path, reason.message, reason.fix, reason.found, missing=reason.missing)


def _tier_name(topology: NetworkTopology, subject: Subject) -> Iterator[Problem]:
    if reason := unknown_tier_name(topology, subject):
        yield TIER_NAME.problem(reason.path, reason.message, reason.fix, reason.found)


def _tier_order(part: NetworkTopology, gang: NetworkTopology) -> Iterator[Problem]:
    if reason := tier_above_gang(part, gang):
        yield TIER_ORDER.problem(reason.path, reason.message, reason.fix, reason.found)
