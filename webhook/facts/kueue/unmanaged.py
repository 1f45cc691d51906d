"""Finds jobs that Kueue does not manage, but that seem meant for a queue. These jobs start at once, without quota.

A job without a label is reported only if its namespace has a LocalQueue.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework and pkg/controller/jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import structs

from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.apimachinery.releases import release_as_text
from webhook.facts.check import is_made_by_controller
from webhook.facts.kinds import CRON_JOB, DEPLOYMENT
from webhook.facts.kueue.configuration import (
    FRAMEWORK_OF_KIND,
    UNSEEN_CONFIGURATION,
    default_integrations,
    is_integrated_by_other_configuration,
    read_kueue_configuration,
)
from webhook.facts.kueue.groups import KUEUE_UNMANAGED
from webhook.facts.kueue.job_types import pod_templates
from webhook.facts.kueue.managed import (
    SERVING_FRAMEWORKS,
    SYSTEM_NAMESPACES,
    KueueManagement,
    how_kueue_manages,
    is_namespace_known,
    local_queue_names,
)
from webhook.facts.kueue.objects import POD_GROUP, QUEUE_NAME
from webhook.facts.kueue.releases import (
    LABEL_ALONE,
    OLDEST,
    TRAINING_OFF,
    UNKNOWN,
    find_kueue_release,
    is_kueue_release_known,
    is_kueue_release_stated,
    source_of_kueue_release_as_text,
)
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import named
from webhook.typed.jobs import CronJob
from webhook.typed.kueue import LocalQueue
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.ray import RayCluster, RayJob, RayService
from webhook.workloads.podsets import PodSet

KIND_NOT_INTEGRATED: Final = KUEUE_UNMANAGED.rule(
    "kueue-unmanaged/kind-not-integrated",
    title="Kueue ignores the queue label on this kind",
    why="Kueue does not manage this kind, so the job starts at once and uses no quota.",
)
INTEGRATION_OFF: Final = KUEUE_UNMANAGED.rule(
    "kueue-unmanaged/integration-off",
    title="Kueue's integration for this kind is off",
    why=(
        "Since Kueue 0.19 the kinds of the Training Operator are off by default. SparkApplications are off by default "
        "in every release."
    ),
    source="kubernetes-sigs/kueue@ff69552e config/components/manager/controller_manager_config.yaml",
)
NAMESPACE_EXCLUDED: Final = KUEUE_UNMANAGED.rule(
    "kueue-unmanaged/namespace-excluded",
    title="Kueue does not manage this namespace",
    why=(
        "managedJobsNamespaceSelector does not select the namespace, or the namespace is kube-system or Kueue's own. "
        "The job starts at once and uses no quota."
    ),
    function="WorkloadShouldBeSuspended",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/13374",),
)
EXISTING_CLUSTER: Final = KUEUE_UNMANAGED.rule(
    "kueue-unmanaged/existing-cluster",
    title="Kueue does not manage a RayJob on an existing cluster",
    why="Kueue ignores the queue name of a RayJob on an existing cluster. The RayCluster needs the queue name.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/rayjob",
)
LABEL_PLACE: Final = KUEUE_UNMANAGED.rule(
    "kueue-unmanaged/label-place",
    title="The queue name is in a place that Kueue does not read",
    why=(
        "Kueue reads the label of the object itself. Since 0.15, Kueue reads no annotation. If only the pods have the "
        "label, Kueue queues each pod separately."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_webhook.go",
)
NO_QUEUE_NAME: Final = KUEUE_UNMANAGED.rule(
    "kueue-unmanaged/no-queue-name",
    title="The job names no queue although its namespace has a LocalQueue",
    why="The job starts without quota, on nodes that queued jobs wait for.",
)

NO_QUEUE_NAME_IN_FILES: Final = KUEUE_UNMANAGED.rule(
    "kueue-unmanaged/no-queue-name-in-files",
    title="The job names no queue although the files have a LocalQueue for its namespace",
    why=(
        "The files have a queue for this namespace, but the queue may belong to another example, and not every job "
        "needs a queue. For a whole cluster, the rule no-queue-name reports this."
    ),
    level="advice",
)

Rule: TypeAlias = Callable[[Subject, KueueManagement], Iterator[Problem]]
_AT: Final[FieldPath] = ("metadata", "labels", QUEUE_NAME)
_RAY_CLUSTER: Final = ("ray.io", "RayCluster")
_COPIES_LABELS: Final = frozenset((("kubeflow.org", "Notebook"), ("serving.kserve.io", "InferenceService")))
"""Kinds with controllers that copy the labels to StatefulSets and Deployments. Kueue manages these objects.

