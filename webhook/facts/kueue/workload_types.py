"""The Workload of Kueue and its priority class, with the fields that checks read.

Source: kubernetes-sigs/kueue@ff69552e apis/kueue, of v1beta1 and v1beta2.
"""

from __future__ import annotations

from webhook.facts.kueue import objects
from webhook.typed.fields import Amounts, Labels, Number, OptionalNumber, Part, Parts, Text, Truth
from webhook.typed.objects import Object, Status
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed


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
    """The flavors that a pod set was assigned, and its usage of them."""

    name = Text()
    count = OptionalNumber()
    flavors = Labels()
    resource_usage = Amounts()


class Admission(Typed):
    """The ClusterQueue and the flavors in which a Workload has quota."""

    cluster_queue = Text()
    pod_set_assignments = Parts(PodSetAssignment)


class ReclaimablePod(Typed):
    """Pods of a pod set that have ended and whose quota is free again."""

    name = Text()
    count = Number()


class WorkloadStatus(Status):
    """The status of a Workload."""

    admission = Part(Admission)
    reclaimable_pods = Parts(ReclaimablePod)


class Workload(Object):
    """kueue.x-k8s.io Workload."""

    gvk = objects.WORKLOAD
    spec = Part(WorkloadSpec)
    status = Part(WorkloadStatus)


class WorkloadPriorityClass(Object):
    """kueue.x-k8s.io WorkloadPriorityClass."""

    gvk = objects.WORKLOAD_PRIORITY_CLASS
