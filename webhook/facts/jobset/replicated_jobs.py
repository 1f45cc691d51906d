"""What JobSet's webhook refuses of the network and the replicated jobs of a JobSet.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateCreate, and config/components/crd. Long
names are name_length.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.jobset.job_set import JobSet, problem
from webhook.name_faults import key_fault, label_fault, value_fault
from webhook.names import dns1035_label, dns1123_label, label_value, qualified_name
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

LETTERS: Final = "use at most 63 lower-case letters, digits and dashes"
LABEL: Final = "use at most 63 letters, digits, dashes, dots and underscores"
_MOST_PODS: Final = 2**31 - 1
_MOST_INDEXED: Final = 100_000
_POD: Final = ("template", "spec", "template", "spec")


def validate_network(job_set: JobSet) -> Iterator[Problem]:
    """The subdomain is the name of a Service."""
    name = get(job_set.spec, ("network", "subdomain"), "")
    if name and dns1035_label(name) and not is_placeholder(name):
        message = f"cannot be the name of a Service because {label_fault(name, begins_with_letter=True)}"
        path = (*job_set.at, "network", "subdomain")
        yield problem("dns-label", path, message, f"{LETTERS}, and begin with a letter", name)


def validate_replicated_jobs(job_set: JobSet) -> Iterator[Problem]:
    """Names, groups, numbers of pods and dependencies of the replicated jobs."""
    places = job_set.places()
    for index, job in enumerate(job_set.deadline.paced(job_set.jobs)):
        at = (*job_set.at, "replicatedJobs", index)
        yield from _validate_names(job, at)
        yield from _validate_pods(job, at)
        yield from validate_job(job, at, job_set)
        for place, other in enumerate(job_set.deadline.paced(job.get("dependsOn", []))):
            wanted = other.get("name", "")
            if not is_placeholder(wanted) and places.get(wanted, index) >= index:
                path = (*at, "dependsOn", place, "name")
                is_itself = places.get(wanted) == index
                yield _dependency(wanted, index, is_there=wanted in places, is_itself=is_itself, path=path)


def _validate_names(job: JSON, at: FieldPath) -> Iterator[Problem]:
    """The name is a part of `<name>-<job>-0`, so it may begin with a digit."""
    name, group = job.get("name", ""), job.get("groupName", "")
    if name and dns1123_label(name) and not is_placeholder(name):
        message = f"cannot be a part of the names of pods because {label_fault(name)}"
        yield problem("dns-label", (*at, "name"), message, LETTERS, name)
    if group and dns1035_label(group) and not is_placeholder(group):
        message = f"cannot be the name of a group because {label_fault(group, begins_with_letter=True)}"
        yield problem("dns-label", (*at, "groupName"), message, f"{LETTERS}, and begin with a letter", group)


def _validate_pods(job: JSON, at: FieldPath) -> Iterator[Problem]:
    replicas, pods = job.get("replicas"), get(job, ("template", "spec", "parallelism"))
    if replicas is not None and pods is not None and replicas * pods > _MOST_PODS:
        message = f"makes more than {_MOST_PODS} pods together with the parallelism of {pods}"
        yield problem("most-pods", (*at, "replicas"), message, "lower replicas or parallelism", replicas)


def validate_job(job: JSON, at: FieldPath, job_set: JobSet) -> Iterator[Problem]:
    """What the API server refuses of the Job: k8s.io/kubernetes v1.36 pkg/apis/batch/validation, ValidateLabels."""
    spec = get(job, ("template", "spec"), {})
    policy, path = get(spec, ("template", "spec", "restartPolicy")), (*at, *_POD, "restartPolicy")
    if policy == "Always":
        message = "must be OnFailure or Never because the pods of a Job must end"
        yield problem("restart-policy", path, message, "set OnFailure", policy)
    pods = spec.get("parallelism")
    is_indexed = spec.get("completionMode") in (None, "Indexed")
    if job_set.is_counted and is_indexed and pods is not None and pods > _MOST_INDEXED:
        message = f"must not be more than {_MOST_INDEXED} because an Indexed Job cannot have more pods"
        yield problem(
            "indexed-pods", (*at, "template", "spec", "parallelism"), message, f"set at most {_MOST_INDEXED}", pods
        )
    labels: JSON = get(job, ("template", "metadata", "labels"), {})
    for key, value in job_set.deadline.each(labels.items()):
        if (label_value(value) or qualified_name(key)) and not is_placeholder(key + value):
            where = (*at, "template", "metadata", "labels", key)
            part, message = invalid_label(key, value)
            yield problem("label", where, message, LABEL, part)


def invalid_label(key: str, value: str) -> tuple[str, str]:
    """The part of a label that Kubernetes refuses, its key or its value, and what is said of it."""
    if label_value(value):
        return value, f"cannot be the value of a label because {value_fault(value)}"
    return key, f"cannot be the key of a label because {key_fault(key)}"


def _dependency(wanted: str, index: int, *, is_there: bool, is_itself: bool, path: FieldPath) -> Problem:
    """Only earlier jobs may be waited for; upstream lets a job wait for itself, which it then does."""
    if index == 0:
        message = "must not be set because the first replicated job cannot depend on another"
        return problem(
            "dependency-order",
            path,
            message,
            f"remove the entry, or move this replicated job behind `{wanted}`",
            wanted,
        )
    if is_itself:
        message = "is the replicated job itself, which waits for itself and never starts"
        return problem("self-dependency", path, message, "remove the entry", wanted)
    if is_there:
        message = "must stand in replicatedJobs before the replicated job that depends on it"
        return problem("dependency-order", path, message, f"move `{wanted}` up in replicatedJobs", wanted)
    message = "is not the name of a replicated job of this JobSet"
    return problem("dependency-exists", path, message, "write the name of a replicated job before this one", wanted)
