"""Claims that resourcesPerNode of a TrainJob takes away from its pods.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/builder.go.
"""

from __future__ import annotations

from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.runtime_reference import ReferencedRuntime
from webhook.problem import Problem
from webhook.releases import Release, release_as_text
from webhook.typed.pods import Resources

LOST_CLAIM: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/lost-claim",
    title="resourcesPerNode does not take claims away from the container.",
    why=(
        "Before 2.4 Trainer rebuilds the resources of the container without its claims. The pods get devices that no "
        "container sees."
    ),
    source="https://github.com/kubeflow/trainer/pull/4027",
)


def lost_claim_problem(claim: str, asked: Resources, runtime: ReferencedRuntime, release: Release) -> Problem:
    """Report that resourcesPerNode drops a claim of the runtime (kubeflow/trainer#4027)."""
    message = (
        f"makes Trainer {release_as_text(release)} leave out claim `{claim}` from the resources of container "
        "`node`, so the "
        "container cannot use the devices of the claim"
    )
    return LOST_CLAIM.problem(asked.at, message, f"remove resourcesPerNode, and set the resources in {runtime}")
