"""What KubeRay's operator refuses of a RayCluster, a RayJob or a RayService after it was stored, in an event alone.

Source: ray-project/kuberay v1.4.2 ray-operator/controllers/ray/utils/validation.go and constant.go. Names of RayJobs
and RayServices are shorter by the six characters that KubeRay adds for their cluster. What hangs on feature gates of
the operator, and on fault tolerance, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.ray.groups import RAY
from webhook.facts.subject import Subject
from webhook.name_faults import label_fault
from webhook.names import dns1035_label_errors
from webhook.placeholders import is_placeholder_for_name
from webhook.problem import Problem
from webhook.typed.objects import Object
from webhook.typed.ray import RayCluster, RayClusterSpec, RayCronJob, RayJob, RayJobSpec, RayService
from webhook.wording import counted

NAME: Final = RAY.rule(
    "ray/name",
    title="The name of a RayCluster, RayJob or RayService leaves room for the names of its services.",
    why=(
        "KubeRay refuses a longer name, or one that is not a DNS label, in an event after the object was stored, and "
        "no pod is made."
    ),
    function="ValidateRayClusterMetadata",
)
CLUSTER_REQUIRED: Final = RAY.rule(
    "ray/cluster-required",
    title="A RayJob has a cluster of its own or selects one by name.",
    why="KubeRay sets the job to failed, and nothing runs.",
    function="ValidateRayJobSpec",
)
SUSPEND: Final = RAY.rule(
    "ray/suspend",
    title="A RayJob that is suspended has a cluster that is shut down with it.",
    why="KubeRay suspends a job by deleting its cluster, and refuses the job where it may not.",
    function="ValidateRayJobSpec",
)
CONTAINERS_REQUIRED: Final = RAY.rule(
    "ray/containers-required",
    title="Every group of a Ray cluster has a container.",
    why="Ray runs in the first container of a group.",
    function="ValidateRayClusterSpec",
)

_LONGEST: Final[Mapping[str, int]] = {"RayCluster": 53, "RayJob": 47, "RayService": 47}
_SELECTED: Final = "ray.io/cluster"


def validate_name(subject: Subject) -> Iterator[Problem]:
    """Check the name as ValidateRayClusterMetadata and its like do: services are named after the cluster."""
    name = subject.typed(Object).name
    if not name or is_placeholder_for_name(name):
        return
    longest = _LONGEST[subject.group_kind[1]]
    if len(name) > longest:
        message = f"must not be longer than {longest} characters because services of the Ray cluster are named after it"
        yield NAME.problem("metadata.name", message, f"remove {counted(len(name) - longest, 'character')}", name)
    elif dns1035_label_errors(name):
        message = f"cannot be a part of the names of services because {label_fault(name, begins_with_letter=True)}"
        fix = "use lower-case letters, digits and dashes, and begin with a letter"
        yield NAME.problem("metadata.name", message, fix, name)


def validate_ray_job_spec(subject: Subject) -> Iterator[Problem]:
    """Check, as ValidateRayJobSpec does, where the job runs, and whether it can be suspended."""
    spec = subject.typed(RayJob).spec
    selector = spec.cluster_selector
    yield from _check_cluster_required(spec)
    if spec.suspend and (selector or not spec.shutdown_after_job_finishes):
        why = "runs on an existing Ray cluster" if selector else "keeps its Ray cluster"
        message = f"is not allowed for a job that {why}, because KubeRay suspends a job by deleting its Ray cluster"
        fix = "remove suspend" if selector else "set spec.shutdownAfterJobFinishes to true, or remove suspend"
        yield SUSPEND.problem(spec.path("suspend"), message, fix, shown="`true`")


def _check_cluster_required(spec: RayJobSpec) -> Iterator[Problem]:
    if spec.cluster_selector and not spec.cluster_selector.get(_SELECTED):
        message = f"must name a RayCluster by the key {_SELECTED} because KubeRay looks for no other label"
        yield CLUSTER_REQUIRED.problem("spec.clusterSelector", message, f"set {_SELECTED}")
    elif not spec.cluster_selector and not spec.ray_cluster_spec:
        message = "must have rayClusterSpec or clusterSelector because the job otherwise has no Ray cluster to run on"
        fix = "set rayClusterSpec, or select a Ray cluster with clusterSelector"
        yield CLUSTER_REQUIRED.problem("spec", message, fix)


def check_groups_have_containers(subject: Subject) -> Iterator[Problem]:
    """Require a container in every group of a Ray cluster (ValidateRayClusterSpec)."""
    for group in ray_cluster_spec_of(subject).groups():
        pod = group.template.spec
        if pod.json.get("containers") == []:  # the schema refuses a template without the list
            message = "must have a container because Ray runs in a container"
            yield CONTAINERS_REQUIRED.problem(pod.path("containers"), message, "add a container")


def ray_cluster_spec_of(subject: Subject) -> RayClusterSpec:
    """Return the RayClusterSpec of a RayCluster, RayJob, RayService or RayCronJob."""
    match subject.group_kind[1]:
        case "RayCluster":
            return subject.typed(RayCluster).spec
        case "RayJob":
            return subject.typed(RayJob).spec.ray_cluster_spec
        case "RayService":
            return subject.typed(RayService).spec.ray_cluster_config
        case _:
            return subject.typed(RayCronJob).spec.job_template.ray_cluster_spec
