"""The Ray cluster that an object of a kind of KubeRay is, or makes."""

from __future__ import annotations

from webhook.facts.subject import Subject
from webhook.typed.ray import RayCluster, RayClusterSpec, RayCronJob, RayJob, RayService


def cluster_of(subject: Subject) -> RayClusterSpec:
    """The spec of the cluster."""
    match subject.group_kind[1]:
        case "RayCluster":
            return subject.typed(RayCluster).spec
        case "RayJob":
            return subject.typed(RayJob).spec.ray_cluster_spec
        case "RayService":
            return subject.typed(RayService).spec.ray_cluster_config
        case _:
            return subject.typed(RayCronJob).spec.job_template.ray_cluster_spec
