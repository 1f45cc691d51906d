"""The checks of device claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.dra import claim_references, claim_use
from webhook.facts.dra.pod_claim_validation import validate_pod_claims
from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.dra.pod_group_claims import LOOKUP, validate_pod_group_claims
from webhook.facts.pods.containers import containers
from webhook.facts.subject import Subject
from webhook.paths import get
from webhook.problem import Problem


def device_claims(subject: Subject) -> Iterator[Problem]:
    """What is wrong with the claims of a pod, with what they refer to and with their use."""
    listed = tuple(subject.deadline.paced(containers(subject.object)))
    yield from validate_pod_claims(subject)
    yield from claim_references.validate_class_resources(listed, subject)
    if not get(subject.object, ("spec", "resourceClaims")):
        return
    dra = subject.fact("dra")
    yield from claim_references.validate_claims(dra["claims"], subject)
    yield from claim_references.validate_requests(dra["references"], dra["claims"], subject)
    yield from claim_references.validate_gpu_is_asked_for_once(listed, dra["claims"], subject)
    yield from claim_use.validate_node_name(subject)
    yield from claim_use.validate_use(dra["claims"], subject)
    yield from validate_pod_group_claims(subject)


CHECKS: Final = (
    Check(group="device-claims", run=device_claims, kinds=frozenset((("", "Pod"),)), lookups=(*LOOKUPS, LOOKUP)),
)
