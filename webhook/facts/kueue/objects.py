"""The objects that facts about Kueue look up in the cluster, and the labels and annotations that Kueue reads."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster import controllers
from webhook.cluster.interest import Interest, ObjectScope, interest_in_fields
from webhook.cluster.site_params import CONFIG_MAP
from webhook.facts.dra.device_claims_classes import DEVICE_CLASS
from webhook.facts.dra.pod_claims import DOMAINS, TEMPLATE
from webhook.facts.dra.resource_slices import DEVICE_LOOKUPS
from webhook.facts.kinds import KUEUE_QUEUE_NAME, NODE, RUNTIME_CLASS
from webhook.facts.priority_classes import PRIORITY_CLASS_LOOKUP
from webhook.facts.train_job_pods.types import RUNTIMES
from webhook.facts.view import NAMESPACES
from webhook.typed.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    MultiKueueConfig,
    ResourceFlavor,
    Topology,
    Workload,
    WorkloadPriorityClass,
)

GROUP: Final = "kueue.x-k8s.io"
QUEUE_NAME: Final = KUEUE_QUEUE_NAME
PRIORITY: Final = f"{GROUP}/priority-class"
PREBUILT: Final = f"{GROUP}/prebuilt-workload-name"
MAX_EXEC_TIME: Final = f"{GROUP}/max-exec-time-seconds"
ELASTIC: Final = f"{GROUP}/elastic-job"
GATED_BY: Final = f"{GROUP}/admission-gated-by"
MIN_PARALLELISM: Final = f"{GROUP}/job-min-parallelism"
EQUAL_COMPLETIONS: Final = f"{GROUP}/job-completions-equal-parallelism"
BOOST: Final = f"{GROUP}/priority-boost"
MANAGED: Final = f"{GROUP}/managed"
POD_GROUP: Final = f"{GROUP}/pod-group-name"
POD_GROUP_COUNT: Final = f"{GROUP}/pod-group-total-count"
POD_GROUP_FAST: Final = f"{GROUP}/pod-group-fast-admission"
DEFAULT_QUEUE: Final = "default"
"""The name of the default LocalQueue and of the default WorkloadPriorityClass."""

BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""The texts that Go's strconv.ParseBool reads, with their values."""


def _kueue_kind(kind: str) -> GroupVersionKind:
    return GroupVersionKind(GROUP, "v1beta2", kind)


LOCAL_QUEUE: Final = LocalQueue.gvk
CLUSTER_QUEUE: Final = ClusterQueue.gvk
COHORT: Final = Cohort.gvk
RESOURCE_FLAVOR: Final = ResourceFlavor.gvk
TOPOLOGY: Final = Topology.gvk
ADMISSION_CHECK: Final = AdmissionCheck.gvk
PROVISIONING_CONFIG: Final = _kueue_kind("ProvisioningRequestConfig")
MULTI_KUEUE_CONFIG: Final = MultiKueueConfig.gvk
MULTI_KUEUE_CLUSTER: Final = _kueue_kind("MultiKueueCluster")
WORKLOAD: Final = Workload.gvk
WORKLOAD_PRIORITY_CLASS: Final = WorkloadPriorityClass.gvk
LIMIT_RANGE: Final = GroupVersionKind("", "v1", "LimitRange")
CONFIGURATION: Final = ObjectScope(namespace="kueue-system", name="kueue-manager-config")
"""The ConfigMap with the Configuration in the manifests of Kueue's releases."""

_STATUS: Final = ("status.conditions", "status.flavorsReservation", "status.pendingWorkloads")
QUEUES: Final = (
    interest_in_fields(LOCAL_QUEUE, "spec"),
    interest_in_fields(CLUSTER_QUEUE, "spec", "metadata.deletionTimestamp", *_STATUS),
    interest_in_fields(COHORT, "spec"),
    interest_in_fields(RESOURCE_FLAVOR, "spec"),
    interest_in_fields(TOPOLOGY, "spec"),
    interest_in_fields(ADMISSION_CHECK, "spec.controllerName", "spec.parameters", "status.conditions"),
)
"""The kinds of objects in the tree of queues."""
CHECK_PARAMETERS: Final = (
    interest_in_fields(PROVISIONING_CONFIG),
    interest_in_fields(MULTI_KUEUE_CONFIG, "spec.clusters"),
    interest_in_fields(MULTI_KUEUE_CLUSTER),
)
"""The kinds of parameters of AdmissionChecks."""
CONFIGURATIONS: Final = Interest(CONFIG_MAP, frozenset(("data",)), scope=CONFIGURATION)
LOOKUPS: Final = (
    *QUEUES,
    *CHECK_PARAMETERS,
    interest_in_fields(WORKLOAD_PRIORITY_CLASS),
    interest_in_fields(LIMIT_RANGE, "spec.limits"),
    interest_in_fields(
        NODE,
        "metadata.labels",
        "spec.taints",
        "spec.unschedulable",
        "status.allocatable",
        "status.conditions.type",  # without the time of the last heartbeat, which changes often
        "status.conditions.status",
    ),
    interest_in_fields(RUNTIME_CLASS, "overhead"),
    interest_in_fields(TEMPLATE, "spec.spec.devices.requests"),
    DOMAINS,
    interest_in_fields(DEVICE_CLASS, "spec.extendedResourceName", "metadata.creationTimestamp"),
    *DEVICE_LOOKUPS,
    CONFIGURATIONS,
    controllers.KUEUE.deployment_interest,
    PRIORITY_CLASS_LOOKUP,
    *RUNTIMES,
    NAMESPACES,
)
"""The objects of the cluster that are read for a job."""
