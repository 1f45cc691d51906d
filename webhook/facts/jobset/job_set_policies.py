"""What JobSet's webhook refuses in the coordinator, the failure policy and the volumeClaimPolicies of a JobSet.

JobSet creates the PersistentVolumeClaims of volumeClaimPolicies, which the pods of the JobSet share.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go validateCoordinator, validateFailurePolicy and
validateVolumeClaimPolicies, and the rules of its CustomResourceDefinition.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct

from webhook.apimachinery.names import (
    dns1123_subdomain_errors,
    subdomain_fault,
    subdomain_fix,
)
from webhook.facts.jobset.job_set import (
    JOB_SET,
    fix_for_unknown_job,
    jobs_by_name,
    validate_alpha_features,
    validate_targets_exist,
)
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.job_sets import Coordinator, FailureRule, JobSetSpec, PersistentVolumeClaimTemplate, ReplicatedJob
from webhook.typed.objects import Metadata
from webhook.yamltext.placeholders import is_placeholder

COORDINATOR_EXISTS: Final = JOB_SET.rule(
    "job-set/coordinator-exists",
    title="The coordinator names a replicated job that does not exist",
    why="The other pods look for the coordinator by the name of this replicated job.",
    function="validateCoordinator",
)
COORDINATOR_INDEXED: Final = JOB_SET.rule(
    "job-set/coordinator-indexed",
    title="The coordinator's replicated job is not Indexed or has no completions",
    why="Only pods of an Indexed Job with completions have host names that are known in advance.",
    function="validateCoordinator",
)
COORDINATOR_INDEX: Final = JOB_SET.rule(
    "job-set/coordinator-index",
    title="The index of the coordinator is out of range",
    why="No pod has this index, so the other pods look for a coordinator that does not exist.",
    function="validateCoordinator",
)
FAILURE_RULE_NAME: Final = JOB_SET.rule(
    "job-set/failure-rule-name",
    title="The name of the failure policy rule is invalid",
    why="JobSet writes the name into its status, which allows only letters, digits, underscores, commas and colons.",
    function="validateFailurePolicy",
)
FAILURE_RULE_TWICE: Final = JOB_SET.rule(
    "job-set/failure-rule-twice",
    title="Two failure policy rules have the same name",
    why="JobSet refuses two rules with the same name. The default name is failurePolicyRule, followed by the index.",
    function="validateFailurePolicy",
)
FAILURE_REASON: Final = JOB_SET.rule(
    "job-set/failure-reason",
    title="The failure policy rule names an unknown reason",
    why="A Job never fails for this reason, so the rule never applies.",
    function="validateFailurePolicy",
)
CLAIM_NAMESPACE: Final = JOB_SET.rule(
    "job-set/claim-namespace",
    title="A volumeClaimPolicies template sets a namespace",
    why="JobSet creates the claims in the namespace of the JobSet and refuses another namespace.",
    function="validateVolumeClaimPolicies",
)
CLAIM_TEMPLATE_TWICE: Final = JOB_SET.rule(
    "job-set/claim-template-twice",
    title="Two volumeClaimPolicies templates have the same name",
    why="The name becomes the name of a volume in the pods, and a part of the name of the claim.",
    function="validateVolumeClaimPolicies",
)
CLAIM_TEMPLATE_NAME: Final = JOB_SET.rule(
    "job-set/claim-template-name",
    title="The name of the volumeClaimPolicies template is not a DNS name",
    why="The PersistentVolumeClaim gets a name that begins with the name of the template.",
    function="validateVolumeClaimPolicies",
)
VOLUME_CONFLICT: Final = JOB_SET.rule(
    "job-set/volume-conflict",
    title="A pod volume has the name of a volumeClaimPolicies template",
    why="JobSet adds a volume with this name to pods that mount the claim. Kubernetes refuses two volumes of one name.",
    function="validateVolumeClaimPolicies",
)
UNMOUNTED_CLAIM: Final = JOB_SET.rule(
    "job-set/unmounted-claim",
    title="No container mounts the volume of the volumeClaimPolicies template",
    why="JobSet creates the claim, but no container can use it.",
    function="validateVolumeClaimPolicies",
)
_INDEXED: Final = "set completionMode Indexed"
_LONGEST_RULE_NAME: Final = 128
_RULE_NAME: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?")
_CHARACTERS_OF_RULE_NAME: Final = re.compile(r"[A-Za-z0-9_,:]*")
_REASONS: Final = (
    *("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"),
)
_OF_NAMED_RULE: Final = "PodFailurePolicy_"
"""The beginning of a reason that names a rule of podFailurePolicy. Later releases may give such reasons."""


def validate_coordinator(job_set: JobSetSpec, *, are_pod_numbers_final: bool) -> Iterator[Problem]:
    """Require that the coordinator is an existing pod of a replicated job with indexed pods."""
    coordinator = job_set.coordinator
    name = coordinator.replicated_job
    if not coordinator or is_placeholder(name):
        return
    job = jobs_by_name(job_set).get(name)
    if job is None:
        message = "is not the name of a replicated job of this JobSet"
        path = coordinator.path("replicatedJob")
        yield COORDINATOR_EXISTS.problem(path, message, fix_for_unknown_job(job_set), name)
    elif are_pod_numbers_final:
        yield from _check_coordinator_indexed(coordinator, job)
        yield from _check_coordinator_index(coordinator, job)


def _check_coordinator_indexed(coordinator: Coordinator, job: ReplicatedJob) -> Iterator[Problem]:
    spec = job.template.spec
    if spec.completions is None or not spec.is_indexed:
        lacks = "is not Indexed" if spec.completions is not None else "has no completions"
        message = f"cannot be the job of the coordinator because its Job template {lacks}, so its pods have no index"
        fixes = ["set completions"] if spec.completions is None else []
        fixes += [] if spec.is_indexed else [_INDEXED]
        fix = f"{' and '.join(fixes)} in the Job template of `{job.name}`"
        yield COORDINATOR_INDEXED.problem(coordinator.path("replicatedJob"), message, fix, job.name)


def _check_coordinator_index(coordinator: Coordinator, job: ReplicatedJob) -> Iterator[Problem]:
    pods = job.template.spec.completions
    if pods is None or not job.template.spec.is_indexed:
        return
    indexes = (
        ("jobIndex", coordinator.job_index, "job", "replicas", job.replicas),
        ("podIndex", coordinator.pod_index, "pod", "completions", pods),
    )
    for field, index, noun, field_of_count, count in indexes:
        if not 0 <= index < count:
            has = f"replicated job `{job.name}` has {counted(count, noun)}"
            message = f"is not the index of a {noun} because {has}"
            fix = f"set {field} to {f'0 to {count - 1}' if count > 2 else '0 or 1' if count > 1 else 0}"
            if count < 1:
                fix = f"set {field_of_count} of `{job.name}` to 1 or more"
            yield COORDINATOR_INDEX.problem(coordinator.path(field), message, fix, index)


def validate_failure_policy(job_set: JobSetSpec) -> Iterator[Problem]:
    """Require valid names, existing targets and known reasons in the rules of the failure policy."""
    policy = job_set.failure_policy
    names: set[str] = set()
    for index, rule in enumerate(policy.rules):
        name = rule.name or f"failurePolicyRule{index}"
        yield from _validate_rule_name(name, names, rule)
        names.add(name)
        yield from validate_targets_exist(rule.target_replicated_jobs, job_set, rule.path("targetReplicatedJobs"))
        yield from _check_failure_reason(rule)
    yield from validate_alpha_features(policy, job_set)


def _validate_rule_name(name: str, before: Collection[str], rule: FailureRule) -> Iterator[Problem]:
    path = rule.path("name")
    if not _RULE_NAME.fullmatch(name) and not is_placeholder(name):
        message = _describe_invalid_rule_name(name)
        example = "onHostFailure"
        if _RULE_NAME.fullmatch(rule.action):
            example = f"{rule.action[0].lower()}{rule.action[1:]}"
        yield FAILURE_RULE_NAME.problem(path, message, f"write a name such as {example}", name)
    if name in before:
        message = "is also the name of an earlier rule"
        yield FAILURE_RULE_TWICE.problem(path, message, "rename one of the two rules", name)


def _describe_invalid_rule_name(name: str) -> str:
    if not _CHARACTERS_OF_RULE_NAME.fullmatch(name):
        return "must have only letters from a to z, digits, underscores, commas and colons"
    if not name[0].isalpha():
        return "must begin with a letter"
    if len(name) > _LONGEST_RULE_NAME:
        return f"has {len(name)} characters, but at most {_LONGEST_RULE_NAME} are allowed"
    return "must end with a letter, a digit or an underscore"


def _check_failure_reason(rule: FailureRule) -> Iterator[Problem]:
    for index, reason in enumerate(rule.on_job_failure_reasons):
        if reason not in _REASONS and not is_placeholder(reason) and not reason.startswith(_OF_NAMED_RULE):
            message = "must be a reason that Kubernetes gives for a failed Job"
            fix = f"use one of {', '.join(_REASONS)}"
            yield FAILURE_REASON.problem(rule.path("onJobFailureReasons", index), message, fix, reason)


def claim_template_names(job_set: JobSetSpec) -> frozenset[str]:
    """Return the names of the volumes that volumeClaimPolicies add to pods."""
    return frozenset(template.metadata.name for template in _claim_templates(job_set))


def _claim_templates(job_set: JobSetSpec) -> Iterator[PersistentVolumeClaimTemplate]:
    for policy in job_set.volume_claim_policies:
        yield from policy.templates


def validate_volume_claim_policies(job_set: JobSetSpec) -> Iterator[Problem]:
    """Require that each claim has a unique name and is mounted, and that no pod has a volume of this name."""
    if not job_set.volume_claim_policies:
        return
    volumes = _volume_names_of_jobs(job_set)
    seen: set[str] = set()
    for template in _claim_templates(job_set):
        metadata = template.metadata
        yield from _check_claim_namespace(metadata)
        if not is_placeholder(metadata.name):
            yield from _validate_claim_template_name(metadata, seen, volumes)
            seen.add(metadata.name)


def _check_claim_namespace(metadata: Metadata) -> Iterator[Problem]:
    if metadata.namespace:
        message = "must not be set because the claims are created in the namespace of the JobSet"
        yield CLAIM_NAMESPACE.problem(metadata.path("namespace"), message, "remove the namespace")


def _validate_claim_template_name(metadata: Metadata, seen: set[str], volumes: _VolumeNames) -> Iterator[Problem]:
    name, path = metadata.name, metadata.path("name")
    if name in seen:
        message = "is also the name of an earlier template"
        yield CLAIM_TEMPLATE_TWICE.problem(path, message, "rename one of the two templates", name)
    elif dns1123_subdomain_errors(name):
        message = f"cannot be a part of the names of claims because {subdomain_fault(name)}"
        yield CLAIM_TEMPLATE_NAME.problem(path, message, subdomain_fix(name), name)
    else:
        yield from _check_volume_conflict(metadata, volumes)
        if name not in volumes.mounted:
            message = "is not mounted by any container"
            fix = f"add `{name}` to volumeMounts of a container, or remove the template"
            yield UNMOUNTED_CLAIM.problem(path, message, fix, name)


def _check_volume_conflict(metadata: Metadata, volumes: _VolumeNames) -> Iterator[Problem]:
    for job in volumes.jobs.get(metadata.name, ()):
        message = (
            f"is also the name of a volume in the pods of replicated job `{job}`, but volumes of a pod need different "
            "names"
        )
        fix = f"remove this volume of replicated job `{job}` to use the claim, or rename the template and its mounts"
        yield VOLUME_CONFLICT.problem(metadata.path("name"), message, fix, metadata.name)


class _VolumeNames(Struct, frozen=True):
    """The volumes of a JobSet. `jobs` maps the name of a volume to the replicated jobs that have the volume. `mounted`
    has the names of volumes that containers mount.
    """

    jobs: dict[str, list[str]]
    mounted: set[str]


def _volume_names_of_jobs(job_set: JobSetSpec) -> _VolumeNames:
    volumes = _VolumeNames({}, set())
    for job in job_set.replicated_jobs:
        for name in dict.fromkeys(volume.name for volume in job.pod.volumes):
            volumes.jobs.setdefault(name, []).append(job.name)
        for container in job.pod.all_containers():
            volumes.mounted.update(mount.name for mount in container.volume_mounts)
    return volumes
