"""What the controller of BatchSandboxes fails on, and what it leaves out without a word.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go and
strategy/{pool,task_scheduling}_strategy_default.go. Every level may be null: the controller writes fields without
omitempty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.opensandbox.types import BatchSandbox
from webhook.problem import Problem
from webhook.typed.pods import Resources

problem = Group("sandbox").problem
ANY_POOL: Final = "*"
"""With this poolRef the controller chooses a Pool by what the template asks for, and forgets the template."""


def validate_pods(batch: BatchSandbox) -> Iterator[Problem]:
    """Pods come from a template or from a Pool."""
    spec = batch.spec
    if not spec.pool_ref and not spec.has("template") and spec.replicas:
        message = "must be set because spec.poolRef is not set either, so there are no pods to create"
        fix = "set spec.template, or name a Pool in spec.poolRef"
        yield problem("pods-required", spec.path("template"), message, fix)


def advise_ignored_fields(batch: BatchSandbox) -> Iterator[Problem]:
    """Fields that the controller does not read next to others."""
    yield from _ignored_with_pool(batch)
    yield from _unused_patches(batch)
    spec = batch.spec
    if spec.shard_task_patches and not spec.has("taskTemplate"):
        message = "is ignored because spec.taskTemplate is not set, so no task is started"
        yield problem("tasks-without-template", spec.path("shardTaskPatches"), message, "set a taskTemplate")


def _ignored_with_pool(batch: BatchSandbox) -> Iterator[Problem]:
    spec, pool = batch.spec, batch.spec.pool_ref
    for name in () if not pool else ("shardPatches",) if pool == ANY_POOL else ("template", "shardPatches"):
        if spec.is_omitted(name) or spec.json.get(name):  # an empty one says nothing
            message = f"is ignored because spec.poolRef `{pool}` uses the pods of a Pool as they are"
            yield problem("ignored-with-pool", spec.path(name), message, "change the Pool instead, or remove poolRef")


def _unused_patches(batch: BatchSandbox) -> Iterator[Problem]:
    spec, count = batch.spec, batch.spec.replicas
    for name in ("shardTaskPatches",) if spec.pool_ref else ("shardPatches", "shardTaskPatches"):
        if len(spec.json.get(name) or ()) > count:
            message = f"is ignored because the patch is for replica {count + 1}, but spec.replicas is {count}"
            yield problem("unused-patches", spec.path(name, count), message, "raise replicas, or remove the patch")


def advise_requests(batch: BatchSandbox) -> Iterator[Problem]:
    """Limits where a Pool is chosen: predicate_resource.go of poolassign adds up requests, which nobody fills in."""
    if batch.spec.pool_ref == ANY_POOL:
        for container in batch.spec.template.spec.containers:
            yield from _limits_choose_no_pool(container.resources)


def _limits_choose_no_pool(resources: Resources) -> Iterator[Problem]:
    for name in resources.limits:
        if "/" in name and name not in resources.requests:
            message = "does not choose a Pool because spec.poolRef `*` compares only requests"
            yield problem("limits-choose-no-pool", resources.path("limits", name), message, "set the request too")
