"""Rules for the mlPolicy of a runtime: one plugin, and valid numbers.

Source: kubeflow/trainer@8c0f5059bd51 manifests/base/crds, and branches of earlier releases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME, TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    INJECTION,
    NUMBERS_ONLY,
    WHOLE_JOBSET,
)
from webhook.facts.train_job_pods.types import MLPolicy, RuntimeSpec
from webhook.facts.trainer.training_runtime_elastic_nodes import validate_elastic_nodes
from webhook.facts.trainer.training_runtime_env_injection import check_node_not_injection_target
from webhook.facts.trainer.training_runtime_processes import validate_processes, validate_processes_of_first_releases
from webhook.problem import Problem
from webhook.releases import Release, release_as_text

ONE_POLICY: Final = TRAINING_RUNTIME.rule(
    "training-runtime/one-policy",
    title="A runtime has one machine learning policy.",
    why="Each policy is a plugin that sets up the nodes in its own way.",
)
ML_POLICY: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/ml-policy",
    title="A runtime has an mlPolicy.",
    why="Since 2.3 Trainer leaves resourcesPerNode of TrainJobs out without one.",
)
_FIRST_PLUGINS: Final = ("torch", "mpi")


def validate_ml_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    """Yield the problems that the CustomResourceDefinition would report."""
    yield from _check_one_policy(policy, release)
    yield from validate_processes(policy, release)
    if release >= INJECTION:
        yield from check_node_not_injection_target(policy)
    if release < NUMBERS_ONLY:
        yield from validate_elastic_nodes(policy)
        yield from validate_processes_of_first_releases(policy)


def _check_one_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    plugins = [name for name in policy.plugins if release >= FLUX_AND_MORE or name in _FIRST_PLUGINS]
    if len(plugins) > 1:
        message = f"must have one policy, but has {', '.join(f'`{name}`' for name in plugins)}"
        yield ONE_POLICY.problem("spec.mlPolicy", message, "keep one of them")


def warn_of_missing_ml_policy(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield the problem of a runtime without mlPolicy, for which Trainer 2.3 and later ignore resourcesPerNode."""
    if release >= WHOLE_JOBSET and not runtime.ml_policy:
        message = f"is not set, so Trainer {release_as_text(release)} ignores resourcesPerNode of TrainJobs"
        fix = "set an mlPolicy, such as torch: {}, or {numNodes: 1} for a plain command"
        yield ML_POLICY.problem(runtime.path("mlPolicy"), message, fix)
