"""What the controller of BatchSandboxes fails on, and what it leaves out without a word.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go and
strategy/{pool,task_scheduling}_strategy_default.go. Every level may be null: the controller writes fields without
omitempty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.sandbox.groups import SANDBOX, SANDBOX_ADVICE
from webhook.facts.sandbox.pool_and_buffer import warn_of_fields_ignored_with_pool
from webhook.facts.sandbox.shard_patches import advise_unused_patches
from webhook.facts.sandbox.types import BatchSandbox
from webhook.problem import Problem

PODS_REQUIRED: Final = SANDBOX.rule(
    "sandbox/pods-required",
    title="A BatchSandbox has a template or names a Pool.",
    why="There are no pods to create otherwise.",
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


def check_has_template_or_pool(batch: BatchSandbox) -> Iterator[Problem]:
    """Require a template or a Pool for the pods."""
    spec = batch.spec
    if not spec.pool_ref and not spec.has("template") and spec.replicas:
        message = "must be set because spec.poolRef is not set either, so there are no pods to create"
        fix = "set spec.template, or name a Pool in spec.poolRef"
        yield PODS_REQUIRED.problem(spec.path("template"), message, fix)


def advise_ignored_fields(batch: BatchSandbox) -> Iterator[Problem]:
    """Warn of fields that the controller does not read next to others."""
    yield from warn_of_fields_ignored_with_pool(batch)
    yield from advise_unused_patches(batch)
    spec = batch.spec
    if spec.shard_task_patches and not spec.has("taskTemplate"):
        message = "is ignored because spec.taskTemplate is not set, so no task is started"
        yield TASKS_WITHOUT_TEMPLATE.problem(spec.path("shardTaskPatches"), message, "set a taskTemplate")
