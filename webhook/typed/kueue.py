"""The kinds of Kueue, and kinds of Kubernetes that Kueue reads, with the fields that checks read.

The classes have the fields of v1beta1 and of v1beta2. For example, a ClusterQueue names its cohort in `cohort` in
v1beta1, and in `cohortName` in v1beta2.

Source: kubernetes-sigs/kueue@ff69552e apis/kueue and config/components/crd/bases.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.fields import Amounts, Labels, Number, OptionalNumber, Part, Parts, Raw, Text, Texts, Truth
from webhook.typed.objects import Object, Status
from webhook.typed.pods import LabelSelector, Pod, PodTemplate, Taint, Toleration
from webhook.typed.view import Typed


def _kueue_kind(kind: str) -> GroupVersionKind:
    return GroupVersionKind("kueue.x-k8s.io", "v1beta2", kind)


class ResourceQuota(Typed):
    """The quota of one resource of a flavor."""

    name = Text()
    nominal_quota = Raw()
    borrowing_limit = Raw()
    lending_limit = Raw()


class FlavorQuotas(Typed):
    """The quotas of the resources of a flavor."""

    name = Text()
    resources = Parts(ResourceQuota)


class ResourceGroup(Typed):
    """A resource group: resources, and the flavors with quota for these resources."""

    covered_resources = Texts()
    flavors = Parts(FlavorQuotas)


class FairSharing(Typed):
    """The fair sharing settings of a queue."""

    weight = Raw()


class QuotaSpec(Typed):
    """The fields that a ClusterQueue and a Cohort have in common."""

    resource_groups = Parts(ResourceGroup)
    fair_sharing = Part(FairSharing)

    def flavor_names(self) -> set[str]:
        """Return the names of the flavors of all resource groups."""
        return {flavor.name for group in self.resource_groups for flavor in group.flavors}


class AdmissionCheckStrategyRule(Typed):
    """An AdmissionCheck of a ClusterQueue, and its flavors; no flavors means all flavors."""

    name = Text()
    on_flavors = Texts()


class AdmissionChecksStrategy(Typed):
    """The AdmissionChecks of a ClusterQueue."""

    admission_checks = Parts(AdmissionCheckStrategyRule)


class FlavorFungibility(Typed):
    """The conditions under which a Workload tries the next flavor."""

    when_can_borrow = Text()
    when_can_preempt = Text(default="TryNextFlavor")
    preference = Text()


class BorrowWithinCohort(Typed):
    """Whether a Workload that borrows may preempt other Workloads."""

    policy = Text(default="Never")


class Preemption(Typed):
    """The Workloads that may be preempted."""

    reclaim_within_cohort = Text(default="Never")
    within_cluster_queue = Text(default="Never")
    borrow_within_cohort = Part(BorrowWithinCohort)


class MigrationConstraints(Typed):
    """The flavors to which a Workload may migrate."""

    last_acceptable_flavor_name = Text()


class Migration(Typed):
    """The settings for migration of a Workload to a better flavor."""

    mode = Text()
    constraints = Part(MigrationConstraints)


class ConcurrentAdmissionPolicy(Typed):
    """The settings for Workloads that try several flavors at a time."""

    migration = Part(Migration)


class ClusterQueueSpec(QuotaSpec):
    """The spec of a ClusterQueue in both versions: v1beta1 has `cohort` and `admissionChecks`."""

    cohort_name = Text()
    cohort = Text()
    namespace_selector = Part(LabelSelector)
    queueing_strategy = Text()
    stop_policy = Text()
    admission_checks = Texts()
    admission_checks_strategy = Part(AdmissionChecksStrategy)
    flavor_fungibility = Part(FlavorFungibility)
    preemption = Part(Preemption)
    concurrent_admission_policy = Part(ConcurrentAdmissionPolicy)


class Reservation(Typed):
    """The reserved amount of one resource of a flavor."""

    name = Text()
    total = Raw()


class FlavorUsage(Typed):
    """The reserved amounts of a flavor."""

    name = Text()
    resources = Parts(Reservation)


class ClusterQueueStatus(Status):
    """The status of a ClusterQueue."""

    flavors_reservation = Parts(FlavorUsage)
    pending_workloads = OptionalNumber()
    reserving_workloads = OptionalNumber()


class ClusterQueue(Object):
    """kueue.x-k8s.io ClusterQueue."""

    gvk = _kueue_kind("ClusterQueue")
    spec = Part(ClusterQueueSpec)
    status = Part(ClusterQueueStatus)


class CohortSpec(QuotaSpec):
    """The spec of a Cohort. v1alpha1 names the parent in `parent`, later versions in `parentName`."""

    parent = Text()
    parent_name = Text()


class Cohort(Object):
    """kueue.x-k8s.io Cohort."""

    gvk = _kueue_kind("Cohort")
    spec = Part(CohortSpec)

    @property
    def parent_field(self) -> str:
        """Return the name of the field with the parent, in the API version of the object."""
        return "parent" if self.version == "v1alpha1" else "parentName"

    @property
    def parent(self) -> str:
        """Return the name of the parent; "" without a parent."""
        return self.spec.parent if self.version == "v1alpha1" else self.spec.parent_name


class LocalQueueSpec(Typed):
    """The spec of a LocalQueue."""

    cluster_queue = Text()
    stop_policy = Text()


class LocalQueue(Object):
    """kueue.x-k8s.io LocalQueue."""

    gvk = _kueue_kind("LocalQueue")
    spec = Part(LocalQueueSpec)


class ResourceFlavorSpec(Typed):
    """The spec of a ResourceFlavor."""

    node_labels = Labels()
    node_taints = Parts(Taint)
    tolerations = Parts(Toleration)
    topology_name = Text()


class ResourceFlavor(Object):
    """kueue.x-k8s.io ResourceFlavor."""

    gvk = _kueue_kind("ResourceFlavor")
    spec = Part(ResourceFlavorSpec)


class TopologyLevel(Typed):
    """A level of a Topology."""

    node_label = Text()


class TopologySpec(Typed):
    """The spec of a Topology."""

    levels = Parts(TopologyLevel)

    def labels(self) -> list[str]:
        """Return the node labels of the topology's levels, from the top."""
        return [level.node_label for level in self.levels]


