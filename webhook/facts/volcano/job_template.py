"""Rules of Volcano's webhook for the pod template of a task and the volumes of a Job, and volumes that reach no pod.

The webhook calls Kubernetes' own validation with nearly all options off. webhook/facts/pods has the rules that
Kubernetes has for every template. This module has the rules for required fields, and for values that are refused
because an option is off. A task with a NUMA policy needs whole CPUs.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateTaskTemplate and
validateTaskTopoPolicy, pkg/webhooks/admission/jobs/validate/util.go validateIO,
pkg/controllers/job/job_controller_actions.go createPVC and job_controller_util.go createJobPod; k8s.io/kubernetes v1.36
pkg/apis/core/validation ValidatePodTemplate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_fault,
    label_fix,
    subdomain_fault,
    subdomain_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.facts.pods import amounts
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano_objects.types import Job, JobVolume, Task
from webhook.rules.problem import Problem
from webhook.typed.pods import Container, Lifecycle, PodSpec
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeClaimSpec
from webhook.yamltext.placeholders import is_placeholder

POD_TEMPLATE: Final = VOLCANO_JOB.rule(
    "volcano-job/pod-template",
    title="Volcano's webhook refuses the pod template",
    why=(
        "Volcano's webhook validates a pod template as Kubernetes does, but with newer features off. So it also "
        "refuses special characters in names of variables, the operators Gt and Lt of tolerations, restart rules of "
        "containers, and a sleep of 0 seconds."
    ),
    function="validateTaskTemplate",
)
TEMPLATE_REFUSED: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/template-refused",
    title="Volcano refuses the Job of this template",
    why="The Job in a template is not checked with the template. Volcano's webhook later refuses every Job.",
    refused_by="Volcano's webhook, when the Job is made",
    fails="controller",
)
MOUNT_PATH_TWICE: Final = VOLCANO_JOB.rule(
    "volcano-job/mount-path-twice",
    title="Two volumes have the same mount path",
    why="Kubernetes refuses pods with two volumes at one path.",
    function="validateIO",
)
VOLUME_SOURCE: Final = VOLCANO_JOB.rule(
    "volcano-job/volume-source",
    title="The volume sets both volumeClaimName and volumeClaim, or neither",
    why="Volcano refuses the Job, because the volume would have no source or two sources.",
    function="validateIO",
)
VOLUME_CLAIM_NAME: Final = VOLCANO_JOB.rule(
    "volcano-job/volume-claim-name",
    title="The volumeClaimName of a Volcano Job is not a valid PersistentVolumeClaim name",
    why="No PersistentVolumeClaim can have this name.",
    function="validateIO",
)
VOLUME_CLAIM: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/volume-claim",
    title="volumeClaim has no access mode or no size",
    why="Kubernetes refuses the claim, and the Job stays pending.",
    refused_by="the API server, when the claim is created",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_actions.go",
    function="createPVC",
    fails="controller",
)
CLAIM_TWICE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/claim-twice",
    title="The PersistentVolumeClaim is mounted at two paths",
    why="Volcano mounts a claim only at its first path, and ignores all other paths.",
    refused_by="nothing; the volume is not mounted",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="createJobPod",
)
MOUNT_PATH_IN_PODS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/mount-path-in-pods",
    title="A container already uses the mount path of the volume",
    why="Volcano adds the volumes of a Job to every container, and Kubernetes refuses two mounts at one path.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="createJobPod",
    fails="controller",
)
WHOLE_CPUS: Final = VOLCANO_JOB.rule(
    "volcano-job/whole-cpus",
    title="A task with a topologyPolicy does not request whole CPUs",
    why="Volcano places only whole CPUs on NUMA nodes. Volcano reads limits only if a container has no requests.",
    function="validateTaskTopoPolicy",
)
_WITHOUT_NUMA_POLICY: Final = ("", "none")
BrokenValue = tuple[FieldPath, str, str, JSON]
"""The path, message, fix and value of a problem."""
_ENV_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_ENV_NAMES: Final = re.compile(rf"{_ENV_NAME.pattern}(?:\n{_ENV_NAME.pattern})*")
"""Matches several names, one on each line."""
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PULLS: Final = ("Always", "IfNotPresent", "Never")
_OPERATORS: Final = ("Equal", "Exists")


def validate_task_templates(job: Job) -> Iterator[Problem]:
    """Yield the problems of every task's pod template."""
    for task in job.spec.tasks:
        yield from _check_pod_template(task)
        yield from _validate_whole_cpus(task)


def _check_pod_template(task: Task) -> Iterator[Problem]:
    """Yield the problems that validateTaskTemplate would report."""
    for path, message, fix, value in _validate_pod(task.pod_spec):
        yield POD_TEMPLATE.problem(path, message, fix, value)


