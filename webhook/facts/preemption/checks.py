"""The checks of preemption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cluster.interest import interest_in_fields
from webhook.facts.check import Check
from webhook.facts.gpu.device_pods import PLACED, WORKLOADS, check_advice_without_repetitions
from webhook.facts.kinds import NODE
from webhook.facts.preemption import preemption, spot
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem

_ADVICE: Final = (
    spot.warn_of_spot_toleration_mismatch,
    preemption.warn_of_progress_lost_on_spot_nodes,
    preemption.advise_grace_periods,
    preemption.check_priority_classes_exist,
    preemption.advise_preemption_policy,
)
_ADVICE_OF_OTHERS: Final = (preemption.advise_grace_periods, preemption.check_priority_classes_exist)
"""The advice that is also certain for kinds with controllers that choose where and how long their pods run."""
_LOOKUPS: Final = (*preemption.LOOKUPS, interest_in_fields(NODE, "metadata.labels", "spec.taints"), NAMESPACES)


def advise_preemption(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about an object, once where several of its templates share it."""
    yield from check_advice_without_repetitions(_ADVICE, spot.SPOT_TOLERATION.id, subject)


def advise_preemption_of_others(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about an object whose pods another controller makes."""
    yield from check_advice_without_repetitions(_ADVICE_OF_OTHERS, spot.SPOT_TOLERATION.id, subject)


CHECKS: Final = (
    Check(group="preemption", run=advise_preemption, kinds=WORKLOADS, lookups=_LOOKUPS, of_made_objects=False),
    Check(
        group="preemption",
        run=advise_preemption_of_others,
        kinds=PLACED - WORKLOADS,
        lookups=_LOOKUPS,
        of_made_objects=False,
    ),
)
