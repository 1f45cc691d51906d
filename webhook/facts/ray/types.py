"""The kinds of KubeRay, with the fields that checks read."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.facts.subject import Subject
from webhook.typed.fields import Labels, Part, Parts, Text, Truth
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed


class StartParams(Typed):
    """The parameters of `ray start`."""

    num_gpus = Text(name="num-gpus")


class Group(Typed):
    """ray.io HeadGroupSpec and WorkerGroupSpec."""

    ray_start_params = Part(StartParams)
    template = Part(PodTemplate)


class ClusterSpec(Typed):
    """ray.io RayClusterSpec."""

    head_group_spec = Part(Group)
    worker_group_specs = Parts(Group)

    def groups(self) -> list[Group]:
        """The group of the head, then those of the workers."""
        return [self.head_group_spec, *self.worker_group_specs]


class RayCluster(Object):
    """ray.io RayCluster."""

    gvk = GroupVersionKind("ray.io", "v1", "RayCluster")
    spec = Part(ClusterSpec)


class RayJobSpec(Typed):
    """ray.io RayJobSpec."""

    cluster_selector = Labels()
    ray_cluster_spec = Part(ClusterSpec)
    shutdown_after_job_finishes = Truth()
    suspend = Truth()


class RayJob(Object):
    """ray.io RayJob."""

    gvk = GroupVersionKind("ray.io", "v1", "RayJob")
    spec = Part(RayJobSpec)


class RayServiceSpec(Typed):
    """ray.io RayServiceSpec."""

    ray_cluster_config = Part(ClusterSpec)


class RayService(Object):
    """ray.io RayService."""

    gvk = GroupVersionKind("ray.io", "v1", "RayService")
    spec = Part(RayServiceSpec)


class RayCronJobSpec(Typed):
    """ray.io RayCronJobSpec."""

    job_template = Part(RayJobSpec)


class RayCronJob(Object):
    """ray.io RayCronJob."""

    gvk = GroupVersionKind("ray.io", "v1", "RayCronJob")
    spec = Part(RayCronJobSpec)


def cluster_of(subject: Subject) -> ClusterSpec:
    """The spec of the cluster that an object of a kind of KubeRay is, or makes."""
    match subject.group_kind[1]:
        case "RayCluster":
            return subject.typed(RayCluster).spec
        case "RayJob":
            return subject.typed(RayJob).spec.ray_cluster_spec
        case "RayService":
            return subject.typed(RayService).spec.ray_cluster_config
        case _:
            return subject.typed(RayCronJob).spec.job_template.ray_cluster_spec
