"""The types of jobset.x-k8s.io with the fields that checks read. Trainer's runtimes and patches contain these types."""

from __future__ import annotations

from functools import cached_property

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed import jobs
from webhook.typed.fields import Number, OptionalNumber, Part, Parts, Text, Texts, Truth
from webhook.typed.objects import Metadata, Object
from webhook.typed.pods import PodSpec, PodTemplate
from webhook.typed.view import Typed


class JobSpec(jobs.JobSpec):
    """batch/v1 JobSpec with the defaults of JobSet, such as completionMode Indexed."""

    completion_mode = Text("Indexed")


class JobTemplate(Typed):
    """batch/v1 JobTemplateSpec."""

    metadata = Part(Metadata)
    spec = Part(JobSpec)


class Dependency(Typed):
    """jobset DependsOn."""

    name = Text()


class ReplicatedJob(Typed):
    """jobset ReplicatedJob."""

    name = Text()
    group_name = Text()
    replicas = Number(1)
    template = Part(JobTemplate)
    depends_on = Parts(Dependency)

    @property
    def parallelism(self) -> int:
        """Return the number of pods of one replica."""
        return self.template.spec.parallelism

    @cached_property
    def pod_template(self) -> PodTemplate:
        return self.template.spec.template

    @cached_property
    def pod(self) -> PodSpec:
        return self.pod_template.spec


class Network(Typed):
    """jobset Network."""

    enable_dns_hostnames = Truth(default=True, name="enableDNSHostnames")
    subdomain = Text()


class SuccessPolicy(Typed):
    """jobset SuccessPolicy."""

    target_replicated_jobs = Texts()


class FailureRule(Typed):
    """jobset FailurePolicyRule."""

    name = Text()
    action = Text()
    target_replicated_jobs = Texts()
    on_job_failure_reasons = Texts()


class FailurePolicy(Typed):
    """jobset FailurePolicy."""

    max_restarts = OptionalNumber()
    restart_strategy = Text()
    rules = Parts(FailureRule)


class StartupPolicy(Typed):
    """jobset StartupPolicy."""

    startup_policy_order = Text()


class Coordinator(Typed):
    """jobset Coordinator."""

    replicated_job = Text()
    job_index = Number()
    pod_index = Number()


class PersistentVolumeClaimTemplate(Typed):
    """core/v1 PersistentVolumeClaimTemplate."""

    metadata = Part(Metadata)


class VolumeClaimPolicy(Typed):
    """jobset VolumeClaimPolicy."""

    templates = Parts(PersistentVolumeClaimTemplate)


class JobSetSpec(Typed):
    """jobset JobSetSpec."""

    replicated_jobs = Parts(ReplicatedJob)
    network = Part(Network)
    success_policy = Part(SuccessPolicy)
    failure_policy = Part(FailurePolicy)
    startup_policy = Part(StartupPolicy)
    coordinator = Part(Coordinator)
    volume_claim_policies = Parts(VolumeClaimPolicy)


class JobSetTemplate(Typed):
    """The JobSet template of a Kubeflow Trainer runtime or of a runtime patch."""

    metadata = Part(Metadata)
    spec = Part(JobSetSpec)


class ReplicatedJobStatus(Typed):
    """jobset ReplicatedJobStatus."""

    name = Text()
    active = Number()


class JobSetStatus(Typed):
    """jobset JobSetStatus."""

    replicated_jobs_status = Parts(ReplicatedJobStatus)


class JobSet(Object):
    """jobset.x-k8s.io JobSet."""

    gvk = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
    spec = Part(JobSetSpec)
    status = Part(JobSetStatus)
