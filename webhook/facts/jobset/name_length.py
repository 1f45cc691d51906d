"""How long a JobSet's name may be: the names of its jobs, pods and claims, and its coordinator's label, begin with it.

kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go: `<name>-<job>-<replica>`, and where pods are indexed and
counted `<name>-<job>-<replica>-<pod>-abcde`, are DNS labels; `<name>-<job>-<replica>-<pod>.<subdomain>` is a label's
value; pkg/controllers/volume_claim_policy.go: a claim is `<template>-<name>`, of 63 characters too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from webhook.facts.jobset.groups import JOB_SET
from webhook.facts.jobset.volume_claims import claim_template_names
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.job_sets import Coordinator, JobSetSpec, ReplicatedJob
from webhook.typed.objects import Metadata

NAME_LENGTH: Final = JOB_SET.rule(
    "job-set/name-length",
    title="The name of a JobSet leaves room for the names of its jobs and pods.",
    why=(
        "Jobs, pods, claims and the coordinator's label begin with the name of the JobSet and have at most 63 "
        "characters."
    ),
    function="ValidateCreate",
    issues=(
        "https://github.com/kubeflow/trainer/issues/2735",
        "https://github.com/kubernetes-sigs/jobset/issues/408",
        "https://github.com/kubernetes/kubernetes/issues/63171",
    ),
)

MOST: Final = 63
Limit: TypeAlias = tuple[int, str, str]
"""The most characters, what is named after the JobSet (a key of _NAMED), and of which part of it."""
_NAMED: Final = {
    "coordinator": "the label of coordinator `{}` contains the name",
    "claim": "the claim of template `{}` is named after the JobSet",
    "volume": "a volume `…{}` of the flux plugin is named after the JobSet",
    "pod": "the pods of replicated job `{}` are named after the JobSet",
    "job": "the jobs of replicated job `{}` are named after the JobSet",
}


def validate_name_length(metadata: Metadata, limits: Iterable[Limit]) -> Iterator[Problem]:
    """Check the name of an object that a JobSet has, too, against the strictest limit."""
    most, of, name = min(limits)
    field = "name" if metadata.has("name") else "generateName"
    given = metadata.name if field == "name" else metadata.generate_name
    if of and length_of_name(metadata) > most and not is_placeholder(given):
        message = f"is too long because {_NAMED[of].format(name)}, with at most {MOST} characters in all"
        yield NAME_LENGTH.problem(metadata.path(field), message, f"use at most {most} characters", given)


def strictest_name_limit(job_set: JobSetSpec) -> Limit:
    """Return the most characters, and whose names limit them: `pod` or `job` and a replicated job, `claim` and a
    template.

    (63, "", "") where nothing is named after the JobSet.
    """
    return min(_name_limits_of_job_set(job_set), key=lambda bound: bound[0], default=(MOST, "", ""))


def _name_limits_of_job_set(job_set: JobSetSpec) -> Iterator[Limit]:
    for job in job_set.replicated_jobs:
        yield _limit_of_job(job)
    for claim in sorted(claim_template_names(job_set)):
        yield MOST - len(f"{claim}-"), "claim", claim
    if job_set.coordinator:
        yield _limit_of_coordinator_label(job_set.coordinator, job_set.network.subdomain)


def _limit_of_job(job: ReplicatedJob) -> Limit:
    highest, pods = job.replicas - 1, job.template.spec.completions
    if pods is not None and job.template.spec.is_indexed:
        return MOST - len(f"-{job.name}-{highest}-{pods - 1}-abcde"), "pod", job.name
    return MOST - len(f"-{job.name}-{highest}"), "job", job.name


def _limit_of_coordinator_label(coordinator: Coordinator, subdomain: str) -> Limit:
    """Return the limit by the coordinator's label; without a subdomain, the label's value has the name twice."""
    job = coordinator.replicated_job
    remaining = MOST - len(f"-{job}-{coordinator.job_index}-{coordinator.pod_index}") - 1
    return (remaining - len(subdomain) if subdomain else remaining // 2), "coordinator", job


def length_of_name(metadata: Metadata) -> int:
    """Return the length of an object's name, or of the one that generateName will make (k8s.io/apiserver
    pkg/storage/names).
    """
    prefix = metadata.generate_name
    return len(metadata.name) or (min(len(prefix), MOST - 5) + 5 if prefix else 0)
