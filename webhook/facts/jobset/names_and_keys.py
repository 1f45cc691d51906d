"""The longest name that a JobSet may have, and keys of JobSet's labels and annotations that JobSet does not read.

These names contain the JobSet's name and may have at most 63 characters: the Job `<name>-<job>-<replica>`, the pod
`<name>-<job>-<replica>-<pod>-abcde` of an indexed Job with completions, the value
`<name>-<job>-<replica>-<pod>.<subdomain>` of the coordinator's label, and the claim `<template>-<name>`. A misspelt key
of a label or annotation has no effect, and JobSet does not report it.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go, pkg/controllers/volume_claim_policy.go,
api/jobset/v1alpha2/jobset_types.go and pkg/constants/constants.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from webhook.facts.jobset.job_set import JOB_SET
from webhook.facts.jobset.job_set_policies import claim_template_names
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import did_you_mean
from webhook.typed.job_sets import Coordinator, JobSetSpec, ReplicatedJob
from webhook.typed.objects import Metadata
from webhook.yamltext.placeholders import is_placeholder

NAME_LENGTH: Final = JOB_SET.rule(
    "job-set/name-length",
    title="The name of the JobSet is too long",
    why=(
        "The name of the JobSet is a part of a label and of the names of jobs, pods and claims. Kubernetes allows at "
        "most 63 characters for each."
    ),
    function="ValidateCreate",
    issues=(
        "https://github.com/kubeflow/trainer/issues/2735",
        "https://github.com/kubernetes-sigs/jobset/issues/408",
        "https://github.com/kubernetes/kubernetes/issues/63171",
    ),
)
UNKNOWN_KEY: Final = JOB_SET.rule(
    "job-set/unknown-key",
    title="JobSet does not know this annotation or label",
    why="JobSet ignores a misspelt annotation or label. For example, Jobs then share a rack although they should not.",
    refused_by="nothing; the key has no effect",
    source="kubernetes-sigs/jobset@08dfbdfd api/jobset/v1alpha2/jobset_types.go",
    level="warn",
    fails="silent",
)
LONGEST_NAME: Final = 63
NameLimit: TypeAlias = tuple[int, str, str]
"""A limit of the JobSet's name: the maximum length, the kind of the name that contains the JobSet's name (a key of
_NAMED), and the name of the replicated job or claim template.
"""
_NAMED: Final = {
    "coordinator": "the label of coordinator `{}` contains the name",
    "claim": "the claim of template `{}` is named after the JobSet",
    "volume": "a volume `…{}` of the flux plugin is named after the JobSet",
    "pod": "the pods of replicated job `{}` are named after the JobSet",
    "job": "the jobs of replicated job `{}` are named after the JobSet",
}
_ALPHA: Final = "alpha.jobset.sigs.k8s.io/"
_STABLE: Final = "jobset.sigs.k8s.io/"
_KEYS: Final = (
    *(f"{_ALPHA}{name}" for name in ("exclusive-topology", "node-selector", "namespaced-job", "no-schedule")),
    *(f"{_STABLE}{name}" for name in ("jobset-name", "jobset-uid", "coordinator", "priority")),
    *(f"{_STABLE}{name}" for name in ("replicatedjob-name", "replicatedjob-replicas", "global-replicas")),
    *(f"{_STABLE}{name}" for name in ("job-index", "job-global-index", "job-key", "job-group-index")),
    *(f"{_STABLE}{name}" for name in ("group-name", "group-replicas", "restart-attempt", "job-restart-attempt")),
    *(f"{_STABLE}{name}" for name in ("in-place-restart-attempt", "disable-in-place-restart")),
)
"""The keys that JobSet reads or sets."""


def validate_name_length(metadata: Metadata, limits: Iterable[NameLimit]) -> Iterator[Problem]:
    """Compare the length of a JobSet's name with the strictest limit. The name may be the name of a TrainJob."""
    most, kind_of_name, name = min(limits)
    field = "name" if metadata.has("name") else "generateName"
    given = metadata.name if field == "name" else metadata.generate_name
    if kind_of_name and length_of_name(metadata) > most and not is_placeholder(given):
        message = (
            f"is too long because {_NAMED[kind_of_name].format(name)}, with at most {LONGEST_NAME} characters in all"
        )
        yield NAME_LENGTH.problem(metadata.path(field), message, f"use at most {most} characters", given)


def strictest_name_limit(job_set: JobSetSpec) -> NameLimit:
    """Return the strictest limit of the JobSet's name; (63, "", "") if no other name contains the JobSet's name."""
    return min(_name_limits_of_job_set(job_set), key=lambda bound: bound[0], default=(LONGEST_NAME, "", ""))


def _name_limits_of_job_set(job_set: JobSetSpec) -> Iterator[NameLimit]:
    for job in job_set.replicated_jobs:
        yield _limit_of_job(job)
    for claim in sorted(claim_template_names(job_set)):
        yield LONGEST_NAME - len(f"{claim}-"), "claim", claim
    if job_set.coordinator:
        yield _limit_of_coordinator_label(job_set.coordinator, job_set.network.subdomain)


def _limit_of_job(job: ReplicatedJob) -> NameLimit:
    highest, pods = job.replicas - 1, job.template.spec.completions
    if pods is not None and job.template.spec.is_indexed:
        return LONGEST_NAME - len(f"-{job.name}-{highest}-{pods - 1}-abcde"), "pod", job.name
    return LONGEST_NAME - len(f"-{job.name}-{highest}"), "job", job.name


def _limit_of_coordinator_label(coordinator: Coordinator, subdomain: str) -> NameLimit:
    """Return the limit that follows from the coordinator's label. Without a subdomain, the label contains the JobSet's
    name twice.
    """
    job = coordinator.replicated_job
    remaining = LONGEST_NAME - len(f"-{job}-{coordinator.job_index}-{coordinator.pod_index}") - 1
    return (remaining - len(subdomain) if subdomain else remaining // 2), "coordinator", job


def length_of_name(metadata: Metadata) -> int:
    """Return the length of an object's name, or of the name that the API server derives from generateName
    (k8s.io/apiserver pkg/storage/names).
    """
    prefix = metadata.generate_name
    return len(metadata.name) or (min(len(prefix), LONGEST_NAME - 5) + 5 if prefix else 0)


def advise_unknown_keys(metadata: Metadata, job_set: JobSetSpec, view: ClusterView) -> Iterator[Problem]:
    """Warn about unknown keys of a JobSet and of its jobs and pods. `view` limits how many keys are compared in a
    request.
    """
    yield from _check_unknown_keys(metadata, view)
    for job in job_set.replicated_jobs:
        yield from _check_unknown_keys(job.template.metadata, view)
        yield from _check_unknown_keys(job.pod_template.metadata, view)


def _check_unknown_keys(metadata: Metadata, view: ClusterView) -> Iterator[Problem]:
    for field, values in (("annotations", metadata.annotations), ("labels", metadata.labels)):
        for key in values:
            if key.startswith((_ALPHA, _STABLE)) and key not in _KEYS and not is_placeholder(key):
                message = "has no effect unless another program reads the key, because JobSet does not know this key"
                yield UNKNOWN_KEY.problem(
                    metadata.path(field, key),
                    message,
                    did_you_mean(_probably_intended_key(key, view), f"remove the {field[:-1]}"),
                )


def _probably_intended_key(key: str, view: ClusterView) -> str:
    """Return the known key that was probably intended. This key has another prefix or a similar spelling."""
    name = key.partition("/")[2]
    return next((known for known in _KEYS if known.endswith(f"/{name}")), "") or view.nearest(key, _KEYS)
