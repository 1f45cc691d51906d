"""The checks of volumes of workloads with devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.gpu.device_pods import PLACED, WORKLOADS, check_advice_without_repetitions
from webhook.facts.storage import checkpoints, mounts, shared_memory, volume_claims
from webhook.facts.subject import Check, Subject, group_kinds_of_types
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.typed.objects import ConfigMap

_ADVICE: Final = (
    volume_claims.validate_claims,
    volume_claims.check_classes_of_ephemeral_volumes,
    volume_claims.check_classes_of_claim_templates,
    volume_claims.validate_created_claims,
    checkpoints.advise_checkpoints,
    volume_claims.advise_rolling_updates,
    shared_memory.advise_shared_memory,
    shared_memory.validate_shared_memory_limits,
    checkpoints.advise_sub_paths,
    mounts.check_file_modes,
)


_CLAIMS: Final = _ADVICE[:4]
"""The advice for every kind in PLACED; the other advice is only for WORKLOADS."""


def advise_claims(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about claims, for kinds that get no other advice about storage."""
    yield from check_advice_without_repetitions(_CLAIMS, volume_claims.CLAIM_EXISTS.id, subject)


def advise_storage(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about volumes. If several templates get the same advice, report it once."""
    yield from check_advice_without_repetitions(_ADVICE, volume_claims.CLAIM_EXISTS.id, subject)


CHECKS: Final = (
    Check(
        group="storage",
        run=advise_storage,
        kinds=WORKLOADS,
        lookups=(*volume_claims.CLAIM_LOOKUPS, NAMESPACES),
        lookups_of_audits=volume_claims.VOLUME_LOOKUPS,
        kinds_in_files=group_kinds_of_types(ConfigMap),
        of_made_objects=False,
    ),
    Check(
        group="storage",
        run=advise_claims,
        kinds=PLACED - WORKLOADS,
        lookups=(*volume_claims.CLAIM_LOOKUPS, NAMESPACES),
        lookups_of_audits=volume_claims.VOLUME_LOOKUPS,
        of_made_objects=False,
    ),
)
