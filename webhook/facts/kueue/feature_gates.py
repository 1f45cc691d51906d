"""Feature gates of Kueue: what they are by default in a release, and what its Configuration says of them.

Source: kubernetes-sigs/kueue@ff69552e pkg/features/kube_features.go. The manager may also be started with flags, which
nobody sees here: a gate that is off by default may be on though no Configuration says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from webhook.facts.kueue.configuration import MISSING_CONFIGURATION, read_kueue_configuration
from webhook.facts.kueue.releases import OLDEST, knows_release
from webhook.facts.subject import Subject
from webhook.problem import MissingObject
from webhook.releases import Release

ADMISSION_GATED_BY: Final = "AdmissionGatedBy"
ELASTIC_JOBS: Final = "ElasticJobsViaWorkloadSlices"
CONCURRENT_ADMISSION: Final = "ConcurrentAdmission"
DEVICE_CLAIMS: Final = "KueueDRAIntegration"
NO_CLAIMS_WITHOUT: Final = "KueueDRARejectWorkloadsWhenDRADisabled"
EXTENDED_CLAIMS: Final = "KueueDRAIntegrationExtendedResource"
NON_NEGATIVE: Final = "WorkloadValidateResourcesAreNonNegative"
GROUP_SIZE: Final = "LWSImmutableGroupSize"
LAYERS: Final = "TASMultiLayerTopology"
PRIORITY_BOOST: Final = "PriorityBoost"
TOPOLOGY: Final = "TopologyAwareScheduling"
ANNOTATED_WORKLOAD: Final = "WorkloadIdentifierAnnotations"
SELECTOR_RESPECTED: Final = "ManagedJobsNamespaceSelectorAlwaysRespected"

_ON_SINCE: Final[Mapping[str, Release]] = {
    ADMISSION_GATED_BY: (0, 19),
    ELASTIC_JOBS: (0, 18),
    DEVICE_CLAIMS: (0, 18),
    NO_CLAIMS_WITHOUT: (0, 18),
    EXTENDED_CLAIMS: (0, 19),
    NON_NEGATIVE: (0, 19),  # 0.19.2
    GROUP_SIZE: (0, 19),  # 0.19.2
    LAYERS: (0, 19),
    TOPOLOGY: (0, 14),
    ANNOTATED_WORKLOAD: (0, 18),
    SELECTOR_RESPECTED: (0, 15),
}
"""The release in which a gate is on by default for the first time; others are off in all of them."""
_FORMER: Final = {DEVICE_CLAIMS: "DynamicResourceAllocation"}
"""What gates were called before 0.18."""


def is_on(gate: str, subject: Subject) -> bool:
    """Whether a gate is on, as the Configuration says, or by default in the release, or in all where it is unknown."""
    release = subject.assumptions.kueue if knows_release(subject) else OLDEST
    return _is_on(gate, release, subject)


def may_be_on(gate: str, subject: Subject) -> bool:
    """The same, where it is enough that a release has it on."""
    return _is_on(gate, subject.assumptions.kueue, subject)


def _is_on(gate: str, release: Release, subject: Subject) -> bool:
    gates = subject.once(read_kueue_configuration).feature_gates
    configured = gates.get(gate, gates.get(_FORMER.get(gate, gate)))
    since = _ON_SINCE.get(gate)
    return configured if configured is not None else since is not None and release >= since


def missing_configuration_of_gate(gate: str, subject: Subject) -> tuple[MissingObject, ...]:
    """What would have to say that a gate is on which is off by default; nothing where the Configuration names it."""
    read = subject.once(read_kueue_configuration)
    if gate in read.feature_gates:
        return ()
    why = f"names no feature gate {gate}" if read.is_known else "not found"
    return (replace(MISSING_CONFIGURATION, why=why),)
