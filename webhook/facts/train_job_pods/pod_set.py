"""A replicated job of the JobSet, copied down to its containers, that Trainer and its plugins change.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/runtime.go. Its ReplicatedJobPods is a view of a replicated job.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.facts.train_job_pods.nodes_and_processes import POD_PATH, step_of_job
from webhook.text.caches import IdentityKey
from webhook.typed.job_sets import ReplicatedJob
from webhook.typed.view import ReadingContext


class ReplicatedJobPods(Struct):
    """The pods of one replicated job, while plugins and spec.trainer change them.

    Args:
        job: the merged job so far; `replicated_job` puts the rest into it.
        pod: its PodSpec.
        metadata: the metadata of its pods.
        containers, init_containers: its containers.
        count: its pods.
        step: the step that its label names, "" without one.
        given: the unchanged job.
        settled: its container that has the variables of spec.trainer for good, None as long as none has.
    """

    job: JSON
    pod: dict[str, Any]
    metadata: dict[str, Any]
    containers: list[dict[str, Any]]
    init_containers: list[dict[str, Any]]
    count: int
    step: str
    given: JSON
    settled: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Return the name of the pod set."""
        return str(self.job.get("name") or "")

    def container(self, name: str) -> dict[str, Any] | None:
        """Return the first container of a name."""
        return next((container for container in self.containers if container.get("name") == name), None)

    def init_container(self, name: str) -> dict[str, Any] | None:
        """Return its first init container of a name."""
        return next((container for container in self.init_containers if container.get("name") == name), None)

    @property
    def node_containers(self) -> list[dict[str, Any]]:
        """Return its containers `node`; a valid runtime has one."""
        return [container for container in self.containers if container.get("name") == "node"]

    @property
    def is_template_unchanged(self) -> bool:
        """Return whether nothing of it but its replicas was changed."""
        pod, metadata = get(self.given, POD_PATH, {}), get(self.given, (*POD_PATH[:-1], "metadata"), {})
        own, first = pod.get("containers", []), pod.get("initContainers", [])
        now = self.pod, self.metadata, self.containers, self.init_containers
        return now == (pod, metadata, own, first)

    def build_replicated_job(self) -> JSON:
        """Return the replicated job with the changed pod template."""
        template = self.job.get("template") or {}
        spec = template.get("spec") or {}
        lists = {"containers": self.containers, "initContainers": self.init_containers}
        pod = {**self.pod, **{name: listed for name, listed in lists.items() if listed}}
        pods = {**(spec.get("template") or {}), "spec": pod}
        if self.metadata:
            pods["metadata"] = self.metadata
        spec = {**spec, "parallelism": self.count, "completions": self.count, "template": pods}
        return {**self.job, "template": {**template, "spec": spec}}


def pods_of_replicated_job(job: ReplicatedJob, count: int) -> ReplicatedJobPods:
    """Return the pod set of a replicated job with a number of pods."""
    containers, init_containers = (
        [dict(container.json) for container in listed] for listed in (job.pod.containers, job.pod.init_containers)
    )
    metadata = dict(job.pod_template.metadata.json)
    given = job.json
    return ReplicatedJobPods(
        given, dict(job.pod.json), metadata, containers, init_containers, count, step_of_job(job), given
    )


@lru_cache(maxsize=64)
def cached_unchanged_job_of_runtime(job: IdentityKey, count: int, *, is_step: bool) -> JSON:
    """Return an unchanged replicated job of a runtime, cached until the cluster has another runtime.

    For jobs of ClusterTrainingRuntimes, which are few: values of users are not kept.
    """
    given = {**job.held, "replicas": 1} if is_step else job.held
    return pods_of_replicated_job(ReplicatedJob(given, (), ReadingContext()), count).build_replicated_job()
