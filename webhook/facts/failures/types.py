"""The kinds whose failures are advised on, with the fields that this advice reads."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import OptionalNumber, Part, Parts, Text, Texts
from webhook.typed.objects import Object
from webhook.typed.pods import LabelSelector, Toleration
from webhook.typed.view import Typed


class RequestPart(Typed):
    """resource.k8s.io DeviceSubRequest and ExactDeviceRequest; v1beta1 has their fields in the request itself."""

    tolerations = Parts(Toleration)


class DeviceRequest(RequestPart):
    """resource.k8s.io DeviceRequest."""

    exactly = Part(RequestPart)
    first_available = Parts(RequestPart)


class Devices(Typed):
    """resource.k8s.io DeviceClaim."""

    requests = Parts(DeviceRequest)


class DeviceClaimSpec(Typed):
    """resource.k8s.io ResourceClaimSpec."""

    devices = Part(Devices)


class ResourceClaim(Object):
    """resource.k8s.io ResourceClaim."""

    gvk = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
    spec = Part(DeviceClaimSpec)


class ResourceClaimTemplateSpec(Typed):
    """resource.k8s.io ResourceClaimTemplateSpec."""

    spec = Part(DeviceClaimSpec)


class ResourceClaimTemplate(Object):
    """resource.k8s.io ResourceClaimTemplate."""

    gvk = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaimTemplate")
    spec = Part(ResourceClaimTemplateSpec)


class FailurePolicyRule(Typed):
    """A rule of a podFailurePolicy of batch/v1, or of a failurePolicy of a JobSet."""

    action = Text()


class PodFailurePolicy(Typed):
    """batch/v1 PodFailurePolicy."""

    rules = Parts(FailurePolicyRule)


class JobSetFailurePolicy(Typed):
    """jobset.x-k8s.io FailurePolicy."""

    max_restarts = OptionalNumber()
    rules = Parts(FailurePolicyRule)


class JobSpec(Typed):
    """batch/v1 JobSpec."""

    backoff_limit = OptionalNumber()
    backoff_limit_per_index = OptionalNumber()
    completions = OptionalNumber()
    pod_failure_policy = Part(PodFailurePolicy)


class Job(Object):
    """batch/v1 Job."""

    gvk = GroupVersionKind("batch", "v1", "Job")
    spec = Part(JobSpec)


class JobTemplate(Typed):
    """batch/v1 JobTemplateSpec."""

    spec = Part(JobSpec)


class CronJobSpec(Typed):
    """batch/v1 CronJobSpec."""

    job_template = Part(JobTemplate)


class CronJob(Object):
    """batch/v1 CronJob."""

    gvk = GroupVersionKind("batch", "v1", "CronJob")
    spec = Part(CronJobSpec)


class ReplicatedJob(Typed):
    """jobset.x-k8s.io ReplicatedJob."""

    template = Part(JobTemplate)


class JobSetSpec(Typed):
    """jobset.x-k8s.io JobSetSpec."""

    failure_policy = Part(JobSetFailurePolicy)
    replicated_jobs = Parts(ReplicatedJob)


class JobSet(Object):
    """jobset.x-k8s.io JobSet."""

    gvk = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
    spec = Part(JobSetSpec)


class LifecyclePolicy(Typed):
    """batch.volcano.sh LifecyclePolicy."""

    event = Text()
    events = Texts()
    exit_code = OptionalNumber()


class PolicyHolder(Typed):
    """A Job of Volcano, or a task of it."""

    policies = Parts(LifecyclePolicy)


class PodDisruptionBudgetSpec(Typed):
    """policy/v1 PodDisruptionBudgetSpec."""

    selector = Part(LabelSelector)


class PodDisruptionBudget(Object):
    """policy/v1 PodDisruptionBudget."""

    gvk = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
    spec = Part(PodDisruptionBudgetSpec)
