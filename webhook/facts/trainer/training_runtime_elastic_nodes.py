"""torch.elasticPolicy and numNodes of a runtime, which exclude each other.

Source: kubeflow/trainer release-2.1 manifests/base/crds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
from webhook.facts.train_job_pods.types import MLPolicy
from webhook.problem import Problem

ELASTIC_NODES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/elastic-nodes",
    title="torch.elasticPolicy and numNodes exclude each other.",
    why="Trainer 2.0 and 2.1 refuse both together.",
    source="kubeflow/trainer release-2.1 manifests/base/crds",
)


def validate_elastic_nodes(policy: MLPolicy) -> Iterator[Problem]:
    """Yield the problem of numNodes together with torch.elasticPolicy, a rule of 2.0 and 2.1."""
    if policy.num_nodes is not None and policy.torch.elastic_policy is not None:
        message = "must not be set together with torch.elasticPolicy"
        yield ELASTIC_NODES.problem(policy.path("numNodes"), message, "remove one of the two")
