"""The mlPolicy of a runtime: one plugin, and numbers that Trainer takes.

Source: kubeflow/trainer@8c0f5059bd51 manifests/base/crds, and branches of earlier releases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME, TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    INJECTION,
    NUMBERS_ONLY,
    REFUSES_ZERO,
    WHOLE_JOBSET,
)
from webhook.facts.train_job_pods.types import MLPolicy, RuntimeSpec
from webhook.facts.trainer.training_runtime_env_injection import validate_injected_node
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import Release, shown
from webhook.typed.fields import whole

ONE_POLICY: Final = TRAINING_RUNTIME.rule(
    "training-runtime/one-policy",
    title="A runtime has one machine learning policy.",
    why="Each policy is a plugin that sets up the nodes in its own way.",
)
PROCESSES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/processes",
    title="numProcPerNode of a runtime is at least 1.",
    why=(
        "The CustomResourceDefinition takes no less, of flux since 2.2 and of mpi since 2.4; torch of 2.0 and 2.1 "
        "also takes auto, cpu and gpu."
    ),
)
ELASTIC_NODES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/elastic-nodes",
    title="torch.elasticPolicy and numNodes exclude each other.",
    why="Trainer 2.0 and 2.1 refuse both together.",
    source="kubeflow/trainer release-2.1 manifests/base/crds",
)
ML_POLICY: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/ml-policy",
    title="A runtime has an mlPolicy.",
    why="Since 2.3 Trainer leaves resourcesPerNode of TrainJobs out without one.",
)
_WORDS: Final = ("auto", "cpu", "gpu")
_FIRST_PLUGINS: Final = ("torch", "mpi")


def validate_ml_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    """The rules of the CustomResourceDefinition."""
    yield from _one_policy(policy, release)
    yield from _validate_processes(policy, release)
    if release >= INJECTION:
        yield from validate_injected_node(policy)
    if release < NUMBERS_ONLY:
        yield from _elastic_nodes(policy)
        yield from _validate_first_processes(policy)


def _one_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    plugins = [name for name in policy.plugins if release >= FLUX_AND_MORE or name in _FIRST_PLUGINS]
    if len(plugins) > 1:
        message = f"must have one policy, but has {', '.join(f'`{name}`' for name in plugins)}"
        yield ONE_POLICY.problem("spec.mlPolicy", message, "keep one of them")


def _validate_processes(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    for plugin, since in ((policy.mpi, REFUSES_ZERO), (policy.flux, FLUX_AND_MORE)):
        number = plugin.num_proc_per_node
        if release >= since and number is not None and number < 1:
            yield _processes(plugin.path("numProcPerNode"), number)


def _processes(path: FieldPath, value: JSON, *, is_word_allowed: bool = False) -> Problem:
    """The problem of a number of processes; the torch plugin of 2.0 and 2.1 takes three words, too."""
    if is_word_allowed:
        message = "must be auto, cpu, gpu or a whole number of at least 1"
        return PROCESSES.problem(path, message, "set one of these", value)
    return PROCESSES.problem(path, "must be at least 1", "set 1 or more", value)


def _elastic_nodes(policy: MLPolicy) -> Iterator[Problem]:
    """A rule of 2.0 and 2.1."""
    if policy.num_nodes is not None and policy.torch.elastic_policy is not None:
        message = "must not be set together with torch.elasticPolicy"
        yield ELASTIC_NODES.problem(policy.path("numNodes"), message, "remove one of the two")


def _validate_first_processes(policy: MLPolicy) -> Iterator[Problem]:
    """The same: three words are numbers, too."""
    per_node = policy.torch.num_proc_per_node
    is_word = isinstance(per_node, str) and per_node not in _WORDS and not is_placeholder(per_node)
    if is_word or ((number := whole(per_node)) is not None and number < 1):
        yield _processes(policy.torch.path("numProcPerNode"), per_node, is_word_allowed=True)


def advise_ml_policy(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Warn of a runtime without mlPolicy, under which Trainer 2.3 and later ignore resourcesPerNode."""
    if release >= WHOLE_JOBSET and not runtime.ml_policy:
        message = f"is not set, so Trainer {shown(release)} ignores resourcesPerNode of TrainJobs"
        fix = "set an mlPolicy, such as torch: {}, or {numNodes: 1} for a plain command"
        yield ML_POLICY.problem(runtime.path("mlPolicy"), message, fix)
