"""Lists kinds of Kubernetes and of other projects with their scope, for use without an API server.

The list finds misspelled kinds, and cluster-scoped objects in files. Kinds of other projects are listed if they have
`scope: Cluster` and claimgate has policies for them. The workload table has the kinds with pods. Other kinds are
unknown.

Source: k8s.io/api v0.36.1, kinds marked `+genclient`. Kinds marked `+genclient:nonNamespaced` have no namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath

_CLUSTER_SCOPED_KINDS: Final[Mapping[str, str]] = {
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
    "nvidia.com": "ClusterPolicy",
    "openreports.io": "ClusterReport",
    "scheduling.run.ai": "Queue",
    "scheduling.volcano.sh": "Queue",
    "shard.volcano.sh": "NodeShard",
    "topology.volcano.sh": "HyperNode",
    "trainer.kubeflow.org": "ClusterTrainingRuntime",
    "wgpolicyk8s.io": "ClusterPolicyReport",
}
CLUSTER_SCOPED: Final = frozenset(
    (group, kind) for group, kinds in _CLUSTER_SCOPED_KINDS.items() for kind in kinds.split()
)
"""Kinds of objects without a namespace, as group and kind."""
_NAMESPACED_KINDS: Final[Mapping[str, str]] = {
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
KNOWN_KINDS: Final = CLUSTER_SCOPED | {
    (group, kind) for group, kinds in _NAMESPACED_KINDS.items() for kind in kinds.split()
}
"""All kinds of the list, as group and kind."""
COMPLETE_GROUPS: Final = frozenset(("", "apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io"))
"""Groups with all their kinds in the list. In these groups, any other kind is a mistake."""
RELEASE_FIELDS: Final[Mapping[GroupVersionKind, FieldPath]] = {
    GroupVersionKind("kubeadm.k8s.io", "v1beta4", "ClusterConfiguration"): ("kubernetesVersion",),
    GroupVersionKind("kubeadm.k8s.io", "v1alpha2", "MasterConfiguration"): ("kubernetesVersion",),
    GroupVersionKind("kind.x-k8s.io", "v1alpha4", "Cluster"): ("nodes", 0, "image"),
    GroupVersionKind("kind.sigs.k8s.io", "v1alpha3", "Cluster"): ("nodes", 0, "image"),
    GroupVersionKind("k3d.io", "v1alpha5", "Simple"): ("image",),
    GroupVersionKind("kubekey.kubesphere.io", "v1alpha2", "Cluster"): ("spec", "kubernetes", "version"),
    GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta1", "KubeadmControlPlane"): ("spec", "version"),
    GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "AWSManagedControlPlane"): ("spec", "version"),
    GroupVersionKind("cluster.x-k8s.io", "v1beta1", "Cluster"): ("spec", "topology", "version"),
    GroupVersionKind("kops.k8s.io", "v1alpha2", "Cluster"): ("spec", "kubernetesVersion"),
    GroupVersionKind("eksctl.io", "v1alpha5", "ClusterConfig"): ("metadata", "version"),
    GroupVersionKind("provisioning.cattle.io", "v1", "Cluster"): ("spec", "kubernetesVersion"),
}
"""The fields with the release of Kubernetes, in objects that create a cluster. If the field is an image, its tag begins
with the release. Sources: the API types of kubeadm, kind, k3d, KubeKey, Cluster API, its provider for AWS, kops, eksctl
and Rancher; the fields are the same in all versions of these APIs.
"""


def is_cluster_scoped(kind: GroupVersionKind) -> bool:
    """Return whether objects of a kind certainly have no namespace."""
    return (kind.group, kind.kind) in CLUSTER_SCOPED


def is_built_in(kind: GroupVersionKind) -> bool:
    """Return whether a kind belongs to Kubernetes. No CustomResourceDefinition defines such a kind."""
    return "." not in kind.group or kind.group.endswith(".k8s.io")