def _validate_pod(pod: PodSpec) -> Iterator[BrokenValue]:
    if not pod.containers:
        yield pod.path("containers"), "must have a container", "add a container", None
    yield from _check_values_are_allowed(
        pod, ("restartPolicy", pod.restart_policy, _RESTARTS), ("dnsPolicy", pod.dns_policy, _DNS)
    )
    yield from _check_hostname_and_subdomain(pod)
    yield from _check_tolerations(pod)
    volumes = {volume.name for volume in pod.volumes if volume.name}
    for container in pod.all_containers():
        yield from _validate_container(container, volumes)
        if pod.host_network:
            yield from _check_host_ports(container)


def _check_values_are_allowed(part: Typed, *fields: tuple[str, str, tuple[str, ...]]) -> Iterator[BrokenValue]:
    for name, value, choices in fields:
        if value and value not in choices and not is_placeholder(value):
            yield part.path(name), f"must be one of {', '.join(choices)}", "use one of them", value


def _check_hostname_and_subdomain(pod: PodSpec) -> Iterator[BrokenValue]:
    for name, value in (("hostname", pod.hostname), ("subdomain", pod.subdomain)):
        if value and dns1123_label_errors(value) and not is_placeholder(value):
            message = f"is not a valid {name} because {label_fault(value)}"
            yield pod.path(name), message, label_fix(value), value


def _check_tolerations(pod: PodSpec) -> Iterator[BrokenValue]:
    for toleration in pod.tolerations:
        operator = toleration.operator or "Equal"
        if operator not in _OPERATORS and not is_placeholder(operator):
            message = "must be Equal or Exists because Volcano's webhook knows no other operator"
            yield toleration.path("operator"), message, "use Equal or Exists", operator


def _validate_container(container: Container, volumes: set[str]) -> Iterator[BrokenValue]:
    if not container.name:
        yield container.path("name"), "must be set", "name the container", None
    if not container.image:
        message, fix = "is not set, and no container starts without an image", "set the image of the container"
        yield container.path("image"), message, fix, None
    yield from _check_values_are_allowed(container, ("imagePullPolicy", container.image_pull_policy, _PULLS))
    yield from _check_container_restart_policy(container)
    yield from _check_env_names(container)
    yield from _check_mounted_volumes(container, volumes)
    if container.lifecycle:
        yield from _check_sleep_seconds_of_hooks(container.lifecycle)


def _check_container_restart_policy(container: Container) -> Iterator[BrokenValue]:
    """Yield restart policies of containers, which are refused because AllowContainerRestartPolicyRules is off."""
    if container.restart_policy_rules:
        message = "must not be set because Volcano's webhook refuses rules about restarts of containers"
        yield container.path("restartPolicyRules"), message, "remove the rules, or use policies of the task", None
    policy = container.restart_policy
    if policy and not container.is_sidecar and not is_placeholder(policy):
        message = "must not be set because Volcano's webhook allows only Always, and only for an init container"
        yield container.path("restartPolicy"), message, "set the restartPolicy of the pod", policy


def _check_env_names(container: Container) -> Iterator[BrokenValue]:
    names = container.env_names
    text = "\n".join(names)
    if _ENV_NAMES.fullmatch(text) and text.count("\n") < len(names):  # one match is fast for hundreds of names
        return
    for index, name in enumerate(names):
        if not _ENV_NAME.fullmatch(name) and not is_placeholder(name):
            message = (
                "must have only letters, digits, `_`, `-` and `.`, and not begin with a digit, because Volcano's "
                "webhook refuses other names"
            )
            yield container.path("env", index, "name"), message, "rename the variable", name


def _check_mounted_volumes(container: Container, volumes: set[str]) -> Iterator[BrokenValue]:
    for mount in container.volume_mounts:
        if mount.name not in volumes and not is_placeholder(mount.name):
            message, fix = "is not the name of a volume of the pod", "write the name of a volume, or add the volume"
            yield mount.path("name"), message, fix, mount.name


def _check_sleep_seconds_of_hooks(lifecycle: Lifecycle) -> Iterator[BrokenValue]:
    """Yield sleep hooks of 0 seconds, which are refused because PodLifecycleSleepActionAllowZero is off."""
    for hook in (lifecycle.pre_stop, lifecycle.post_start):
        if hook.sleep and hook.sleep.seconds <= 0:
            message, fix = "must be at least 1 because Volcano's webhook refuses 0", "set 1, or remove the hook"
            yield hook.sleep.path("seconds"), message, fix, hook.sleep.seconds


def _check_host_ports(container: Container) -> Iterator[BrokenValue]:
    for port in container.ports:
        if port.host_port and port.host_port != port.container_port:
            message = f"must be the containerPort {port.container_port} because the pod uses the network of its node"
            yield port.path("hostPort"), message, "set both to the same number", port.host_port


def template_refused_problem(refused: Problem) -> Problem:
    """Return the problem of a JobTemplate or CronJob: Volcano refuses every Job made from it because of `refused`."""
    message = f"{refused.message} (Volcano accepts the template, but refuses every Job made from it)"
    if refused.missing:
        return TEMPLATE_REFUSED.problem(refused.path, missing=refused.missing)
    return TEMPLATE_REFUSED.problem(refused.path, message, refused.fix, shown=refused.found)


