"""Applies the defaults of Volcano's mutating webhooks and schemas to an object.

The webhooks are called only on CREATE; an update gets the defaults of the schema.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/{jobs,queues,podgroups}/mutate and the
CustomResourceDefinitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, NAMESPACE, Operation
from webhook.apimachinery.paths import get
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import types

DEFAULT_QUEUE: Final = "default"
_RETRIES: Final = 3
NEED_SERVICE: Final = ("tensorflow", "mpi", "pytorch", "ray")
"""Plugins for which the webhook adds svc."""
_CRON_JOB: Final = {
    "concurrencyPolicy": "Allow",
    "failedJobsHistoryLimit": 1,
    "successfulJobsHistoryLimit": 3,
    "suspend": False,
}
_QUEUE: Final = {"weight": 1, "dequeueStrategy": "traverse"}


def object_with_defaults(subject: Subject) -> JSON:
    """Return the object as Volcano validates it. Call this function through `Subject.once`.

    List indexes stay the same as in the sent object, and only changed parts are copied.
    """
    obj, spec = subject.object, get(subject.object, ("spec",))
    if spec is None and subject.group_kind != types.POD_GROUP:
        return obj
    is_new = subject.attributes.operation is Operation.CREATE
    match subject.group_kind:
        case types.JOB:
            return {
                **obj,
                "spec": _job_spec_with_schema_defaults(
                    job_spec_with_webhook_defaults(spec, subject.deadline) if is_new else spec
                ),
            }
        case types.JOB_TEMPLATE:
            return {**obj, "spec": _job_spec_with_schema_defaults(spec)}
        case types.CRON_JOB:
            return {**obj, "spec": _with_job_defaults_at_path({**_CRON_JOB, **spec}, ("jobTemplate", "spec"))}
        case types.JOB_FLOW:
            flows = [
                _with_job_defaults_at_path(flow, ("patch", "jobSpec"))
                for flow in subject.deadline.items_with_clock_checks(spec.get("flows", []))
            ]
            return {**obj, "spec": {**spec, **({"flows": flows} if flows else {})}}
        case types.QUEUE:
            return _queue_with_defaults(obj, spec, is_new=is_new)
        case types.POD_GROUP:
            return (
                {**obj, "spec": _pod_group_with_defaults(spec or {}, subject, is_new=is_new)}
                if spec is not None
                else obj
            )
        case _:
            return obj


def _with_job_defaults_at_path(value: Mapping[str, Any], path: tuple[str, str]) -> JSON:
    """Return a value with the defaults of the job spec at a path."""
    outer, inner = path
    spec = get(value, path)
    return value if spec is None else {**value, outer: {**value[outer], inner: _job_spec_with_schema_defaults(spec)}}


def _job_spec_with_schema_defaults(spec: Mapping[str, Any]) -> JSON:
    """Return the spec of a Job with the defaults of its CustomResourceDefinition."""
    completed = {"queue": DEFAULT_QUEUE, "maxRetry": _RETRIES, **_with_topology_default(spec)}
    if "tasks" in completed:
        completed["tasks"] = [_task_with_schema_defaults(task) for task in completed["tasks"]]
    return completed


def _task_with_schema_defaults(task: Mapping[str, Any]) -> JSON:
    policy = task.get("partitionPolicy")
    return (
        task if policy is None else {**task, "partitionPolicy": {"minPartitions": 0, **_with_topology_default(policy)}}
    )


def _with_topology_default(holder: Mapping[str, Any]) -> dict[str, Any]:
    topology = holder.get("networkTopology")
    return {**holder} if topology is None else {**holder, "networkTopology": {"mode": "hard", **topology}}


def job_spec_with_webhook_defaults(spec: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
    """Return the spec of a Job with the defaults of its mutating webhook (createPatch): zero and "" count as
    not set.
    """
    completed = dict(spec)
    completed["queue"] = spec.get("queue") or DEFAULT_QUEUE
    completed["schedulerName"] = spec.get("schedulerName") or types.SCHEDULER
    completed["maxRetry"] = spec.get("maxRetry") or _RETRIES
    tasks = deadline.items_with_clock_checks(spec.get("tasks", []))
    completed["tasks"] = [_task_with_webhook_defaults(task, index) for index, task in enumerate(tasks)]
    completed["minAvailable"] = spec.get("minAvailable") or sum(task["minAvailable"] for task in completed["tasks"])
    if "tasks" not in spec:
        del completed["tasks"]
    if spec.get("plugins") is not None:
        completed["plugins"] = _with_plugin_defaults(spec["plugins"])
    return completed


def _task_with_webhook_defaults(task: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return a task with the webhook's defaults and without empty values (mutateSpec)."""
    completed = {name: value for name, value in task.items() if value != ""}
    completed["name"] = task.get("name") or f"default{index}"
    completed["maxRetry"] = task.get("maxRetry") or _RETRIES
    policy = task.get("partitionPolicy") or {}
    partitions = policy.get("minPartitions") or 0
    fallback = partitions * policy.get("partitionSize", 0) if partitions > 0 else task.get("replicas", 0)
    completed["minAvailable"] = task.get("minAvailable", fallback)
    pod = get(task, ("template", "spec"), {})
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        completed["template"] = {**task["template"], "spec": {**pod, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return completed


def _with_plugin_defaults(plugins: Mapping[str, Any]) -> dict[str, Any]:
    needs_service = any(name in plugins for name in NEED_SERVICE)
    added: dict[str, Any] = {**({"svc": []} if needs_service else {}), **({"ssh": []} if "mpi" in plugins else {})}
    return {**added, **plugins}


def _queue_with_defaults(obj: JSON, spec: Mapping[str, Any], *, is_new: bool) -> JSON:
    """Return a Queue with the defaults of its mutating webhook (createQueuePatch) and its schema."""
    completed = {**_QUEUE, **({"reclaimable": True} if is_new else {}), **spec}
    if is_new and not completed["weight"]:
        completed["weight"] = 1
    annotations = get(obj, ("metadata", "annotations"), {})
    path, weights = annotations.get(types.HIERARCHY, ""), annotations.get(types.HIERARCHY_WEIGHTS, "")
    if not (is_new and path and weights) or path.startswith("root"):
        return {**obj, "spec": completed}
    rooted = {**annotations, types.HIERARCHY: f"root/{path}", types.HIERARCHY_WEIGHTS: f"1/{weights}"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": rooted}, "spec": completed}


def _pod_group_with_defaults(spec: Mapping[str, Any], subject: Subject, *, is_new: bool) -> JSON:
    """Return a PodGroup with the webhook's defaults; a namespace may set another default queue."""
    completed = {"queue": DEFAULT_QUEUE, **_with_topology_default(spec)}
    if is_new and completed["queue"] == DEFAULT_QUEUE:
        namespace = subject.cluster_view().get(NAMESPACE, subject.namespace, namespaced=False)
        completed["queue"] = get(namespace, ("metadata", "annotations", types.QUEUE_NAME), DEFAULT_QUEUE)
    policies = completed.get("subGroupPolicy")
    if policies is not None:
        completed["subGroupPolicy"] = [
            {"subGroupSize": 1, "minSubGroups": 0, **_with_topology_default(each)} for each in policies
        ]
    return completed
