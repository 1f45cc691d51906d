"""What Volcano's webhook refuses of the pod template of a task, which an API server would take or only see later.

It asks Kubernetes' own validation with nearly all options off (volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/
jobs/validate/admit_job.go validateTaskTemplate, k8s.io/kubernetes v1.36 pkg/apis/core/validation ValidatePodTemplate).
What Kubernetes refuses of every template is webhook/facts/pods; here is what only a finished pod must have, and what
the options that are off would allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.attributes import JSON
from webhook.facts.pods import amounts
from webhook.facts.pods.containers import Container, containers
from webhook.facts.values import names
from webhook.facts.volcano.job import Job, Task, problem
from webhook.name_faults import label_fault
from webhook.names import dns1123_label
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

_ENV_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_ENV_NAMES: Final = re.compile(rf"{_ENV_NAME.pattern}(?:\n{_ENV_NAME.pattern})*")
"""Several, a line each."""
_ADD_IMAGE: Final = "set the image of the container"
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
}
_PULL: Final = ("Always", "IfNotPresent", "Never")
_OPERATORS: Final = ("Equal", "Exists")
_NOT_PLACED: Final = ("", "none")


def validate_task_templates(job: Job) -> Iterator[Problem]:
    """The pod template of each task."""
    for task in job.deadline.each(job.tasks):
        template = task.value.get("template") or {}
        at = (*task.at, "template")
        for path, message, fix, value in _problems(template, job):
            yield problem("pod-template", (*at, *path), message, fix, value)
        yield from _validate_topology_policy(task, template, job)


Broken = tuple[FieldPath, str, str, JSON]


def _problems(template: Mapping[str, Any], job: Job) -> Iterator[Broken]:
    pod: Mapping[str, Any] = template.get("spec") or {}
    if not pod.get("containers"):
        yield ("spec", "containers"), "must have a container", "add a container", None
    for name, choices in _CHOICES.items():
        value = pod.get(name) or choices[0]
        if value not in choices and not is_placeholder(value):
            yield ("spec", name), f"must be one of {', '.join(choices)}", "use one of them", value
    for name in ("hostname", "subdomain"):
        value = pod.get(name) or ""
        if value and dns1123_label(value) and not is_placeholder(value):
            message = f"is not a valid {name} because {label_fault(value)}"
            yield ("spec", name), message, "use at most 63 lower-case letters, digits and dashes", value
    for index, each in enumerate(job.deadline.paced(pod.get("tolerations") or ())):
        operator = each.get("operator") or "Equal"
        if operator not in _OPERATORS and not is_placeholder(operator):
            message = "must be Equal or Exists because Volcano's webhook knows no other operator"
            yield ("spec", "tolerations", index, "operator"), message, "use Equal or Exists", operator
    volumes = {each.get("name") for each in job.deadline.paced(pod.get("volumes") or ())}
    for container in job.deadline.paced([*containers(template)]):
        yield from _of_container(container, volumes, is_host=bool(pod.get("hostNetwork")), job=job)


def _of_container(container: Container, volumes: set[Any], *, is_host: bool, job: Job) -> Iterator[Broken]:
    value, at = container.value, container.path
    if not container.name:
        yield (*at, "name"), "must be set", "name the container", None
    if not value.get("image"):
        yield (*at, "image"), "must be set because a container cannot start without an image", _ADD_IMAGE, None
    policy = value.get("imagePullPolicy") or _PULL[0]
    if policy not in _PULL and not is_placeholder(policy):
        yield (*at, "imagePullPolicy"), f"must be one of {', '.join(_PULL)}", "use one of them", policy
    yield from _restarts(container)
    yield from _env_names(value, at, job)
    for index, each in enumerate(job.deadline.paced(value.get("volumeMounts") or ())):
        name = each.get("name") or ""
        if name not in volumes and not is_placeholder(name):
            yield (
                (*at, "volumeMounts", index, "name"),
                "is not the name of a volume of the pod",
                "write the name of a volume, or add the volume",
                name,
            )
    yield from _sleeps(value, at)
    if is_host:
        yield from _host_ports(value.get("ports") or (), (*at, "ports"), job)


def _env_names(value: JSON, at: FieldPath, job: Job) -> Iterator[Broken]:
    listed = names(value.get("env"))
    text = "\n".join(listed)
    job.deadline.spend(len(listed) // 10)  # of what is done in C
    if _ENV_NAMES.fullmatch(text) and text.count("\n") < len(listed):  # as nearly always, and there may be hundreds
        return
    for index, name in enumerate(job.deadline.paced(listed)):
        if not _ENV_NAME.fullmatch(name) and not is_placeholder(name):
            message = "must be letters, digits, `_`, `-` and `.`, and not begin with a digit, for Volcano's webhook"
            yield (*at, "env", index, "name"), message, "rename the variable", name


def _restarts(container: Container) -> Iterator[Broken]:
    """Options AllowContainerRestartPolicyRules is off: only an init container may restart by itself."""
    if container.value.get("restartPolicyRules"):
        message = "must not be set because Volcano's webhook refuses rules about restarts of containers"
        yield (*container.path, "restartPolicyRules"), message, "remove the rules, or use policies of the task", None
    policy = container.value.get("restartPolicy")
    if policy and (not container.init or policy != "Always") and not is_placeholder(policy):
        message = "must not be set because Volcano's webhook allows it only for an init container, and only Always"
        yield (*container.path, "restartPolicy"), message, "set the restartPolicy of the pod", policy


def _sleeps(value: JSON, at: FieldPath) -> Iterator[Broken]:
    """The option PodLifecycleSleepActionAllowZero is off."""
    for hook in ("preStop", "postStart"):
        seconds = get(value, ("lifecycle", hook, "sleep", "seconds"))
        if get(value, ("lifecycle", hook, "sleep")) is not None and (seconds or 0) <= 0:
            path = (*at, "lifecycle", hook, "sleep", "seconds")
            yield path, "must be at least 1 for Volcano's webhook", "set 1, or remove the hook", seconds or 0


def _host_ports(ports: Sequence[JSON], at: FieldPath, job: Job) -> Iterator[Broken]:
    for index, each in enumerate(job.deadline.paced(ports)):
        number, host = each.get("containerPort"), each.get("hostPort") or 0
        if host and host != number:
            message = f"must be the containerPort {number} because the pod uses the network of its node"
            yield (*at, index, "hostPort"), message, "set both to the same number", host


def _validate_topology_policy(task: Task, template: JSON, job: Job) -> Iterator[Problem]:
    """As validateTaskTopoPolicy: with a NUMA policy, every container asks for whole CPUs."""
    if task.value.get("topologyPolicy", "") in _NOT_PLACED:
        return
    for container in job.deadline.paced([*containers(template)]):
        side = "requests" if container.amounts("requests") else "limits"
        written = amounts.text_of(container.amounts(side).get("cpu"))
        asked = amounts.read(written)
        if is_placeholder(written) or asked is None or (asked.sign() > 0 and asked.is_whole()):
            continue
        at = (*task.at, "template", *container.path, "resources", side, "cpu")
        policy = task.value["topologyPolicy"]
        message = f"must be a whole number of CPUs because topologyPolicy {policy} places each container on whole CPUs"
        yield problem("whole-cpus", at, message, "request 1 or more", shown="" if written == "0" else f"`{written}`")
