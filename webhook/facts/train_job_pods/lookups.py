"""The objects that facts about TrainJobs look up in the cluster."""

from __future__ import annotations

from typing import Final

from webhook.attributes import GroupVersionKind
from webhook.cluster import controllers
from webhook.cluster.interest import Interest, ObjectScope, interest_in_fields
from webhook.facts.kinds import TRAINER
from webhook.facts.view import CONFIG_MAP, NAMESPACES

CLUSTER_RUNTIME: Final = GroupVersionKind(TRAINER, "v1alpha1", "ClusterTrainingRuntime")
RUNTIME: Final = GroupVersionKind(TRAINER, "v1alpha1", "TrainingRuntime")
INSTALLED: Final = Interest(
    CONFIG_MAP, frozenset(("data",)), scope=ObjectScope(namespace="claimgate-system", name="trainer")
)
"""The param of policies/trainer, which names the installed Trainer."""
RUNTIMES: Final = (
    *(interest_in_fields(each, "metadata.labels", "spec") for each in (CLUSTER_RUNTIME, RUNTIME)),
    NAMESPACES,
    INSTALLED,
    controllers.TRAINER.deployment_interest,
)
"""The runtimes, which facts about pods need."""
