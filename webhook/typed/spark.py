"""The type of sparkoperator.k8s.io, with the fields that checks of queues read.

Source: kubeflow/spark-operator@38082f33 api/v1beta2/sparkapplication_types.go.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.fields import Part, Text, Truth
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class DynamicAllocation(Typed):
    """Whether an application gets executors on demand."""

    enabled = Truth()


class BatchSchedulerOptions(Typed):
    """The settings of the batch scheduler for an application."""

    queue = Text()


class SparkApplicationSpec(Typed):
    """sparkoperator.k8s.io SparkApplicationSpec."""

    mode = Text()
    dynamic_allocation = Part(DynamicAllocation)
    batch_scheduler = Text()
    batch_scheduler_options = Part(BatchSchedulerOptions)


class SparkApplication(Object):
    """sparkoperator.k8s.io SparkApplication."""

    gvk = GroupVersionKind("sparkoperator.k8s.io", "v1beta2", "SparkApplication")
    spec = Part(SparkApplicationSpec)
