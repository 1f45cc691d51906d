"""The checks of the fields of workloads that KAI and YuniKorn read."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.gpu.device_pods import PLACED
from webhook.facts.other_schedulers.kai import (
    KAI_LOOKUPS,
    check_kai_fractions,
    check_kai_queue_object,
    check_kai_queues,
)
from webhook.facts.other_schedulers.yunikorn import check_task_groups

_QUEUES: Final = frozenset((("scheduling.run.ai", "Queue"),))

CHECKS: Final = (
    Check(group="kai", run=check_kai_queues, kinds=PLACED, lookups=KAI_LOOKUPS, of_made_objects=False),
    Check(group="kai", run=check_kai_fractions, kinds=PLACED, of_made_objects=False),
    Check(group="kai", run=check_kai_queue_object, kinds=_QUEUES),
    Check(group="yunikorn", run=check_task_groups, kinds=PLACED, of_made_objects=False),
)
