"""What the flux plugin refuses of a runtime.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/flux/flux.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
from webhook.facts.train_job_pods.nodes import init_container_of, job_named
from webhook.problem import Problem
from webhook.typed.job_sets import JobSetSpec

FLUX_INSTALLER: Final = TRAINING_RUNTIME.rule(
    "training-runtime/flux-installer",
    title="A flux runtime has no init container `flux-installer`.",
    why="The flux plugin adds one of that name.",
    function="Validate of plugins/flux/flux.go",
)


def validate_flux_installer(job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield an init container with the name of the one that the plugin adds (flux.go)."""
    if init_container_of(job_named(job_set.replicated_jobs, "node"), "flux-installer") is not None:
        message = "must not have an init container `flux-installer` in job `node` because Trainer adds one of this name"
        yield FLUX_INSTALLER.problem(job_set.path("replicatedJobs"), message, "give that init container another name")
