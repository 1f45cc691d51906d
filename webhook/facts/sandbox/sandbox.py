"""What the controller of BatchSandboxes fails on, and what it leaves out without a word.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go and
strategy/{pool,task_scheduling}_strategy_default.go. Every level may be null: the controller writes fields without
omitempty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.sandbox.groups import SANDBOX, SANDBOX_ADVICE
from webhook.facts.sandbox.types import BatchSandbox
from webhook.problem import Problem
from webhook.typed.pods import Resources

PODS_REQUIRED: Final = SANDBOX.rule(
    "sandbox/pods-required",
    title="A BatchSandbox has a template or names a Pool.",
    why="There are no pods to create otherwise.",
    function="scaleBatchSandbox",
)
IGNORED_WITH_POOL: Final = SANDBOX_ADVICE.rule(
    "sandbox/ignored-with-pool",
    title="A BatchSandbox that uses a Pool has no template of its own.",
    why="The pods of a Pool are used as they are, so template and patches change nothing.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/strategy/pool_strategy_default.go",
)
UNUSED_PATCHES: Final = SANDBOX_ADVICE.rule(
    "sandbox/unused-patches",
    title="There are no more patches than replicas.",
    why="The patch at an index is for the replica with this index. Others are never used.",
    function="scaleBatchSandbox",
)
TASKS_WITHOUT_TEMPLATE: Final = SANDBOX_ADVICE.rule(
    "sandbox/tasks-without-template",
    title="Task patches have a task template.",
    why="Without a template no task is started, so the patches change nothing.",
    source=(
        "opensandbox-group/OpenSandbox 3bb6fad3 "
        "kubernetes/internal/controller/strategy/task_scheduling_strategy_default.go"
    ),
)
LIMITS_CHOOSE_NO_POOL: Final = SANDBOX_ADVICE.rule(
    "sandbox/limits-choose-no-pool",
    title="With poolRef `*`, devices are requested and not only limited.",
    why="The controller adds up requests to choose a Pool, and nothing copies limits there.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/poolassign/predicate_resource.go",
)

ANY_POOL: Final = "*"
"""With this poolRef the controller chooses a Pool by what the template asks for, and forgets the template."""


def validate_pods(batch: BatchSandbox) -> Iterator[Problem]:
    """Pods come from a template or from a Pool."""
    spec = batch.spec
    if not spec.pool_ref and not spec.has("template") and spec.replicas:
        message = "must be set because spec.poolRef is not set either, so there are no pods to create"
        fix = "set spec.template, or name a Pool in spec.poolRef"
        yield PODS_REQUIRED.problem(spec.path("template"), message, fix)


def advise_ignored_fields(batch: BatchSandbox) -> Iterator[Problem]:
    """Fields that the controller does not read next to others."""
    yield from _ignored_with_pool(batch)
    yield from _unused_patches(batch)
    spec = batch.spec
    if spec.shard_task_patches and not spec.has("taskTemplate"):
        message = "is ignored because spec.taskTemplate is not set, so no task is started"
        yield TASKS_WITHOUT_TEMPLATE.problem(spec.path("shardTaskPatches"), message, "set a taskTemplate")


def _ignored_with_pool(batch: BatchSandbox) -> Iterator[Problem]:
    spec, pool = batch.spec, batch.spec.pool_ref
    for name in () if not pool else ("shardPatches",) if pool == ANY_POOL else ("template", "shardPatches"):
        if spec.is_omitted(name) or spec.json.get(name):  # an empty one says nothing
            message = f"is ignored because spec.poolRef `{pool}` uses the pods of a Pool as they are"
            yield IGNORED_WITH_POOL.problem(spec.path(name), message, "change the Pool instead, or remove poolRef")


def _unused_patches(batch: BatchSandbox) -> Iterator[Problem]:
    spec, count = batch.spec, batch.spec.replicas
    for name in ("shardTaskPatches",) if spec.pool_ref else ("shardPatches", "shardTaskPatches"):
        if len(spec.json.get(name) or ()) > count:
            message = f"is ignored because the patch is for replica {count + 1}, but spec.replicas is {count}"
            yield UNUSED_PATCHES.problem(spec.path(name, count), message, "raise replicas, or remove the patch")


def advise_requests(batch: BatchSandbox) -> Iterator[Problem]:
    """Limits where a Pool is chosen: predicate_resource.go of poolassign adds up requests, which nobody fills in."""
    if batch.spec.pool_ref == ANY_POOL:
        for container in batch.spec.template.spec.containers:
            yield from _limits_choose_no_pool(container.resources)


def _limits_choose_no_pool(resources: Resources) -> Iterator[Problem]:
    for name in resources.limits:
        if "/" in name and name not in resources.requests:
            message = "does not choose a Pool because spec.poolRef `*` compares only requests"
            yield LIMITS_CHOOSE_NO_POOL.problem(resources.path("limits", name), message, "set the request too")
