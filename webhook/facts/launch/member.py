"""The containers of an object that start training processes, with the number of their GPUs and pods.

Init containers and sidecars are not among these containers. commands_of_kinds.py reads the training container of a
TrainJob. The module also has the group of rules of this package, and types for PyTorchJobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.command import LaunchedProgram, cached_launch_of_container, launch_of_container
from webhook.facts.dra.pod_claims import PodClaim, pod_claims
from webhook.facts.dra.requested_devices import claim_with_selected_requests
from webhook.facts.gpu.device_pods import located_templates
from webhook.facts.gpu.resources import count_gpus_of_resources
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.subject import Subject
from webhook.rules.rule import RuleGroup
from webhook.text.wording import counted
from webhook.typed.collections import Items
from webhook.typed.fields import Part, Raw, ValueMap
from webhook.typed.job_sets import JobSet
from webhook.typed.objects import Object
from webhook.typed.pods import Container
from webhook.typed.ray import RayJob
from webhook.typed.view import Typed
from webhook.workloads.podsets import PodSet

LAUNCH: Final = RuleGroup(
    "launch",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    level="warn",
    fails="waiting",
)
"""Probable mistakes of launchers in the pods of any kind."""
KUBEFLOW: Final = "kubeflow.org"
INDEXED: Final = frozenset((("batch", "Job"), ("batch", "CronJob"), ("jobset.x-k8s.io", "JobSet")))
"""Kinds with pods that have an index."""
UNRELATED: Final = frozenset(
    (
        ("", "Pod"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService")),
    )
)
"""Kinds with pods that need not train together."""
_NAMES: Final = re.compile(r"torch|accelerate|deepspeed|\bds\b|[$`]")
"""Texts in a command that may start a launcher: the name of a launcher, or the sign of a variable or of a command
substitution.
"""


class PyTorchJobSpec(Typed):
    """kubeflow.org PyTorchJobSpec."""

    elastic_policy = Raw()
    pytorch_replica_specs = ValueMap()


class PyTorchJob(Object):
    """kubeflow.org PyTorchJob."""

    gvk = GroupVersionKind("kubeflow.org", "v1", "PyTorchJob")
    spec = Part(PyTorchJobSpec)


class LaunchedContainer(Struct, frozen=True, kw_only=True):
    """One container of the pods of one pod set.

    Args:
        pod_set: the name of the pod set.
        path: the path of the container in the object.
        launch: what the command starts.
        env: the variables by name; None for a value that is not in the object.
        has_other_env: whether the container has more variables than `env`.
        gpus: the number of GPUs; None if the number of GPUs of a claim is not known.
        has_claims: whether the container gets devices by claims.
        pods: the least number of pods of the pod set that train together; None if the number is not known.
        words: the words of the command and the arguments.
        has_ports: whether the container has ports, as servers do.
    """

    pod_set: str
    path: FieldPath
    launch: LaunchedProgram
    env: Mapping[str, str | None] = field(default_factory=dict)
    has_other_env: bool = False
    gpus: int | None = None
    has_claims: bool = False
    pods: int | None
    words: Sequence[str] = ()
    has_ports: bool = False


def may_run_launcher(subject: Subject) -> bool:
    """Return whether a command of an object may run torchrun, accelerate or deepspeed. Most pods run no launcher."""
    if _NAMES.search(_entrypoint_of_ray_job(subject)):
        return True
    for _, template in subject.once(located_templates):
        for container in template.spec.all_containers():
            if container.runs(_NAMES):
                return True
    return False


def read_launched_containers(subject: Subject) -> Items[LaunchedContainer]:
    """Return the containers in the pod templates of an object, and the entrypoint of a RayJob as a container.

    Call this function through `Subject.once`.
    """
    listed = list(_launched_containers(subject))
    if _entrypoint_of_ray_job(subject):
        listed.append(_driver_of_ray_job(listed, subject))
    return Items(listed, subject.deadline)


def _entrypoint_of_ray_job(subject: Subject) -> str:
    """Return the command that a RayJob runs; "" for other objects."""
    return subject.typed(RayJob).spec.entrypoint if subject.group_kind == ("ray.io", "RayJob") else ""


def _driver_of_ray_job(listed: Sequence[LaunchedContainer], subject: Subject) -> LaunchedContainer:
    """Return the entrypoint of a RayJob as a container. A shell runs the entrypoint once: on the head, or on another
    pod if the RayJob requests resources for the entrypoint.

    ray-project/ray@007c8cdf python/ray/dashboard/modules/job/job_manager.py submit_job: on the head, the entrypoint
    may use all GPUs, and on another pod only the requested GPUs.
    """
    spec = subject.typed(RayJob).spec
    head = next((container for container in listed if container.pod_set == "head"), None)
    gpus = head.gpus if head is not None else None
    if spec.requests_resources:
        gpus = spec.entrypoint_num_gpus
    shell = Container.of({"command": ["sh", "-c", spec.entrypoint]}, spec.path("entrypoint"), subject.reading_context)
    return LaunchedContainer(
        pod_set="",
        path=shell.at,
        launch=launch_of_container(shell),
        env=head.env if head is not None else {},
        has_other_env=True,
        gpus=gpus,
        pods=1,
    )


def _launched_containers(subject: Subject) -> Iterator[LaunchedContainer]:
    for podset in subject.once(pod_sets).all:
        for container in template_of(podset, subject).spec.containers:
            yield LaunchedContainer(
                pod_set=podset.name,
                path=podset.locate(container.at),
                launch=cached_launch_of_container(container, subject),
                env=container.environment.by_name(),
                has_other_env=bool(container.env_from),
                gpus=_number_of_gpus(container, podset, subject),
                has_claims=bool(container.resources.claims),
                pods=_size_of_pod_group(podset, subject),
                words=container.words,
                has_ports=bool(container.ports) or container.has("readinessProbe"),
            )


def claims_by_pod_set_and_name(subject: Subject) -> Mapping[tuple[str, str], PodClaim]:
    """Return the claims of an object, by pod set and name."""
    return {(claim.pod_set, claim.name): claim for claim in subject.once(pod_claims).claims}


def _number_of_gpus(container: Container, podset: PodSet, subject: Subject) -> int | None:
    """Count the GPUs of extended resources and of claims; None if the devices of a claim are not known."""
    wanted: dict[str, set[str]] = {}
    for claimed in container.resources.claims:
        wanted.setdefault(claimed.name, set()).add(claimed.request)
    count = count_gpus_of_resources(container.resources)
    for name, requests in wanted.items():
        claim = subject.once(claims_by_pod_set_and_name).get((podset.name, name))
        taken = claim_with_selected_requests(claim.contents, requests) if claim is not None and claim.is_found else None
        if taken is None or taken.devices is None:
            return None
        count += taken.devices if taken.is_gpu else 0
    return count


def _size_of_pod_group(podset: PodSet, subject: Subject) -> int | None:
    """Return how many pods form one group. In a JobSet, each replica is a group, because each replica may train
    separately.
    """
    if podset.count is None or subject.group_kind != ("jobset.x-k8s.io", "JobSet"):
        return podset.count
    replicas = subject.typed(JobSet).spec.replicated_jobs[int(podset.path[2])].replicas
    return podset.count // replicas if replicas else podset.count


class PodsTrainingTogether(Struct, frozen=True, kw_only=True):
    """The pods of an object that may train together.

    Args:
        pods: the number of pods of one group; None if the number is not known.
        is_one: whether the object is one training, so a pod that trains alone is a mistake.
        may_train_with_other_objects: whether pods of other objects may belong to the training. An example is a training
            with one Job for each node.
        is_ranked: whether the operator sets the number of nodes and the rank of the node for each launcher.
        index: the argument with the index of a pod, in words for a fix.
    """

    pods: int | None
    is_one: bool
    may_train_with_other_objects: bool
    is_ranked: bool
    index: str


def pod_count_with_verb(pods: int) -> str:
    """Write a number of pods for the place after `there`: `is 1 pod`, `are 2 pods`."""
    return f"{'is' if pods == 1 else 'are'} {counted(pods, 'pod')}"
