"""Rules for the tiers of HyperNodes within which the pods of a Job, or of a partition, may be placed.

How they are looked up and compared is in network_topology.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano.network_topology import TopologyRules, warn_of_missing_tiers, warn_of_tiers_of_gang_part
from webhook.facts.volcano_objects.types import Job
from webhook.problem import Problem

JOB_TIER: Final = VOLCANO_JOB_ADVICE.rule(
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
JOB_TIER_NAME: Final = VOLCANO_JOB_ADVICE.rule(
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
JOB_TIER_ORDER: Final = VOLCANO_JOB_ADVICE.rule(
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
JOB_HIGHEST_TIER: Final = VOLCANO_JOB.rule(
    "volcano-job/highest-tier",
    title="The highest tier of a network topology is given by its number or its name, not both.",
    why="Two statements could contradict each other.",
    function="validateNetworkTopology",
    refused_on_updates="pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate",
)
OF_JOBS: Final = TopologyRules(JOB_HIGHEST_TIER, JOB_TIER, JOB_TIER_NAME, JOB_TIER_ORDER)


def advise_job_topology(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield tiers that do not exist, and partitions with a higher tier than the whole job."""
    gang = job.spec.network_topology
    yield from warn_of_missing_tiers(gang, subject, OF_JOBS)
    for task in job.spec.tasks:
        if part := task.partition_policy.network_topology:
            yield from warn_of_tiers_of_gang_part(part, gang, subject, OF_JOBS)
