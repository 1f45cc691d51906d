"""The checks of the fields of workloads that KAI and YuniKorn read."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.gpu.device_pods import PLACED
from webhook.facts.other_schedulers.kai import (
    FRACTIONS,
    KAI_LOOKUPS,
    advise_fractions_without_kai,
    check_kai_fractions,
    check_kai_queue_object,
    check_kai_queues,
)
from webhook.facts.other_schedulers.yunikorn import TASK_GROUPS, check_task_groups
from webhook.typed.pod_parts import CLAIMS, DEVICES

_QUEUES: Final = frozenset((("scheduling.run.ai", "Queue"),))

_OF_PODS: Final = FRACTIONS | {CLAIMS, DEVICES}

CHECKS: Final = (
    Check(
        group="kai",
        run=check_kai_queues,
        kinds=PLACED,
        lookups=KAI_LOOKUPS,
        of_made_objects=False,
        of_pods_with=_OF_PODS,
    ),
    Check(group="kai", run=check_kai_fractions, kinds=PLACED, of_made_objects=False, of_pods_with=FRACTIONS),
    Check(group="kai", run=advise_fractions_without_kai, kinds=PLACED, of_made_objects=False, of_pods_with=FRACTIONS),
    Check(group="kai", run=check_kai_queue_object, kinds=_QUEUES),
    Check(group="yunikorn", run=check_task_groups, kinds=PLACED, of_made_objects=False, of_pods_with=TASK_GROUPS),
)
