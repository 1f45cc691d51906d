"""numProcPerNode of a runtime.

Source: kubeflow/trainer@8c0f5059bd51 manifests/base/crds, and branches of earlier releases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
from webhook.facts.train_job_pods.releases import FLUX_AND_MORE, REFUSES_ZERO
from webhook.facts.train_job_pods.types import MLPolicy
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import Release
from webhook.typed.fields import read_whole_number

PROCESSES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/processes",
    title="numProcPerNode of a runtime is at least 1.",
    why=(
        "The CustomResourceDefinition takes no less, of flux since 2.2 and of mpi since 2.4; torch of 2.0 and 2.1 "
        "also takes auto, cpu and gpu."
    ),
)
_WORDS: Final = ("auto", "cpu", "gpu")


def validate_processes(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    """Yield a numProcPerNode below 1 of the plugins mpi and flux."""
    for plugin, since in ((policy.mpi, REFUSES_ZERO), (policy.flux, FLUX_AND_MORE)):
        number = plugin.num_proc_per_node
        if release >= since and number is not None and number < 1:
            yield _processes_problem(plugin.path("numProcPerNode"), number)


def _processes_problem(path: FieldPath, value: JSON, *, is_word_allowed: bool = False) -> Problem:
    """Return the problem of a number of processes; the torch plugin of 2.0 and 2.1 also accepts three words."""
    if is_word_allowed:
        message = "must be auto, cpu, gpu or a whole number of at least 1"
        return PROCESSES.problem(path, message, "set one of these", value)
    return PROCESSES.problem(path, "must be at least 1", "set 1 or more", value)


def validate_processes_of_first_releases(policy: MLPolicy) -> Iterator[Problem]:
    """Yield a numProcPerNode that is neither a number from 1 nor one of the three words of 2.0 and 2.1."""
    per_node = policy.torch.num_proc_per_node
    is_word = isinstance(per_node, str) and per_node not in _WORDS and not is_placeholder(per_node)
    if is_word or ((number := read_whole_number(per_node)) is not None and number < 1):
        yield _processes_problem(policy.torch.path("numProcPerNode"), per_node, is_word_allowed=True)