Source: kubeflow/kubeflow components/notebook-controller/controllers/notebook_controller.go generateStatefulSet,
kserve/kserve pkg/controller/v1beta1/inferenceservice/components/predictor.go.
"""
_QUEUE_LABEL_INSIDE: Final[Mapping[tuple[str, str], FieldPath]] = {
    CRON_JOB: ("spec", "jobTemplate", "metadata", "labels", QUEUE_NAME),
}
"""The path of the queue label in kinds that create an object of an integrated kind."""


def check_unmanaged(subject: Subject) -> Iterator[Problem]:
    """Yield the jobs that Kueue does not manage, with the reason."""
    how = subject.once(how_kueue_manages)
    if how.why_not == "kind" and (subject.group_kind in _COPIES_LABELS or _has_external_controller(subject)):
        return
    if how.queue and how.why_not and how.why_not != "owner":
        yield _labelled_but_unmanaged_problem(subject, how)
    elif how.why_not in ("no-queue", "kind"):
        yield from _check_queue_name_elsewhere(subject, how)


def _has_external_controller(subject: Subject) -> bool:
    """Return whether the Configuration lists the kind in externalFrameworks, as in `Job.v1alpha1.batch.volcano.sh`.
    Then another controller queues the objects of this kind.
    """
    return subject.group_kind in subject.once(read_kueue_configuration).external_kinds


def _labelled_but_unmanaged_problem(subject: Subject, how: KueueManagement) -> Problem:
    match how.why_not:
        case "kind":
            return _kind_not_integrated_problem(subject, how)
        case "framework":
            return _integration_off_problem(subject, how)
        case "namespace":
            message = f"has no effect because Kueue does not manage namespace `{subject.namespace}`"
            message += ", so the job starts at once, without quota"
            fix = "use another namespace, or ask the administrator to select this one in managedJobsNamespaceSelector"
            if subject.namespace in SYSTEM_NAMESPACES:
                fix = f"use a namespace other than {' and '.join(SYSTEM_NAMESPACES)}"
            return NAMESPACE_EXCLUDED.problem(_AT, message, fix, how.queue)
    message = "has no effect because Kueue does not manage a RayJob on an existing cluster (spec.clusterSelector)"
    fix = "set the label on the RayCluster, or replace spec.clusterSelector with spec.rayClusterSpec"
    return EXISTING_CLUSTER.problem(_AT, message, fix, how.queue)


def _kind_not_integrated_problem(subject: Subject, how: KueueManagement) -> Problem:
    inside = _QUEUE_LABEL_INSIDE.get(subject.group_kind)
    fix = "remove the label, or set the label on the objects that this object creates"
    if inside is not None:
        fix = f"set the label in {path_as_text(inside[:-1])} instead"
    group, kind = subject.group_kind
    if any(kind == other for _, other in FRAMEWORK_OF_KIND):  # Kueue manages Jobs of Kubernetes, but not of Volcano
        kind = f"{kind} of {group}"
    message = f"has no effect because Kueue does not manage objects of kind {kind}"
    return KIND_NOT_INTEGRATED.problem(_AT, message, fix, how.queue)


def _integration_off_problem(subject: Subject, how: KueueManagement) -> Problem:
    """Return the problem of a kind that neither the Configuration nor the defaults of the release integrate."""
    read = subject.once(read_kueue_configuration)
    if not read.is_known and is_integrated_by_other_configuration(how.framework, subject):
        return INTEGRATION_OFF.problem(_AT, missing=(UNSEEN_CONFIGURATION,))
    if not read.is_known and how.framework in default_integrations(OLDEST) and not is_kueue_release_known(subject):
        return INTEGRATION_OFF.problem(_AT, missing=(UNKNOWN,))
    where = "integrations.frameworks of Kueue's Configuration"
    release, source = release_as_text(find_kueue_release(subject)), source_of_kueue_release_as_text(subject)
    default = f"which is off by default in Kueue {release}{source}"
    if not is_kueue_release_stated(subject):
        was_on_before = how.framework in default_integrations(OLDEST)
        since = f"since Kueue {release_as_text(TRAINING_OFF)}" if was_on_before else "in any release of Kueue"
        default = f"which is off by default {since} (the installed release is not known)"
    message = f"has no effect unless {where} lists {how.framework}, {default}"
    if read.is_known:
        message = f"has no effect because {where} does not list {how.framework}"
    fix = "use a kind that Kueue manages, or ask the administrator of Kueue for the integration"
    return INTEGRATION_OFF.problem(_AT, f"{message}, so the pods start at once, without quota", fix, how.queue)


def _check_queue_name_elsewhere(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield a queue name at a place that Kueue does not read, or a missing queue name in a namespace with queues."""
    annotated = subject.typed(Object).annotations.get(QUEUE_NAME, "")
    if annotated and how.why_not == "no-queue" and subject.once(read_kueue_configuration).manages_all:
        return  # kueue-not-now reports a job without a queue where Kueue manages all jobs
    if annotated:
        is_known = is_kueue_release_known(subject)
        if not is_known or find_kueue_release(subject) >= LABEL_ALONE:
            yield _misplaced_queue_label_problem(("metadata", "annotations", QUEUE_NAME), annotated, is_known=is_known)
    elif how.why_not == "no-queue":
        labelled = _pod_set_that_names_queue(subject) if how.framework != "pod" else None
        if labelled is not None:
            yield from _check_queue_on_templates(*labelled, subject)
        elif not (subject.group_kind == _RAY_CLUSTER and _is_scaled_by_ray(subject)):
            yield from _check_missing_queue_name(subject, how)
    elif subject.group_kind == CRON_JOB:
        yield from _check_queue_on_pods_of_cron_job(subject)


