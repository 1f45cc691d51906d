"""The groups of rules of this package, and objects of these schedulers with the fields that are read."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Number, Part, Quantities, Text, ValueMap
from webhook.typed.objects import Object
from webhook.typed.view import Typed

KAI: Final = RuleGroup(
    "kai",
    source="kai-scheduler/KAI-Scheduler@d5bc503a pkg/scheduler/actions/utils/input_jobs.go",
    level="warn",
    fails="pending",
)
"""Pods that KAI places, and its queues."""
YUNIKORN: Final = RuleGroup(
    "yunikorn",
    source="apache/yunikorn-k8shim@23b6b47f pkg/cache/amprotocol.go",
    level="warn",
    fails="silent",
)
"""Pods that YuniKorn places."""


class KaiQueueSpec(Typed):
    """scheduling.run.ai/v2 QueueSpec; `resources` has quota and limit by cpu, gpu and memory."""

    parent_queue = Text()
    resources = ValueMap()


class KaiQueue(Object):
    """scheduling.run.ai/v2 Queue, which has no namespace."""

    gvk = GroupVersionKind("scheduling.run.ai", "v2", "Queue")
    spec = Part(KaiQueueSpec)


class TaskGroup(Typed):
    """A task group in an annotation of YuniKorn."""

    name = Text()
    min_member = Number()
    min_resource = Quantities()
