"""Rules for the annotation of a Workload that adds to its priority.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go ValidateWorkload.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.feature_gates import PRIORITY_BOOST, is_gate_on, missing_configuration_of_gate
from webhook.facts.kueue.groups import KUEUE_QUEUE
from webhook.facts.kueue.objects import BOOST
from webhook.facts.kueue.workload_types import Workload
from webhook.facts.subject import Subject
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

KUEUE_QUEUE_PRIORITY_BOOST: Final = KUEUE_QUEUE.rule(
    "kueue-queue/priority-boost",
    title="The priority boost of a Workload is a whole number.",
    why=(
        "Kueue adds it to the priority, where its feature gate PriorityBoost is on. That is asked of its "
        "Configuration because the gate is off by default."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go",
    function="ValidateWorkload",
)
_BOOST: Final = re.compile(r"[+-]?[0-9]{1,20}")
_BOOSTS: Final = range(-(2**31), 2**31)


def validate_priority_boost(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of an annotation that is not a signed number, if its feature gate is on."""
    metadata = subject.typed(Workload).metadata
    given = metadata.annotations.get(BOOST)
    if given is None or is_placeholder(given) or (_BOOST.fullmatch(given) and int(given) in _BOOSTS):
        return
    path, missing = metadata.path("annotations", BOOST), missing_configuration_of_gate(PRIORITY_BOOST, subject)
    if is_gate_on(PRIORITY_BOOST, subject):
        message = "must be a whole number because it is added to the priority"
        yield KUEUE_QUEUE_PRIORITY_BOOST.problem(
            path, message, "set a number such as 10 or -10, or remove the annotation", given
        )
    elif missing:
        yield KUEUE_QUEUE_PRIORITY_BOOST.problem(path, missing=missing)