class Topology(Object):
    """kueue.x-k8s.io Topology."""

    gvk = _kueue_kind("Topology")
    spec = Part(TopologySpec)


class CheckParameters(Typed):
    """The object with the parameters of an AdmissionCheck."""

    api_group = Text()
    kind = Text()
    name = Text()


class AdmissionCheckSpec(Typed):
    """The spec of an AdmissionCheck."""

    controller_name = Text()
    parameters = Part(CheckParameters)


class AdmissionCheck(Object):
    """kueue.x-k8s.io AdmissionCheck."""

    gvk = _kueue_kind("AdmissionCheck")
    spec = Part(AdmissionCheckSpec)
    status = Part(Status)


class MultiKueueConfigSpec(Typed):
    """kueue.x-k8s.io MultiKueueConfigSpec."""

    clusters = Texts()


class MultiKueueConfig(Object):
    """kueue.x-k8s.io MultiKueueConfig."""

    gvk = _kueue_kind("MultiKueueConfig")
    spec = Part(MultiKueueConfigSpec)


class PodStatus(Typed):
    """core/v1 PodStatus."""

    phase = Text()


class PodWithStatus(Pod):
    """core/v1 Pod with its status."""

    status = Part(PodStatus)

    @property
    def is_failed_or_terminating(self) -> bool:
        """Return whether the pod has failed or is being deleted."""
        return self.status.phase == "Failed" or self.metadata.has("deletionTimestamp")


class WorkloadPodSet(Typed):
    """A pod set of a Workload."""

    name = Text()
    count = Number(1)
    min_count = OptionalNumber()
    template = Part(PodTemplate)


class PriorityClassReference(Typed):
    """The priority class of a Workload, in v1beta2."""

    group = Text()
    kind = Text()
    name = Text()


class WorkloadSpec(Typed):
    """The spec of a Workload in both versions: v1beta1 has `priorityClassSource` and `priorityClassName`."""

    pod_sets = Parts(WorkloadPodSet)
    active = Truth(default=True)
    queue_name = Text()
    priority_class_ref = Part(PriorityClassReference)
    priority_class_source = Text()
    priority_class_name = Text()
    maximum_execution_time_seconds = Number()


class PodSetAssignment(Typed):
    """The flavors that are assigned to a pod set, and the usage of each resource."""

    name = Text()
    count = OptionalNumber()
    flavors = Labels()
    resource_usage = Amounts()


class Admission(Typed):
    """The ClusterQueue and the flavors in which a Workload has quota."""

    cluster_queue = Text()
    pod_set_assignments = Parts(PodSetAssignment)


class ReclaimablePod(Typed):
    """How many pods of a pod set have ended. The quota of these pods is free again."""

    name = Text()
    count = Number()


class WorkloadStatus(Status):
    """The status of a Workload."""

    admission = Part(Admission)
    reclaimable_pods = Parts(ReclaimablePod)


class Workload(Object):
    """kueue.x-k8s.io Workload."""

    gvk = _kueue_kind("Workload")
    spec = Part(WorkloadSpec)
    status = Part(WorkloadStatus)


class WorkloadPriorityClass(Object):
    """kueue.x-k8s.io WorkloadPriorityClass."""

    gvk = _kueue_kind("WorkloadPriorityClass")
