"""The types of batch/v1, with the fields that checks read."""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.fields import Number, OptionalNumber, Part, Parts, Text, Values
from webhook.typed.objects import Metadata, Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed


class ExitCodes(Typed):
    """batch/v1 PodFailurePolicyOnExitCodesRequirement."""

    container_name = Text()
    operator = Text()
    values = Values()


class PodFailureRule(Typed):
    """batch/v1 PodFailurePolicyRule."""

    action = Text()
    on_exit_codes = Part(ExitCodes)
    on_pod_conditions = Values()


class PodFailurePolicy(Typed):
    """batch/v1 PodFailurePolicy."""

    rules = Parts(PodFailureRule)


class SuccessRule(Typed):
    """batch/v1 SuccessPolicyRule."""

    succeeded_count = OptionalNumber()


class SuccessPolicy(Typed):
    """batch/v1 SuccessPolicy."""

    rules = Parts(SuccessRule)


class JobSpec(Typed):
    """batch/v1 JobSpec."""

    active_deadline_seconds = OptionalNumber()
    backoff_limit = OptionalNumber()
    backoff_limit_per_index = OptionalNumber()
    completion_mode = Text()
    completions = OptionalNumber()
    max_failed_indexes = OptionalNumber()
    parallelism = Number(1)
    pod_failure_policy = Part(PodFailurePolicy)
    pod_replacement_policy = Text()
    success_policy = Part(SuccessPolicy)
    template = Part(PodTemplate)

    @property
    def is_indexed(self) -> bool:
        """Whether each pod of the Job has an index."""
        return self.completion_mode == "Indexed"


class Job(Object):
    """batch/v1 Job."""

    gvk = GroupVersionKind("batch", "v1", "Job")
    spec = Part(JobSpec)

    @property
    def pods(self) -> int:
        """Return how many pods the job runs at a time."""
        parallelism, completions = self.spec.parallelism, self.spec.completions
        return parallelism if completions is None else min(parallelism, completions)


class JobTemplate(Typed):
    """batch/v1 JobTemplateSpec."""

    metadata = Part(Metadata)
    spec = Part(JobSpec)


class CronJobSpec(Typed):
    """batch/v1 CronJobSpec."""

    job_template = Part(JobTemplate)


class CronJob(Object):
    """batch/v1 CronJob."""

    gvk = GroupVersionKind("batch", "v1", "CronJob")
    spec = Part(CronJobSpec)
