"""The groups of rules of this package, and the kinds of the Training Operator and the MPI Operator."""

from __future__ import annotations

from typing import Final, TypeAlias

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import OptionalNumber, Part, PartMap, Text
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed

TRAINING_JOB: Final = RuleGroup(
    "training-job",
    refused_by="the Training Operator or the MPI Operator",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/webhooks",
    fails="create",
    refused_on_updates="pkg/webhooks, ValidateUpdate of the webhook of each kind",
    updates_of=("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"),
)
"""The mistakes in a job that the Training Operator and the MPI Operator refuse, partly in an event after it was stored,
and probable mistakes."""
TRAINING_JOB_ADVICE: Final = RuleGroup(
    "training-job",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/envvar.go",
    level="warn",
    fails="silent",
)
"""Probable mistakes that the operators accept."""

GROUP: Final = "kubeflow.org"


class ReplicaSpec(Typed):
    """kubeflow.org ReplicaSpec: one role of a job."""

    replicas = OptionalNumber()
    restart_policy = Text()
    template = Part(PodTemplate)


class PyTorchJobSpec(Typed):
    """kubeflow.org PyTorchJobSpec."""

    roles = PartMap(ReplicaSpec, name="pytorchReplicaSpecs")


class PyTorchJob(Object):
    """kubeflow.org PyTorchJob."""

    gvk = GroupVersionKind(GROUP, "v1", "PyTorchJob")
    spec = Part(PyTorchJobSpec)


class TFJobSpec(Typed):
    """kubeflow.org TFJobSpec."""

    roles = PartMap(ReplicaSpec, name="tfReplicaSpecs")


class TFJob(Object):
    """kubeflow.org TFJob."""

    gvk = GroupVersionKind(GROUP, "v1", "TFJob")
    spec = Part(TFJobSpec)


class MPIJobSpec(Typed):
    """kubeflow.org MPIJobSpec, of v1 and v2beta1."""

    roles = PartMap(ReplicaSpec, name="mpiReplicaSpecs")


class MPIJob(Object):
    """kubeflow.org MPIJob."""

    gvk = GroupVersionKind(GROUP, "v1", "MPIJob")
    spec = Part(MPIJobSpec)


class XGBoostJobSpec(Typed):
    """kubeflow.org XGBoostJobSpec."""

    roles = PartMap(ReplicaSpec, name="xgbReplicaSpecs")


class XGBoostJob(Object):
    """kubeflow.org XGBoostJob."""

    gvk = GroupVersionKind(GROUP, "v1", "XGBoostJob")
    spec = Part(XGBoostJobSpec)


class PaddleJobSpec(Typed):
    """kubeflow.org PaddleJobSpec."""

    roles = PartMap(ReplicaSpec, name="paddleReplicaSpecs")


class PaddleJob(Object):
    """kubeflow.org PaddleJob."""

    gvk = GroupVersionKind(GROUP, "v1", "PaddleJob")
    spec = Part(PaddleJobSpec)


class JAXJobSpec(Typed):
    """kubeflow.org JAXJobSpec."""

    roles = PartMap(ReplicaSpec, name="jaxReplicaSpecs")


class JAXJob(Object):
    """kubeflow.org JAXJob."""

    gvk = GroupVersionKind(GROUP, "v1", "JAXJob")
    spec = Part(JAXJobSpec)


AnyJob: TypeAlias = PyTorchJob | TFJob | MPIJob | XGBoostJob | PaddleJob | JAXJob
