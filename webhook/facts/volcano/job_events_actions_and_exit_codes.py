"""Rules of Volcano's webhook for the policies of a Job and its tasks, and policies that never apply.

The webhook refuses events that only the controller may use. The schema refuses unknown events. Nothing checks the
action of a policy for an exit code.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/util.go validatePolicies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano_objects.types import Job, LifecyclePolicy
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.yamltext.placeholders import is_placeholder

EVENT_AND_EXIT_CODE: Final = VOLCANO_JOB.rule(
    "volcano-job/event-and-exit-code",
    title="The policy names both an event and an exit code",
    why="Volcano refuses the Job, because it could not decide when the policy applies.",
    function="validatePolicies",
)
EVENT_OR_EXIT_CODE: Final = VOLCANO_JOB.rule(
    "volcano-job/event-or-exit-code",
    title="The policy names neither an event nor an exit code",
    why="The policy never applies.",
    function="validatePolicies",
)
EVENT: Final = VOLCANO_JOB.rule(
    "volcano-job/event",
    title="The policy names an event that Volcano does not accept",
    why="A policy may name only some events; the other events are for the controller.",
    function="validatePolicies",
)
ACTION: Final = VOLCANO_JOB.rule(
    "volcano-job/action",
    title="The policy names an action that Volcano does not accept",
    why="The controller does nothing for an unknown action.",
    function="validatePolicies",
)
EVENT_TWICE: Final = VOLCANO_JOB.rule(
    "volcano-job/event-twice",
    title="Two policies name the same event",
    why="Volcano refuses the Job, because it could not decide which policy applies.",
    function="validatePolicies",
)
ANY_EVENT: Final = VOLCANO_JOB.rule(
    "volcano-job/any-event",
    title="One policy names every event (`*`), and another policy names an event",
    why="Volcano refuses the Job, because it could not decide which policy applies.",
    function="validatePolicies",
)
EXIT_CODE: Final = VOLCANO_JOB.rule(
    "volcano-job/exit-code",
    title="The policy names exit code 0",
    why="Exit code 0 means success, and policies are for failures.",
    function="validatePolicies",
)
EXIT_CODE_TWICE: Final = VOLCANO_JOB.rule(
    "volcano-job/exit-code-twice",
    title="Two policies name the same exit code",
    why="Volcano refuses the Job, because it could not decide which policy applies.",
    function="validatePolicies",
)
EXIT_CODE_RANGE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/exit-code-range",
    title="The exit code is not between 1 and 255",
    why="Containers exit with 0 to 255, so the policy never applies.",
    refused_by="nothing; the policy never applies",
)
EXIT_CODE_ACTION: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/exit-code-action",
    title="A policy about an exit code has no known action",
    why="Volcano checks actions only of policies about events. A policy without a known action does nothing.",
    refused_by="nothing; the policy does nothing",
)

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
    """Yield the first problem in each list of policies of the Job and its tasks, as Volcano's webhook does."""
    yield from _check_policy_list(job.spec.policies, job.spec.path("policies"))
    for task in job.spec.tasks:
        yield from _check_policy_list(task.policies, task.path("policies"))


def _check_policy_list(policies: Items[LifecyclePolicy], at: FieldPath) -> Iterator[Problem]:
    events: set[str] = set()
    codes: set[int] = set()
    for policy in policies:
        broken = _validate_events(policy, events) or _validate_exit_code(policy, codes)
        if broken is not None:
            yield broken
            break
    if ANY in events and len(events) > 1:
        message = "has a policy for `*`, which means every event, so policies for other events are not allowed"
        yield ANY_EVENT.problem(at, message, "remove the policies for the other events, or the policy for `*`")


def _validate_events(policy: LifecyclePolicy, seen: set[str]) -> Problem | None:
    """Return the problem of the events of a policy; `seen` are the events of earlier policies."""
    if policy.distinct_events and policy.exit_code is not None:
        message = "must not be set together with an event"
        fix = "remove the event to act only on this exit code, or remove exitCode to act on every such event"
        return EVENT_AND_EXIT_CODE.problem(policy.path("exitCode"), message, fix, policy.exit_code)
    for event in policy.distinct_events:
        if is_placeholder(event):
            continue
        broken = _event_problem(policy, event) or _action_problem(policy) or _event_twice_problem(policy, event, seen)
        if broken:
            return broken
        seen.add(event)
    return None


def _path_of_event(policy: LifecyclePolicy, event: str) -> FieldPath:
    return policy.path("event" if event == policy.event else "events")


def _event_problem(policy: LifecyclePolicy, event: str) -> Problem | None:
    if event in EVENTS:
        return None
    fix = f"use one of {', '.join(EVENTS)}"
    return EVENT.problem(_path_of_event(policy, event), "is not an event that a policy may name", fix, event)


def _action_problem(policy: LifecyclePolicy) -> Problem | None:
    action = policy.action
    if action in ACTIONS or is_placeholder(action):
        return None
    fix = f"use one of {', '.join(ACTIONS)}"
    return ACTION.problem(policy.path("action"), "is not an action that a policy may have", fix, action)


def _event_twice_problem(policy: LifecyclePolicy, event: str, seen: set[str]) -> Problem | None:
    if event not in seen:
        return None
    message = "is also the event of an earlier policy"
    return EVENT_TWICE.problem(
        _path_of_event(policy, event), message, f"remove `{event}` from one of the two policies", event
    )


def _validate_exit_code(policy: LifecyclePolicy, seen: set[int]) -> Problem | None:
    """Return the problem of the exit code of a policy without events; `seen` are the codes of earlier policies."""
    code, path = policy.exit_code, policy.path("exitCode")
    if code is None:
        return None if policy.distinct_events else _event_or_exit_code_problem(policy)
    if code == 0:
        message = "means success, but a policy may name only the exit code of a failure"
        return EXIT_CODE.problem(path, message, "use 1 to 255, or replace exitCode with event TaskCompleted", code)
    if code in seen:
        message = "is also the exit code of an earlier policy"
        return EXIT_CODE_TWICE.problem(path, message, "remove one of the two", code)
    seen.add(code)
    return None


def _event_or_exit_code_problem(policy: LifecyclePolicy) -> Problem:
    message, fix = "has neither an event nor an exit code", "add one of them, such as `event: PodFailed`"
    return EVENT_OR_EXIT_CODE.problem(policy.at, message, fix)


def advise_policies(job: Job) -> Iterator[Problem]:
    """Report policies about exit codes that never apply, or have no effect."""
    for policy in job.spec.policies:
        yield from _advise_policy(policy)
    for task in job.spec.tasks:
        for policy in task.policies:
            yield from _advise_policy(policy)


def _advise_policy(policy: LifecyclePolicy) -> Iterator[Problem]:
    code, action = policy.exit_code, policy.action
    if code is None or policy.distinct_events:
        return
    if code and code not in _EXIT_CODES:
        message = "can never be the exit code of a container, so the policy never applies"
        yield EXIT_CODE_RANGE.problem(policy.path("exitCode"), message, "use 1 to 255", code)
    if not action:
        fix = f"set one of {', '.join(ACTIONS)}"
        yield EXIT_CODE_ACTION.problem(policy.path("action"), "is not set, so the policy does nothing", fix)
    elif action not in ACTIONS and not is_placeholder(action):
        message = f"must be one of {', '.join(ACTIONS)} because the policy does nothing with any other action"
        yield EXIT_CODE_ACTION.problem(policy.path("action"), message, "name an action", action)
