"""What the API server refuses in the spec of a Job, whether a user or a controller creates the Job.

An API server refuses a Job or a CronJob before it calls validating webhooks, so only commands that read files report
these objects. JobSet's webhook does not look at these fields: it stores the JobSet, and then its controller cannot
create the Jobs.

Numbers of pods in a training runtime are not final, because each TrainJob sets them. Other modules of this package
report a restartPolicy that no Job may have, selectors, and the values of the pod template.

Source: k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go validateJobSpec, validatePodFailurePolicy,
validateSuccessPolicy and validatePodReplacementPolicy; pkg/apis/batch/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.facts.kinds import CRON_JOB
from webhook.facts.shapes.object_shape import OBJECT_SHAPE
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean, either, shown
from webhook.typed.collections import Items
from webhook.typed.jobs import CronJob, ExitCodes, Job, JobSpec, PodFailureRule
from webhook.yamltext.placeholders import is_placeholder

JOB_SPEC: Final = OBJECT_SHAPE.rule(
    "object-shape/job-spec",
    title="Fields of the Job contradict each other or are out of range",
    why="The API server refuses the Job.",
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validateJobSpec",
    level="warn",
)
_NUMBERS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "ttlSecondsAfterFinished",
)
"""The fields that must not be negative."""
_MODES: Final = ("Indexed", "NonIndexed")
_ACTIONS: Final = ("FailJob", "FailIndex", "Ignore", "Count")
_OPERATORS: Final = ("In", "NotIn")
_REPLACEMENTS: Final = ("TerminatingOrFailed", "Failed")


class JobMistake(NamedTuple):
    """A wrong field of a Job: the path, the message, the fix, and the value that the finding shows."""

    at: FieldPath
    message: str
    fix: str
    value: str | int | None = None


def check_spec_of_job(subject: Subject) -> Iterator[Problem]:
    """Report what the API server refuses in the spec of a Job, or of the Jobs of a CronJob."""
    if subject.mismatches:
        return
    is_cron_job = subject.group_kind == CRON_JOB
    spec = subject.typed(CronJob).spec.job_template.spec if is_cron_job else subject.typed(Job).spec
    for each in mistakes_in_job_spec(spec, has_default_numbers=not is_cron_job):
        yield JOB_SPEC.problem(each.at, each.message, each.fix, each.value)


def mistakes_in_job_spec(
    spec: JobSpec,
    *,
    has_default_numbers: bool = True,
    are_pod_numbers_final: bool = True,
    default_restart_policy: str = "",
) -> Iterator[JobMistake]:
    """Yield the fields of a Job that contradict each other or are out of range.

    Nothing is reported if the pod template is only a part, because another file or a TrainJob may set more fields.

    Args:
        spec: the spec, as its author wrote it. A subclass has the defaults of the controller that creates the Job.
        has_default_numbers: whether the API server sets `parallelism` and `completions` to 1 if both are missing. It
            does not do this in a CronJob.
        are_pod_numbers_final: whether `parallelism` and `completions` are final.
        default_restart_policy: the restartPolicy that the controller sets if the author sets none.
    """
    if spec.template.spec.is_part:
        return
    yield from _negative_numbers(spec)
    needs_completions = are_pod_numbers_final and (spec.has("parallelism") or not has_default_numbers)
    yield from _mistakes_of_indexes(spec, needs_completions=needs_completions)
    yield from _mistakes_of_failed_indexes(spec, are_pod_numbers_final=are_pod_numbers_final)
    if spec.has("podFailurePolicy"):
        yield from _mistakes_of_failure_policy(spec, default_restart_policy)
    if spec.has("successPolicy"):
        yield from _mistakes_of_success_policy(spec, are_pod_numbers_final=are_pod_numbers_final)
    yield from _mistakes_of_replacement(spec)


def _is_mode_known(spec: JobSpec) -> bool:
    return not (is_placeholder(spec.completion_mode) or spec.is_omitted("completionMode"))


def _negative_numbers(spec: JobSpec) -> Iterator[JobMistake]:
    for name in _NUMBERS:
        value = spec.json.get(name)
        if isinstance(value, int) and value < 0:
            yield JobMistake(spec.path(name), "must not be negative", "set 0 or more", value)


def _mistakes_of_indexes(spec: JobSpec, *, needs_completions: bool) -> Iterator[JobMistake]:
    mode = spec.completion_mode
    if not _is_mode_known(spec):
        return
    if mode and mode not in _MODES:
        yield JobMistake(spec.path("completionMode"), "must be Indexed or NonIndexed", "write one of them", mode)
    elif spec.is_indexed:
        if needs_completions and not spec.has("completions"):
            why = "completionMode is Indexed" if spec.has("completionMode") else "JobSet sets completionMode: Indexed"
            fix = "set completions, usually to the number in parallelism, or set completionMode: NonIndexed"
            yield JobMistake(spec.path("completions"), f"must be set because {why}", fix)
    elif spec.has("backoffLimitPerIndex"):
        message = "needs completionMode: Indexed because the pods of other Jobs have no index"
        fix = "set completionMode: Indexed and completions, or set backoffLimit in place of this field"
        yield JobMistake(spec.path("backoffLimitPerIndex"), message, fix, spec.backoff_limit_per_index)


def _mistakes_of_failed_indexes(spec: JobSpec, *, are_pod_numbers_final: bool) -> Iterator[JobMistake]:
    most, completions = spec.max_failed_indexes, spec.completions
    if spec.has("maxFailedIndexes") and not spec.has("backoffLimitPerIndex"):
        fix = "set backoffLimitPerIndex, or remove maxFailedIndexes"
        yield JobMistake(spec.path("maxFailedIndexes"), "needs backoffLimitPerIndex", fix, most)
    elif are_pod_numbers_final and most is not None and completions is not None and most > completions:
        message = f"must not be more than the {completions} of completions"
        yield JobMistake(spec.path("maxFailedIndexes"), message, f"set at most {completions}", most)


def _mistakes_of_failure_policy(spec: JobSpec, default_restart_policy: str) -> Iterator[JobMistake]:
    pod = spec.template.spec
    if (pod.restart_policy or default_restart_policy) == "OnFailure" and not pod.is_omitted("restartPolicy"):
        message = "must be Never because the API server otherwise refuses a Job with a podFailurePolicy"
        yield JobMistake(pod.path("restartPolicy"), message, "set Never", pod.restart_policy or None)
    names = dict.fromkeys(container.name for container in (*pod.init_containers, *pod.containers))  # keeps the order
    if any(map(is_placeholder, names)):
        names = {}
    for rule in spec.pod_failure_policy.rules:
        yield from _mistakes_of_action(rule, spec)
        has_codes, has_conditions = rule.has("onExitCodes"), bool(rule.on_pod_conditions)
        if has_codes and has_conditions:
            message = "must not have both onExitCodes and onPodConditions"
            yield JobMistake(rule.at, message, "write two rules, or remove one of the fields")
        elif not (has_codes or has_conditions or rule.has("onPodConditions")):
            fix = "add the exit codes or the conditions of the failures that the rule is about"
            yield JobMistake(rule.at, "must have onExitCodes or onPodConditions", fix)
        if has_codes and not rule.is_omitted("onExitCodes"):
            yield from _mistakes_of_exit_codes(rule.on_exit_codes, names)


def _mistakes_of_action(rule: PodFailureRule, spec: JobSpec) -> Iterator[JobMistake]:
    action = rule.action
    if action == "FailIndex" and not spec.has("backoffLimitPerIndex"):
        message = "needs backoffLimitPerIndex, without which the API server refuses the Job"
        more = "" if spec.is_indexed else ", completions and completionMode: Indexed"
        fix = f"set backoffLimitPerIndex{more}, or use FailJob to end the whole Job"
        yield JobMistake(rule.path("action"), message, fix, "FailIndex")
    elif action not in _ACTIONS and not is_placeholder(action) and not rule.is_omitted("action"):
        message = f"must be {either(_ACTIONS)}"
        fix = did_you_mean(nearest_name(action, _ACTIONS) or "", "write one of them")
        yield JobMistake(rule.path("action"), message, fix, action or None)


def _mistakes_of_exit_codes(codes: ExitCodes, names: Mapping[str, None]) -> Iterator[JobMistake]:
    if codes.operator not in _OPERATORS and not is_placeholder(codes.operator) and not codes.is_omitted("operator"):
        message = "must be In or NotIn"
        yield JobMistake(codes.path("operator"), message, "write one of them", codes.operator or None)
    if fault := _fault_of_codes([*codes.values], codes.operator):
        yield JobMistake(codes.path("values"), *fault)
    name = codes.container_name
    if name and names and name not in names and not is_placeholder(name):
        near = nearest_name(name, Items([*names], codes.reading.deadline))
        fix = did_you_mean(near, "name a container of the template, or remove the field")
        yield JobMistake(codes.path("containerName"), "is not the name of a container of the pods", fix, name)


def _fault_of_codes(values: Sequence[Any], operator: str) -> tuple[str, str] | None:
    """Return what the API server refuses in a list of exit codes, with the fix."""
    if not values:
        return "must have an exit code", "write the exit codes that the rule is about"
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) != len(values):
        return None  # a text that a program replaces, or a wrong type, which another rule reports
    if operator == "In" and 0 in numbers:
        return "must not have 0 with the operator In, because a container that ends with 0 has not failed", "remove 0"
    if numbers != sorted(set(numbers)):
        in_order = shown(sorted(set(numbers)))
        return f"must be in ascending order, each once, and not {shown(numbers)}", f"write {in_order}"
    return None


def _mistakes_of_success_policy(spec: JobSpec, *, are_pod_numbers_final: bool) -> Iterator[JobMistake]:
    policy, completions = spec.success_policy, spec.completions
    if not spec.is_indexed:
        if _is_mode_known(spec):
            fix = "set completionMode: Indexed and completions, or remove successPolicy"
            yield JobMistake(policy.at, "needs completionMode: Indexed", fix)
        return
    if not policy.rules and not spec.is_omitted("successPolicy"):
        yield JobMistake(policy.path("rules"), "must have a rule", "add a rule, or remove successPolicy")
    for rule in policy.rules:
        count = rule.succeeded_count
        if not (rule.has("succeededCount") or rule.has("succeededIndexes")):
            fix = "say how many indexes, or which, must succeed"
            yield JobMistake(rule.at, "must have succeededCount or succeededIndexes", fix)
        elif are_pod_numbers_final and count is not None and completions is not None and count > completions:
            message = f"must not be more than the {completions} of completions"
            yield JobMistake(rule.path("succeededCount"), message, f"set at most {completions}", count)


def _mistakes_of_replacement(spec: JobSpec) -> Iterator[JobMistake]:
    replacement, at = spec.pod_replacement_policy, spec.path("podReplacementPolicy")
    if not replacement or is_placeholder(replacement):
        return
    if replacement not in _REPLACEMENTS:
        yield JobMistake(at, f"must be {either(_REPLACEMENTS)}", "write one of them", replacement)
    elif replacement != "Failed" and spec.has("podFailurePolicy"):
        message = "must be Failed because the Job has a podFailurePolicy"
        yield JobMistake(at, message, "set Failed, or remove the field", replacement)
