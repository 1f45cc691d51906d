"""What JobSet's webhook refuses of the network and the replicated jobs of a JobSet.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateCreate, and config/components/crd. Long
names are name_length.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.jobset.job_set import JobSet, problem
from webhook.names import dns1035_label, dns1123_label
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

LETTERS: Final = "use at most 63 lower-case letters, digits and dashes"
_MOST_PODS: Final = 2**31 - 1


def validate_network(job_set: JobSet) -> Iterator[Problem]:
    """The subdomain is the name of a Service."""
    name = get(job_set.spec, ("network", "subdomain"), "")
    if name and dns1035_label(name) and not is_placeholder(name):
        message = "must be a DNS label of RFC 1035 because a Service is named after it"
        path = (*job_set.at, "network", "subdomain")
        yield problem("dns-label", path, message, f"{LETTERS}, and begin with a letter", name)


def validate_replicated_jobs(job_set: JobSet) -> Iterator[Problem]:
    """Names, groups, numbers of pods and dependencies of the replicated jobs."""
    places = job_set.places()
    for index, job in enumerate(job_set.deadline.paced(job_set.jobs)):
        at = (*job_set.at, "replicatedJobs", index)
        yield from _validate_names(job, at)
        yield from _validate_pods(job, at)
        for place, other in enumerate(job_set.deadline.paced(job.get("dependsOn", []))):
            wanted = other.get("name", "")
            if not is_placeholder(wanted) and places.get(wanted, index) >= index:
                yield _dependency(wanted, index, is_there=wanted in places, path=(*at, "dependsOn", place, "name"))


def _validate_names(job: JSON, at: FieldPath) -> Iterator[Problem]:
    """The name is a part of `<name>-<job>-0`, so it may begin with a digit."""
    name, group = job.get("name", ""), job.get("groupName", "")
    if name and dns1123_label(name) and not is_placeholder(name):
        message = "must be a DNS label because jobs and pods are named after it"
        yield problem("dns-label", (*at, "name"), message, LETTERS, name)
    if group and dns1035_label(group) and not is_placeholder(group):
        fix = f"{LETTERS}, and begin with a letter"
        yield problem("dns-label", (*at, "groupName"), "must be a DNS label of RFC 1035", fix, group)


def _validate_pods(job: JSON, at: FieldPath) -> Iterator[Problem]:
    replicas, pods = job.get("replicas"), get(job, ("template", "spec", "parallelism"))
    if replicas is not None and pods is not None and replicas * pods > _MOST_PODS:
        message = f"must not make more than {_MOST_PODS} pods together with the parallelism of {pods}"
        yield problem("most-pods", (*at, "replicas"), message, "ask for fewer pods", replicas)


def _dependency(wanted: str, index: int, *, is_there: bool, path: FieldPath) -> Problem:
    """Only earlier jobs may be waited for; upstream lets a job wait for itself, which it then does."""
    if index == 0:
        message = "must not be set because the first replicated job cannot depend on another"
        return problem("dependency-order", path, message, "remove it, or move the job behind the other", wanted)
    if is_there:
        message = "must be a replicated job that stands before the one that depends on it"
        return problem("dependency-order", path, message, "move it to the front", wanted)
    message = "must be the name of a replicated job"
    return problem("dependency-exists", path, message, "correct the name", wanted)
