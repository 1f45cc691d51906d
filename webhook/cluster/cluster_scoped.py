"""Kinds whose objects have no namespace, for use without an API server.

The kinds of Kubernetes are those marked `+genclient:nonNamespaced` in k8s.io/api v0.36.1; the others are the
CustomResourceDefinitions with `scope: Cluster` of projects that this one has policies for. The workload table has those
that hold pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.attributes import GroupVersionKind

_KINDS: Final[Mapping[str, str]] = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
    "ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "imagepolicy.k8s.io": "ImageReview",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IPAddress IngressClass ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
    "kueue.x-k8s.io": "AdmissionCheck ClusterQueue Cohort MultiKueueCluster MultiKueueConfig "
    "ProvisioningRequestConfig ResourceFlavor Topology WorkloadPriorityClass",
    "nodeinfo.volcano.sh": "Numatopology",
    "openreports.io": "ClusterReport",
    "scheduling.volcano.sh": "Queue",
    "shard.volcano.sh": "NodeShard",
    "topology.volcano.sh": "HyperNode",
    "trainer.kubeflow.org": "ClusterTrainingRuntime",
    "wgpolicyk8s.io": "ClusterPolicyReport",
}
CLUSTER_SCOPED: Final = frozenset((group, kind) for group, kinds in _KINDS.items() for kind in kinds.split())
"""The groups and names of these kinds."""


def is_cluster_scoped(kind: GroupVersionKind) -> bool:
    """Return whether objects of a kind are known to have no namespace."""
    return (kind.group, kind.kind) in CLUSTER_SCOPED


def is_built_in(kind: GroupVersionKind) -> bool:
    """Return whether a kind belongs to Kubernetes itself, so that the cluster has no definition of it."""
    return "." not in kind.group or kind.group.endswith(".k8s.io")
