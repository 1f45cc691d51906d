"""The kinds that checks of launchers read beside pod templates, with the fields that they read."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import Number, Part, Parts, Raw, ValueMap
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class PyTorchJobSpec(Typed):
    """kubeflow.org PyTorchJobSpec."""

    elastic_policy = Raw()
    pytorch_replica_specs = ValueMap()


class PyTorchJob(Object):
    """kubeflow.org PyTorchJob."""

    gvk = GroupVersionKind("kubeflow.org", "v1", "PyTorchJob")
    spec = Part(PyTorchJobSpec)


class ReplicatedJob(Typed):
    """jobset.x-k8s.io ReplicatedJob."""

    replicas = Number()


class JobSetSpec(Typed):
    """jobset.x-k8s.io JobSetSpec."""

    replicated_jobs = Parts(ReplicatedJob)


class JobSet(Object):
    """jobset.x-k8s.io JobSet."""

    gvk = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
    spec = Part(JobSetSpec)


class VolcanoJobSpec(Typed):
    """batch.volcano.sh JobSpec; plugins have lists of arguments, or null."""

    plugins = ValueMap()