def validate_volumes(job: Job) -> Iterator[Problem]:
    """Report volumes with the mount path of another volume, and volumes with no source or two sources."""
    seen: set[str] = set()
    for volume in job.spec.volumes:
        path = volume.mount_path
        if path in seen and not is_placeholder(path):
            message, fix = "is also the path of an earlier volume", "mount the two volumes at different paths"
            yield MOUNT_PATH_TWICE.problem(volume.path("mountPath"), message, fix, path)
        seen.add(path)
        yield from _check_volume_source(volume)
        yield from _check_volume_claim_name(volume)


def _check_volume_source(volume: JobVolume) -> Iterator[Problem]:
    name = volume.volume_claim_name
    if not volume.volume_claim and not name:
        message = "has neither volumeClaimName nor volumeClaim, so there is nothing to mount"
        yield VOLUME_SOURCE.problem(
            volume.at, message, "set volumeClaimName to use an existing claim, or volumeClaim to create a claim"
        )
    elif volume.volume_claim and name:
        message = "must not be set together with volumeClaim, which creates another claim"
        yield VOLUME_SOURCE.problem(volume.path("volumeClaimName"), message, "remove one of the two", name)


def _check_volume_claim_name(volume: JobVolume) -> Iterator[Problem]:
    name = volume.volume_claim_name
    if name and not volume.volume_claim and dns1123_subdomain_errors(name) and not is_placeholder(name):
        message = f"cannot be the name of a PersistentVolumeClaim because {subdomain_fault(name)}"
        yield VOLUME_CLAIM_NAME.problem(volume.path("volumeClaimName"), message, subdomain_fix(name), name)


def warn_of_claims_and_unmounted_volumes(job: Job) -> Iterator[Problem]:
    """Report claims that Kubernetes rejects, volumes that are not mounted, and volumes that make the pods invalid."""
    claims: set[str] = set()
    mounting = _tasks_by_mount_path(job) if job.spec.volumes else {}
    for volume in job.spec.volumes:
        if volume.volume_claim:
            yield from _check_volume_claim(volume.volume_claim)
        elif volume.volume_claim_name in claims:
            yield from _check_claim_twice(volume)
        claims.add(volume.volume_claim_name)
        if volume.mount_path in mounting:
            yield _mount_path_conflict_problem(volume, mounting[volume.mount_path])


def _check_volume_claim(claim: VolumeClaimSpec) -> Iterator[Problem]:
    lacking = [] if claim.access_modes else ["accessModes"]
    if "storage" not in claim.resources.requests:
        lacking.append("resources.requests.storage")
    if lacking:
        message = f"has no {' and no '.join(lacking)}, so Kubernetes refuses the claim"
        yield VOLUME_CLAIM.problem(claim.at, message, f"set {' and '.join(lacking)}")


def _check_claim_twice(volume: JobVolume) -> Iterator[Problem]:
    name = volume.volume_claim_name
    if name and not is_placeholder(name):
        message = "is also the claim of an earlier volume, but Volcano mounts a claim only at its first mountPath"
        fix = "remove this entry, and mount the claim in the pod templates"
        yield CLAIM_TWICE.problem(volume.path("volumeClaimName"), message, fix, name)


def _mount_path_conflict_problem(volume: JobVolume, task: str) -> Problem:
    message = f"is also the mount path of a container of task `{task}`, so Kubernetes refuses the pods"
    return MOUNT_PATH_IN_PODS.problem(volume.path("mountPath"), message, "choose another path", volume.mount_path)


def _tasks_by_mount_path(job: Job) -> dict[str, str]:
    """Return for each mount path the name of a task with this path. Init containers do not count, because they get no
    volumes of a Job.
    """
    return {
        mount.mount_path: task.name
        for task in job.spec.tasks
        for container in task.pod_spec.containers
        for mount in container.volume_mounts
    }


def _validate_whole_cpus(task: Task) -> Iterator[Problem]:
    """Report containers of a task with a NUMA policy that do not request whole CPUs (validateTaskTopoPolicy)."""
    if task.topology_policy in _WITHOUT_NUMA_POLICY:
        return
    for container in task.pod_spec.all_containers():
        resources = container.resources
        side, listed = ("requests", resources.requests) if resources.requests else ("limits", resources.limits)
        written = amounts.amount_as_string(listed.get("cpu"))
        cpus = quantity.read_quantity_or_none(written)
        if is_placeholder(written) or cpus is None or (cpus.sign() > 0 and cpus.is_whole()):
            continue
        message = (
            f"must be a whole number of CPUs because topologyPolicy {task.topology_policy} places each container on "
            "whole CPUs"
        )
        shown = "" if written == "0" else f"`{written}`"
        fix = f"request a whole number of CPUs, such as {max(1, cpus.value())}"
        yield WHOLE_CPUS.problem(resources.path(side, "cpu"), message, fix, shown=shown)