def _check_queue_on_pods_of_cron_job(subject: Subject) -> Iterator[Problem]:
    """Yield a queue that only the pods of a CronJob name. A Job without labels gets the labels of its pods from the API
    server, so Kueue sees the queue of such a Job (k8s.io/kubernetes v1.36 pkg/apis/batch/v1/defaults.go).
    """
    job, frameworks = subject.typed(CronJob).spec.job_template, subject.once(read_kueue_configuration).frameworks
    queue = job.spec.template.metadata.labels.get(QUEUE_NAME, "")
    if queue and job.metadata.labels and QUEUE_NAME not in job.metadata.labels and "batch/job" in frameworks:
        path = job.spec.template.path("metadata", "labels", QUEUE_NAME)
        problem = _misplaced_queue_label_problem(path, queue, of_pods="queued" if "pod" in frameworks else "ignored")
        yield structs.replace(problem, fix=f"move the label to {path_as_text(job.path('metadata', 'labels'))}")


def _misplaced_queue_label_problem(
    path: FieldPath, queue: str, of_pods: Literal["", "queued", "ignored"] = "", *, is_known: bool = True
) -> Problem:
    """Return the problem of an annotation, or of a label on pods. `of_pods` is "" for an annotation, "queued" if Kueue
    queues each pod separately, and "ignored" if Kueue ignores the label.

    `is_known`: whether the release of Kueue is known; the oldest releases read the annotation.
    """
    if not is_known:
        return LABEL_PLACE.problem(path, missing=(UNKNOWN,))
    since = f"since Kueue {release_as_text(LABEL_ALONE)}"
    message = f"has no effect {since}, which reads the name of the queue only from a label"
    fix = "set a label instead"
    if of_pods:
        message = "has no effect on the object because Kueue reads the label of the object and not of its pods"
        fix = "move the label to metadata.labels of the object"
    if of_pods == "queued":
        message = "makes Kueue queue each pod separately, so the pods do not start together"
    return LABEL_PLACE.problem(path, message, fix, queue)


def _pod_set_that_names_queue(subject: Subject) -> tuple[PodSet, PodTemplate] | None:
    """Return the first pod set with a queue label on its pods, and the template of the pods."""
    pairs = zip(subject.once(pod_sets).all, subject.once(pod_templates), strict=True)
    return next((pair for pair in pairs if pair[0].path and pair[1].metadata.labels.get(QUEUE_NAME)), None)


def _check_queue_on_templates(pod_set: PodSet, template: PodTemplate, subject: Subject) -> Iterator[Problem]:
    """Yield a queue that only the pods name.

    If Kueue manages pods, Kueue queues each pod separately. Some pods are then not reported. Kueue always queues the
    pods of a Deployment separately, and the pods of a pod group together. Kueue does not queue an autoscaled Ray
    cluster as a whole, because Ray creates the pods one by one (pkg/controller/jobs/raycluster/raycluster_webhook.go
    validateCreate).
    """
    labels, has_pods = template.metadata.labels, "pod" in subject.once(read_kueue_configuration).frameworks
    if has_pods and (subject.group_kind == DEPLOYMENT or labels.get(POD_GROUP) or _is_scaled_by_ray(subject)):
        return
    of_pods: Literal["queued", "ignored"] = "queued" if has_pods else "ignored"
    yield _misplaced_queue_label_problem(pod_set.locate(_AT), labels[QUEUE_NAME], of_pods=of_pods)


def _is_scaled_by_ray(subject: Subject) -> bool:
    """Return whether an object is or creates a Ray cluster to which Ray adds pods."""
    cluster = subject.typed(RayCluster).spec
    match subject.group_kind:
        case ("ray.io", "RayJob"):
            cluster = subject.typed(RayJob).spec.ray_cluster_spec
        case ("ray.io", "RayService"):
            cluster = subject.typed(RayService).spec.ray_cluster_config
    return subject.group_kind[0] == "ray.io" and cluster.enable_in_tree_autoscaling


def _check_missing_queue_name(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    if how.framework in SERVING_FRAMEWORKS or subject.once(is_made_by_controller) or not is_namespace_known(subject):
        return
    queues = local_queue_names(subject)
    if queues and not subject.once(read_kueue_configuration).manages_all:
        first = named(queues[:3], "LocalQueue")
        if len(queues) == 1:
            view = subject.cluster_view()
            first += view.file_of_object_as_text(view.get_without_noting(LocalQueue.gvk, subject.namespace, queues[0]))
        message = f"does not name a queue, but its namespace has {first}"
        message = f"the object {message}, so the object starts at once, without quota"
        rule = NO_QUEUE_NAME if subject.cluster_view().is_whole() else NO_QUEUE_NAME_IN_FILES
        fix = f"set the label {QUEUE_NAME}: {queues[0]}"
        if len(queues) > 1:
            fix = f"set the label {QUEUE_NAME} to the queue that the job is meant for"
        yield rule.problem("", message, fix, needs=QUEUE_NAME)
