"""The kinds of Kubernetes itself and cluster-scoped kinds of other projects, for finding misspelled kinds.

The kinds with a namespace are those marked `+genclient`, and not nonNamespaced, in k8s.io/api v0.36.1. Kinds that hold
pods are in the workload table; of all others nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.cluster.cluster_scoped import CLUSTER_SCOPED

_NAMESPACED: Final[Mapping[str, str]] = {
    "": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController "
    "ResourceQuota Secret Service ServiceAccount",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "extensions": "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet",
    "lifecycle.k8s.io": "EvictionRequest",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "Eviction PodDisruptionBudget PodSecurityPolicy",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    "scheduling.k8s.io": "CompositePodGroup PodGroup Workload",
    "storage.k8s.io": "CSIStorageCapacity",
}
KNOWN: Final = CLUSTER_SCOPED | {(group, kind) for group, kinds in _NAMESPACED.items() for kind in kinds.split()}
"""The groups and names of these kinds."""
COMPLETE: Final = frozenset(("", "apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io"))
"""Groups of which every kind is known, so that any other name is a mistake."""
