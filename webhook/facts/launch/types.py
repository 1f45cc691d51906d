"""The kinds that checks of launchers read beside pod templates, with the fields that they read."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import Number, OptionalNumber, Part, Parts, Raw, Text, ValueMap
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class RayJobSpec(Typed):
    """ray.io RayJobSpec; `entrypoint` is a command line for a shell."""

    entrypoint = Text()
    entrypoint_num_cpus = Raw()
    entrypoint_num_gpus = OptionalNumber()
    entrypoint_resources = Raw()

    @property
    def requests_resources(self) -> bool:
        """Whether the entrypoint requests resources, so that it may run beside the head."""
        requested = (self.entrypoint_num_cpus, self.json.get("entrypointNumGpus"), self.entrypoint_resources)
        return requested != (None, None, None)


class RayJob(Object):
    """ray.io RayJob."""

    gvk = GroupVersionKind("ray.io", "v1", "RayJob")
    spec = Part(RayJobSpec)


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
