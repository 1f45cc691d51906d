"""What JobSet's webhook refuses: network, replicated jobs, success and startup policies, alpha features.

RestartJob and InPlaceRestart are alpha features, which are off by default. names_and_keys.py has the rule about names
that are too long. job_set_policies.py has the rules about other policies.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateCreate, config/components/crd and
pkg/features.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from webhook.apimachinery.names import (
    dns1035_label_errors,
    dns1123_label_errors,
    label_fault,
    label_fix,
    label_value_errors,
    label_value_fault,
    label_value_fix,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.facts.shapes.job_specs import mistakes_in_job_spec
from webhook.facts.shapes.selectors import SelectingSpec, mistakes_in_selector_of_job
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.text.wording import either
from webhook.typed.collections import Entries, Items
from webhook.typed.job_sets import Dependency, FailurePolicy, JobSetSpec, ReplicatedJob
from webhook.yamltext.placeholders import is_placeholder

JOB_SET: Final = RuleGroup(
    "job-set",
    refused_by="JobSet's webhook; Trainer shows it as the event TrainJobResourcesCreationFailed",
    source="kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go",
    fails="controller",
)
"""Rules about mistakes that JobSet's webhook refuses. The mistakes may be in a JobSet, in the JobSet of a runtime of
Kubeflow Trainer, or in the JobSet that Trainer creates from a TrainJob.
"""
DNS_LABEL: Final = JOB_SET.rule(
    "job-set/dns-label",
    title="A name in the JobSet is not a DNS label",
    why="Jobs, pods and a Service get this name, and Kubernetes accepts only DNS labels there.",
    function="ValidateCreate",
)
MOST_PODS: Final = JOB_SET.rule(
    "job-set/most-pods",
    title="The replicated job creates more than 2147483647 pods",
    why="JobSet refuses a product of replicas and parallelism above the largest 32-bit number.",
    function="ValidateCreate",
)
DEPENDENCY_ORDER: Final = JOB_SET.rule(
    "job-set/dependency-order",
    title="The replicated job depends on a later replicated job",
    why="JobSet creates jobs in the order of the list, so this job would never start.",
    function="ValidateCreate",
)
SELF_DEPENDENCY: Final = JOB_SET.rule(
    "job-set/self-dependency",
    title="The replicated job depends on itself",
    why="The job waits for itself and never starts. JobSet does not refuse this dependency.",
    refused_by="nothing; the job never starts",
    function="ValidateCreate",
    level="warn",
    fails="pending",
)
DEPENDENCY_EXISTS: Final = JOB_SET.rule(
    "job-set/dependency-exists",
    title="The replicated job depends on a job that does not exist",
    why="The job waits for the other job for ever and never starts.",
    function="ValidateCreate",
)
RESTART_POLICY: Final = JOB_SET.rule(
    "job-set/restart-policy",
    title="restartPolicy is neither OnFailure nor Never",
    why="The pods of a Job must end, so the API server refuses restartPolicy Always.",
    refused_by="the API server, when the Job is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validateJobTemplateSpec",
)
JOB_SELECTOR: Final = JOB_SET.rule(
    "job-set/job-selector",
    title="The template of a Job sets a selector that the API server writes",
    why=(
        "The API server gives each Job a selector of its own. If the template of the Jobs has another selector, the "
        "API server refuses the Jobs, unless manualSelector is true."
    ),
    refused_by="the API server, when the Job is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validateGeneratedSelector",
    level="warn",
    fails="controller",
)
JOB_SPEC: Final = JOB_SET.rule(
    "job-set/job-spec",
    title="The API server refuses the Jobs of the replicated job",
    why=(
        "Fields of the Job contradict each other or are out of range. JobSet stores the JobSet, and then cannot create "
        "its Jobs, so no pod starts."
    ),
    refused_by="the API server, when the Job is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validateJobSpec",
    level="warn",
    fails="controller",
)
INDEXED_PODS: Final = JOB_SET.rule(
    "job-set/indexed-pods",
    title="An indexed job has more than 100000 pods",
    why="The API server refuses an Indexed Job with more pods, because the status lists every completed index.",
    refused_by="the API server, when the Job is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validateJobSpec",
)
JOB_SET_LABEL: Final = JOB_SET.rule(
    "job-set/label",
    title="A label has an invalid key or value",
    why="Jobs and pods get this label, and the API server refuses objects with an invalid label.",
    refused_by="the API server, when the Job is created",
    source="k8s.io/apimachinery v0.36 pkg/apis/meta/v1/validation/validation.go",
    function="ValidateLabels",
)
STARTUP_ORDER: Final = JOB_SET.rule(
    "job-set/startup-order",
    title="startupPolicy InOrder and dependsOn are both set",
    why="Both fields set the order in which jobs start, so JobSet refuses them together.",
    function="ValidateCreate",
)
TARGET_EXISTS: Final = JOB_SET.rule(
    "job-set/target-exists",
    title="The policy names a replicated job that does not exist",
    why="A policy for a job that does not exist never applies.",
    function="ValidateCreate",
)
RESTARTED_REPLICAS: Final = JOB_SET.rule(
    "job-set/restarted-replicas",
    title="A replicated job has more than 1024 replicas, and its Jobs restart separately",
    why="The status of the JobSet has the restarts of each Job, for at most 1024 Jobs.",
    function="validateFailurePolicy",
)
ALPHA_FEATURE: Final = JOB_SET.rule(
    "job-set/alpha-feature",
    title="The JobSet uses an alpha feature that is off by default",
    why="JobSet refuses the field while its feature gate is off.",
    source="kubernetes-sigs/jobset@08dfbdfd pkg/features/features.go",
    level="warn",
)
_MOST_NAMED: Final = 3
_MOST_PODS: Final = 2**31 - 1
_MOST_INDEXED: Final = 100_000
_MOST_RESTARTED: Final = 1024
_GATED: Final = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")


def validate_network_subdomain(job_set: JobSetSpec) -> Iterator[Problem]:
    """Require a subdomain that can be the name of a Service."""
    network = job_set.network
    yield from _check_dns_label(network.subdomain, "the name of a Service", network.path("subdomain"))


def validate_replicated_jobs(job_set: JobSetSpec, *, are_pod_numbers_final: bool) -> Iterator[Problem]:
    """Check names, groups, numbers of pods and dependencies of the replicated jobs."""
    jobs = jobs_by_name(job_set)
    for index, job in enumerate(job_set.replicated_jobs):
        yield from _check_dns_label(
            job.name, "a part of the names of pods", job.path("name"), may_begin_with_digit=True
        )
        yield from _check_dns_label(job.group_name, "the name of a group", job.path("groupName"))
        yield from _check_number_of_pods(job)
        yield from _check_restart_policy(job)
        yield from _check_selector(job)
        yield from _check_job_spec(job, are_pod_numbers_final=are_pod_numbers_final)
        yield from _check_indexed_pods(job, are_pod_numbers_final=are_pod_numbers_final)
        yield from _check_labels(job.template.metadata.labels, job.template.metadata.path("labels"))
        for dependency in job.depends_on:
            yield from _validate_dependency(dependency, index, jobs)


def _check_dns_label(name: str, what: str, path: FieldPath, *, may_begin_with_digit: bool = False) -> Iterator[Problem]:
    """Check a DNS label.

    The name of a replicated job may begin with a digit. The name of a Service or a group may not begin with a digit.
    """
    errors_of = dns1123_label_errors if may_begin_with_digit else dns1035_label_errors
    if name and errors_of(name) and not is_placeholder(name):
        message = f"cannot be {what} because {label_fault(name, begins_with_letter=not may_begin_with_digit)}"
        fix = label_fix(name, begins_with_letter=not may_begin_with_digit)
        yield DNS_LABEL.problem(path, message, fix, name)


def _check_number_of_pods(job: ReplicatedJob) -> Iterator[Problem]:
    is_too_many = job.replicas * job.parallelism > _MOST_PODS
    if is_too_many and job.has("replicas") and job.template.spec.has("parallelism"):
        message = f"creates more than {_MOST_PODS} pods together with the parallelism of {job.parallelism}"
        yield MOST_PODS.problem(job.path("replicas"), message, "lower replicas or parallelism", job.replicas)


def _check_restart_policy(job: ReplicatedJob) -> Iterator[Problem]:
    """Yield the problems that Kubernetes (v1.36 pkg/apis/batch/validation) reports about a restartPolicy."""
    if job.pod.restart_policy == "Always":
        message = "must be OnFailure or Never because the pods of a Job must end"
        yield RESTART_POLICY.problem(job.pod.path("restartPolicy"), message, "set OnFailure", "Always")


def _check_selector(job: ReplicatedJob) -> Iterator[Problem]:
    spec = job.template.spec
    if spec.has("selector") or spec.has("manualSelector"):
        for each in mistakes_in_selector_of_job(SelectingSpec.of(spec.json, spec.at, spec.reading), ""):
            fix = "remove the selector" if each.at == spec.path("selector") and spec.has("selector") else each.fix
            yield JOB_SELECTOR.problem(each.at, each.message, fix, each.value)


def _check_job_spec(job: ReplicatedJob, *, are_pod_numbers_final: bool) -> Iterator[Problem]:
    for each in mistakes_in_job_spec(
        job.template.spec, are_pod_numbers_final=are_pod_numbers_final, default_restart_policy="OnFailure"
    ):
        yield JOB_SPEC.problem(each.at, each.message, each.fix, each.value)


def _check_indexed_pods(job: ReplicatedJob, *, are_pod_numbers_final: bool) -> Iterator[Problem]:
    """Yield the problems that Kubernetes (v1.36 pkg/apis/batch/validation) reports about an indexed Job."""
    spec = job.template.spec
    if are_pod_numbers_final and spec.is_indexed and spec.parallelism > _MOST_INDEXED:
        message = f"must not be more than {_MOST_INDEXED} because an Indexed Job cannot have more pods"
        fix = f"set at most {_MOST_INDEXED}"
        yield INDEXED_PODS.problem(spec.path("parallelism"), message, fix, spec.parallelism)


def _check_labels(labels: Entries[str], at: FieldPath) -> Iterator[Problem]:
    for key, value in labels.items():
        if is_invalid_label(key, value):
            yield invalid_label_problem(key, value, (*at, key))


def invalid_label_problem(key: str, value: str, path: FieldPath | str, *, is_of_patch: bool = False) -> Problem:
    """Return the problem of a label that Kubernetes refuses (ValidateLabels). The label is in a Job, or in a patch of
    the JobSet.
    """
    part, message, fix = invalid_label_part(key, value)
    if is_of_patch:
        message = f"set label `{key}: {value}` of the JobSet, but `{part}` {message}"
        return JOB_SET_LABEL.problem(path, message, f"in the patch, {fix}")
    return JOB_SET_LABEL.problem(path, message, fix, part)


def is_invalid_label(key: str, value: str) -> bool:
    """Return whether Kubernetes refuses a label."""
    return bool(label_value_errors(value) or qualified_name_errors(key)) and not is_placeholder(key + value)


def invalid_label_part(key: str, value: str) -> tuple[str, str, str]:
    """Return the invalid part of a label, the key or the value, with the message and the fix of this part."""
    if label_value_errors(value):
        return value, f"cannot be the value of a label because {label_value_fault(value)}", label_value_fix(value)
    return key, f"cannot be the key of a label because {qualified_name_fault(key)}", qualified_name_fix(key)


def _validate_dependency(dependency: Dependency, index: int, jobs: Mapping[str, ReplicatedJob]) -> Iterator[Problem]:
    """Require that a dependency is on an earlier job.

    JobSet refuses every dependency of the first job. A later job may depend on itself, but then never starts.
    """
    name, path = dependency.name, dependency.path("name")
    place = jobs[name].at[-1] if name in jobs else None
    if is_placeholder(name) or (isinstance(place, int) and place < index):
        return
    if index == 0:
        message = "must not be set because the first replicated job cannot depend on another job"
        is_later = isinstance(place, int) and place > index
        fix = f"remove the entry, or move this replicated job behind `{name}`" if is_later else "remove the entry"
        yield _dependency_order_problem(path, message, fix, name)
    elif place == index:
        message = "is the replicated job itself, which waits for itself and never starts"
        yield SELF_DEPENDENCY.problem(path, message, "remove the entry", name)
    elif place is not None:
        message = "must come before the replicated job that depends on it"
        yield _dependency_order_problem(path, message, f"move `{name}` up in replicatedJobs", name)
    else:
        message = "is not the name of a replicated job of this JobSet"
        fix = "write the name of an earlier replicated job"
        yield DEPENDENCY_EXISTS.problem(path, message, fix, name)


def _dependency_order_problem(path: FieldPath, message: str, fix: str, name: str) -> Problem:
    return DEPENDENCY_ORDER.problem(path, message, fix, name)


def validate_startup_policy(job_set: JobSetSpec) -> Iterator[Problem]:
    """Refuse startupPolicy InOrder in a JobSet with dependsOn."""
    policy = job_set.startup_policy
    if policy.startup_policy_order == "InOrder" and any(job.depends_on for job in job_set.replicated_jobs):
        message = "must not be InOrder because a replicated job has dependsOn, and JobSet refuses both together"
        yield STARTUP_ORDER.problem(policy.at, message, "remove startupPolicy, or every dependsOn")


def validate_success_policy(job_set: JobSetSpec) -> Iterator[Problem]:
    """Require a success policy to name replicated jobs that exist."""
    policy = job_set.success_policy
    yield from validate_targets_exist(policy.target_replicated_jobs, job_set, policy.path("targetReplicatedJobs"))


def validate_targets_exist(targets: Items[str], job_set: JobSetSpec, at: FieldPath) -> Iterator[Problem]:
    """Require each target of a policy to be the name of a replicated job; `at` is the path of the list."""
    names: Collection[str] = jobs_by_name(job_set) if targets else ()
    for index, target in enumerate(targets):
        if target not in names and not is_placeholder(target):
            message = "is not the name of a replicated job of this JobSet"
            yield TARGET_EXISTS.problem((*at, index), message, fix_for_unknown_job(job_set), target)


def validate_replica_limit_for_restarts(job_set: JobSetSpec, action: str, instead: str) -> Iterator[Problem]:
    """Limit the replicas of replicated jobs with Jobs that restart separately."""
    for job in job_set.replicated_jobs:
        if job.replicas > _MOST_RESTARTED:
            message = f"must not be above {_MOST_RESTARTED} because {action} counts the restarts of each replica"
            fix = f"set at most {_MOST_RESTARTED} replicas, or use {instead}"
            yield RESTARTED_REPLICAS.problem(job.path("replicas"), message, fix, job.replicas)


def validate_alpha_features(policy: FailurePolicy, job_set: JobSetSpec) -> Iterator[Problem]:
    """Report alpha features, which are off by default, and too many replicas for RestartJob."""
    if policy.restart_strategy == "InPlaceRestart":
        yield _alpha_feature_problem(policy.path("restartStrategy"), "InPlaceRestart", "InPlaceRestart", "Recreate")
    rule = next((rule for rule in policy.rules if rule.action in _GATED), None)
    if rule is not None:
        instead = rule.action.replace("Job", "JobSet", 1)
        yield _alpha_feature_problem(rule.path("action"), rule.action, "RestartJob", instead)
        yield from validate_replica_limit_for_restarts(job_set, rule.action, instead)


def _alpha_feature_problem(path: FieldPath, name: str, gate: str, instead: str) -> Problem:
    message = f"is refused by JobSet unless its alpha feature gate {gate} is on; by default it is off"
    fix = f"use {instead}, or ask the administrator to turn on feature gate {gate} of JobSet"
    return ALPHA_FEATURE.problem(path, message, fix, name, is_conditional=True)


def jobs_by_name(job_set: JobSetSpec) -> Mapping[str, ReplicatedJob]:
    """Return the first replicated job of every name."""
    jobs: dict[str, ReplicatedJob] = {}
    for job in job_set.replicated_jobs:
        jobs.setdefault(job.name, job)
    return jobs


def fix_for_unknown_job(job_set: JobSetSpec) -> str:
    """Return the fix for a name that no replicated job has."""
    names = [f"`{job.name}`" for job in job_set.replicated_jobs[:_MOST_NAMED] if job.name]
    return f"name a replicated job, such as {either(names)}" if names else "add a replicated job of this name"
