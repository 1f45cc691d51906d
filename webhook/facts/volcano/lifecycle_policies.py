"""What Volcano's webhook refuses of the policies of a Job and of its tasks, and those that never apply.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/util.go validatePolicies. Events that no
user may name are refused; other unknown events are a matter of the schema, and the actions of exit codes of nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.facts.volcano.job import Job, problem
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

ANY: Final = "*"
EVENTS: Final = (ANY, "JobUpdated", "PodEvicted", "PodFailed", "PodPending", "TaskCompleted", "TaskFailed", "Unknown")
ACTIONS: Final = (
    "AbortJob",
    "CompleteJob",
    "RestartJob",
    "RestartPartition",
    "RestartPod",
    "RestartTask",
    "ResumeJob",
    "TerminateJob",
)
_EXIT_CODES: Final = range(1, 256)


def validate_policies(job: Job) -> Iterator[Problem]:
    """The policies of the Job and of each task; the first mistake of a list is told, as upstream does."""
    for policies, at in _lists(job):
        yield from _validate_list(policies, at, job)


def advise_policies(job: Job) -> Iterator[Problem]:
    """Policies about exit codes that never apply, or do nothing."""
    for policies, at in _lists(job):
        for index, policy in enumerate(job.deadline.paced(policies)):
            code = policy.get("exitCode")
            if code is None or events_of(policy):
                continue
            if code and code not in _EXIT_CODES:
                message = "can never be the exit code of a container, so the policy never applies"
                yield problem("exit-code-range", (*at, index, "exitCode"), message, "use 1 to 255", code)
            action = policy.get("action", "")
            if action not in ACTIONS and not is_placeholder(action):
                message = f"must be one of {', '.join(ACTIONS)} because the policy does nothing with any other action"
                yield problem("exit-code-action", (*at, index, "action"), message, "name an action", action)


def _lists(job: Job) -> Iterator[tuple[list[Mapping[str, Any]], FieldPath]]:
    yield job.spec.get("policies", []), (*job.at, "policies")
    for task in job.deadline.each(job.tasks):
        yield task.value.get("policies", []), (*task.at, "policies")


def events_of(policy: Mapping[str, Any]) -> list[str]:
    """The events that a policy is about, each once."""
    event = policy.get("event", "")
    return list(dict.fromkeys((*policy.get("events", []), *((event,) if event else ()))))


def _validate_list(policies: list[Mapping[str, Any]], at: FieldPath, job: Job) -> Iterator[Problem]:
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(job.deadline.paced(policies)):
        broken = _of_event(policy, events, (*at, index)) or _of_code(policy, codes, (*at, index))
        if broken is not None:
            yield broken
            break
    if ANY in events and len(events) > 1:
        message = "must not have policies for other events next to a policy for `*`, which means every event"
        yield problem("any-event", at, message, "remove the policies for the other events, or the policy for `*`")


def _of_event(policy: Mapping[str, Any], seen: set[str], at: FieldPath) -> Problem | None:
    events = events_of(policy)
    if events and policy.get("exitCode") is not None:
        message = "must not be set together with an event"
        return problem(
            "event-and-exit-code", (*at, "exitCode"), message, "split the policy into two", policy["exitCode"]
        )
    for event in events:
        path = (*at, "event" if event == policy.get("event") else "events")
        if is_placeholder(event):
            continue
        if event not in EVENTS:
            fix = f"use one of {', '.join(EVENTS)}"
            return problem("event", path, "is not an event that a policy may name", fix, event)
        action = policy.get("action", "")
        if action not in ACTIONS and not is_placeholder(action):
            return problem(
                "action",
                (*at, "action"),
                "is not an action that a policy may have",
                f"use one of {', '.join(ACTIONS)}",
                action,
            )
        if event in seen:
            message = "is also the event of a policy before this one"
            return problem("event-twice", path, message, "join the two policies", event)
        seen.add(event)
    return None


def _of_code(policy: Mapping[str, Any], seen: set[int], at: FieldPath) -> Problem | None:
    code = policy.get("exitCode")
    if code is None:
        if events_of(policy):
            return None
        return problem(
            "event-or-exit-code",
            at,
            "must have an event or an exit code",
            "add one of them, such as `event: PodFailed`",
        )
    if code == 0:
        message = "must not be 0 because 0 means success"
        return problem("exit-code", (*at, "exitCode"), message, "use 1 to 255", code)
    if code in seen:
        message = "is also the exit code of a policy before this one"
        return problem("exit-code-twice", (*at, "exitCode"), message, "remove one of the two", code)
    seen.add(code)
    return None
