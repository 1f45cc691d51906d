"""Typed objects for the kinds of jobs that Kueue has rules for, and typed pod templates of their pod sets.

Fields that every kind has are in webhook/typed/objects.py. A typed template has no path; the pod set has the path.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.gpu.device_pods import located_templates
from webhook.facts.subject import Subject
from webhook.typed.cluster_objects import PodCounts
from webhook.typed.collections import Items
from webhook.typed.fields import Number, Part, Truth
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import ReadingContext, Typed


class RunPolicy(Typed):
    """The run policy of a job of the Training Operator."""

    suspend = Truth()


class SuspendableJobSpec(Typed):
    """The two fields that suspend a job. Each kind has one of the two fields."""

    suspend = Truth()
    run_policy = Part(RunPolicy)


class SuspendableJob(Object):
    """A job of any kind, with the fields that suspend the job."""

    spec = Part(SuspendableJobSpec)

    @property
    def is_suspended(self) -> bool:
        """Return whether one of the two fields suspends the job."""
        return self.spec.suspend or self.spec.run_policy.suspend


class ServingSpec(Typed):
    """Fields of a Deployment or StatefulSet. A LeaderWorkerSet has only `replicas`."""

    replicas = Number(1)
    template = Part(PodTemplate)


class ServingWorkload(Object):
    """A Deployment, StatefulSet or LeaderWorkerSet."""

    spec = Part(ServingSpec)
    status = Part(PodCounts)


def typed_template(template: JSON, deadline: Deadline) -> PodTemplate:
    """Return a pod template with typed fields."""
    return PodTemplate.of(template, (), ReadingContext(deadline))


def pod_templates(subject: Subject) -> Items[PodTemplate]:
    """Return the templates of the pod sets of an object, in order. Call this function through `Subject.once`."""
    return Items([template for _, template in subject.once(located_templates)], subject.deadline)
