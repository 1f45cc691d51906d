"""Feature gates of Kueue: their defaults in a release, and their values in its Configuration.

Source: kubernetes-sigs/kueue@ff69552e pkg/features/kube_features.go. The manager may also be started with flags, which
nobody sees here: a gate that is off by default may be on though no Configuration says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from webhook.facts.kueue.configuration import MISSING_CONFIGURATION, read_kueue_configuration
from webhook.facts.kueue.releases import OLDEST, find_kueue_release, is_kueue_release_known
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
"""The first release in which a gate is on by default; other gates are off in all releases."""
_FORMER: Final = {DEVICE_CLAIMS: "DynamicResourceAllocation"}
"""The names of gates before 0.18."""


def is_gate_on(gate: str, subject: Subject) -> bool:
    """Return whether a gate is on by the Configuration or its default; if the release is unknown, in all releases."""
    release = find_kueue_release(subject) if is_kueue_release_known(subject) else OLDEST
    return _is_gate_on_in_release(gate, release, subject)


def may_gate_be_on(gate: str, subject: Subject) -> bool:
    """Return whether a gate is on by the Configuration, or by default in any possible release."""
    return _is_gate_on_in_release(gate, find_kueue_release(subject), subject)


def _is_gate_on_in_release(gate: str, release: Release, subject: Subject) -> bool:
    gates = subject.once(read_kueue_configuration).feature_gates
    configured = gates.get(gate, gates.get(_FORMER.get(gate, gate)))
    since = _ON_SINCE.get(gate)
    return configured if configured is not None else since is not None and release >= since


def missing_configuration_of_gate(gate: str, subject: Subject) -> tuple[MissingObject, ...]:
    """Return the missing object that could tell whether a gate is on; () if the Configuration names the gate."""
    read = subject.once(read_kueue_configuration)
    if gate in read.feature_gates:
        return ()
    why = f"names no feature gate {gate}" if read.is_known else "not found"
    return (replace(MISSING_CONFIGURATION, why=why),)
