"""What the controller of BatchSandboxes fails on, and what it leaves out without a word.

Source: opensandbox-group/OpenSandbox@3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go and
strategy/{pool,task_scheduling}_strategy_default.go. Every level may be null: the controller writes fields without
omitempty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.opensandbox.sandbox import Sandbox, problem
from webhook.paths import FieldPath, get
from webhook.problem import Problem

ANY_POOL: Final = "*"
"""With this poolRef the controller chooses a Pool by what the template asks for, and forgets the template."""
CONTAINERS: Final[FieldPath] = ("template", "spec", "containers")


def replicas(batch: Sandbox) -> int:
    """How many pods it asks for."""
    given = batch.spec.get("replicas")
    return 1 if given is None else int(given)


def validate_pods(batch: Sandbox) -> Iterator[Problem]:
    """Pods come from a template or from a Pool."""
    if not batch.spec.get("poolRef") and not batch.has("template") and replicas(batch):
        message = "must be set because spec.poolRef is not set either, so there are no pods to create"
        yield problem(
            "pods-required", ("spec", "template"), message, "set spec.template, or name a Pool in spec.poolRef"
        )


def advise_ignored_fields(batch: Sandbox) -> Iterator[Problem]:
    """Fields that the controller does not read next to others."""
    pool, patches = batch.spec.get("poolRef", ""), batch.spec.get("shardTaskPatches", [])
    for name in () if not pool else ("shardPatches",) if pool == ANY_POOL else ("template", "shardPatches"):
        if batch.has(name) and batch.spec.get(name, True):  # an empty one says nothing
            message = f"is ignored because spec.poolRef `{pool}` uses the pods of a Pool as they are"
            yield problem("ignored-with-pool", ("spec", name), message, "change the Pool instead, or remove poolRef")
    count = replicas(batch)
    for name in ("shardTaskPatches",) if pool else ("shardPatches", "shardTaskPatches"):
        if len(batch.spec.get(name, [])) > count:
            message = f"is ignored because the patch is for replica {count + 1}, but spec.replicas is {count}"
            yield problem("unused-patches", ("spec", name, count), message, "raise replicas, or remove the patch")
    if patches and not batch.has("taskTemplate"):
        message = "is ignored because spec.taskTemplate is not set, so no task is started"
        yield problem("tasks-without-template", ("spec", "shardTaskPatches"), message, "set a taskTemplate")


def advise_requests(batch: Sandbox) -> Iterator[Problem]:
    """Limits where a Pool is chosen: predicate_resource.go of poolassign adds up requests, which nobody fills in."""
    if batch.spec.get("poolRef") != ANY_POOL:
        return
    for index, container in enumerate(batch.deadline.each(get(batch.spec, CONTAINERS, []))):
        resources = container.get("resources", {})
        for name in batch.deadline.each(resources.get("limits", {})):
            if "/" in name and name not in resources.get("requests", {}):
                path = ("spec", *CONTAINERS, index, "resources", "limits", name)
                message = "does not choose a Pool because spec.poolRef `*` compares only requests"
                yield problem("limits-choose-no-pool", path, message, "set the request too")
