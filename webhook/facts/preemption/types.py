"""The group of rules of this package, and the kinds that advice on preemption reads, with the fields that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.rules.rule import RuleGroup
from webhook.typed.fields import OptionalNumber, Part, PartMap, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed

PREEMPTION: Final = RuleGroup(
    "preemption",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    level="warn",
    fails="disruption",
)
"""Workloads with devices whose pods are preempted, by a cloud or by other pods."""


class TrainingJobRole(Typed):
    """kubeflow.org ReplicaSpec."""

    restart_policy = Text()


class RunPolicy(Typed):
    """kubeflow.org RunPolicy."""

    backoff_limit = OptionalNumber()


class ElasticPolicy(Typed):
    """kubeflow.org ElasticPolicy."""

    min_replicas = OptionalNumber()
    max_replicas = OptionalNumber()


class TrainingJobSpec(Typed):
    """The specs of all jobs of the Training Operator together."""

    elastic_policy = Part(ElasticPolicy)
    run_policy = Part(RunPolicy)
    jax_replica_specs = PartMap(TrainingJobRole)
    mpi_replica_specs = PartMap(TrainingJobRole)
    paddle_replica_specs = PartMap(TrainingJobRole)
    pytorch_replica_specs = PartMap(TrainingJobRole)
    tf_replica_specs = PartMap(TrainingJobRole)
    xgb_replica_specs = PartMap(TrainingJobRole)

    def roles(self) -> Iterator[tuple[str, TrainingJobRole]]:
        """Yield the roles of the job by their names."""
        yield from self.jax_replica_specs.items()
        yield from self.mpi_replica_specs.items()
        yield from self.paddle_replica_specs.items()
        yield from self.pytorch_replica_specs.items()
        yield from self.tf_replica_specs.items()
        yield from self.xgb_replica_specs.items()


class TrainingOperatorJob(Object):
    """A job of the Training Operator, of any kind."""

    spec = Part(TrainingJobSpec)
