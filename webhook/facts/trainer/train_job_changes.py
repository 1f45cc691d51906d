"""Rules of the API server, Trainer's webhook and JobSet for changes of an existing TrainJob.

Sources: kubeflow/trainer@8c0f5059bd51 manifests/base/crds (`self == oldSelf`, which does not apply to a field that is
added or removed), pkg/runtime/framework/plugins/jobset/jobset.go checkRuntimePatchesImmutability, branches release-2.0
to release-2.3; kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateUpdate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.apimachinery.releases import release_as_text
from webhook.cluster.interest import interest_in_fields
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import train_job_patches
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.releases import FIXED_GRACE, PATCHES, find_trainer_release
from webhook.facts.train_job_pods.train_job_and_runtime_fields import comparable_specs, is_field_changed
from webhook.facts.train_job_pods.train_job_patches import JobOverlay
from webhook.facts.train_job_pods.types import TRAIN_JOB_CHANGES, TrainJob, TrainJobSpec
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSet, ReplicatedJob
from webhook.typed.view import ReadingContext

IMMUTABLE_FIELD: Final = TRAIN_JOB_CHANGES.rule(
    "train-job-changes/immutable-field",
    title="An immutable field of the TrainJob was changed",
    why=(
        "The API server refuses the change. Since Trainer 2.2, trainer, initializer and activeDeadlineSeconds are "
        "immutable, in addition to runtimeRef and managedBy."
    ),
    source="https://github.com/kubeflow/trainer/pull/3157",
)
IMMUTABLE_PATCH: Final = TRAIN_JOB_CHANGES.rule(
    "train-job-changes/immutable-patch",
    title="An immutable part of a patch was changed",
    why="The API server refuses the change, because JobSet cannot change existing pods.",
)
RUNNING: Final = TRAIN_JOB_CHANGES.rule(
    "train-job-changes/running",
    title="Patches were changed while the job runs",
    why="Trainer accepts changed patches only while the job is suspended.",
    function="checkRuntimePatchesImmutability",
)
ACTIVE_PODS: Final = TRAIN_JOB_CHANGES.rule(
    "train-job-changes/active-pods",
    title="Patches were changed while pods of the job still exist",
    why=(
        "Trainer refuses changed patches while pods of the JobSet are active, for example just after the job was "
        "suspended."
    ),
    function="checkRuntimePatchesImmutability",
)
JOB_SET_IMMUTABLE: Final = TRAIN_JOB_CHANGES.rule(
    "train-job-changes/job-set-immutable",
    title="The TrainJob was changed, but JobSet refuses this change of the pods",
    why="Trainer accepts the change, and tries to update the JobSet again and again, but JobSet refuses the update.",
    refused_by="JobSet's webhook, when Trainer updates the JobSet",
    source="https://github.com/kubernetes-sigs/jobset/issues/624",
    level="warn",
    severity="low",
    fails="controller",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/2691",),
)

LOOKUPS: Final = (
    interest_in_fields(JobSet.gvk, *(f"status.replicatedJobsStatus.{name}" for name in ("name", "active"))),
    NAMESPACES,
)
_MUTABLE: Final = ("nodeSelector", "tolerations", "schedulingGates")
"""Fields of a PodSpec that may change while a JobSet is suspended. Labels and annotations may change too."""
_FIXED_POD: Final = ("template", "spec", "template", 1)
"""The path of the PodSpec in the result of `_immutable_part_of_job`."""
_MOST_NAMES: Final = 3
_FIELDS_THAT_MAKE_JOB_SET: Final = ("runtimePatches", "trainer", "initializer")
"""Fields of a TrainJob from which its JobSet is created."""
_IMMUTABLE_POD_FIELDS: Final = (
    *("serviceAccountName", "volumes", "initContainers", "containers", "imagePullSecrets", "securityContext"),
    *("terminationGracePeriodSeconds", "resourceClaims"),
)


def validate_immutable_fields(subject: Subject) -> Iterator[Problem]:
    """Yield changes of immutable fields: runtimeRef and managedBy, and since 2.2 also trainer, initializer and
    activeDeadlineSeconds (kubeflow/trainer#3157).
    """
    now, before = (
        TrainJobSpec(spec, ("spec",), ReadingContext(subject.deadline)) for spec in comparable_specs(subject)
    )
    fixed = ["trainer", "initializer", "activeDeadlineSeconds"] if find_trainer_release(subject) >= PATCHES else []
    changed = [name for name in fixed if is_field_changed(name, now, before)]
    if now.managed_by != before.managed_by:
        changed.append("managedBy")
    if not now.runtime_ref.refers_to(before.runtime_ref):
        changed.append("runtimeRef")
    for name in changed:
        fix = "restore the old value, or create a new TrainJob"
        yield IMMUTABLE_FIELD.problem(f"spec.{name}", "cannot change after the TrainJob was created", fix)


def validate_immutable_patches(subject: Subject) -> Iterator[Problem]:
    """Yield changes of immutable fields in a patch for the pods of a job. Patches are compared by manager and job."""
    release = find_trainer_release(subject)
    if release < PATCHES:
        return
    now, old_spec = comparable_specs(subject)
    before = dict(_overlays_by_manager(old_spec, subject))
    for key, overlay in _overlays_by_manager(now, subject):
        old = before.get(key)
        for name in _IMMUTABLE_POD_FIELDS if old is not None else ():
            is_fixed = name != "terminationGracePeriodSeconds" or release >= FIXED_GRACE
            if old is not None and is_fixed and is_field_changed(name, overlay.pod, old.pod):
                message = "cannot change in a patch that the TrainJob already has"
                fix = "restore the old value, or create a new TrainJob"
                yield IMMUTABLE_PATCH.problem(overlay.pod.path(name), message, fix)


def _overlays_by_manager(spec: Mapping[str, JSON], subject: Subject) -> Iterator[tuple[tuple[str, str], JobOverlay]]:
    """Yield the partial jobs of patches, by the manager of the patch and the name of the job."""
    job = TrainJob({"spec": spec}, (), ReadingContext(subject.deadline))
    layers = train_job_patches.read_patches(job, find_trainer_release(subject))
    for patch, layer in zip(job.spec.runtime_patches, layers, strict=True):
        for overlay in layer.overlays:
            yield (patch.manager, overlay.name), overlay


def check_patch_changes_while_running(subject: Subject) -> Iterator[Problem]:
    """Yield changes of patches while the job runs.

    The new spec must have `suspend: true`. Since 2.2, `suspend: true` in the old spec is enough.
    """
    (now, before), release = comparable_specs(subject), find_trainer_release(subject)
    name = train_job_patches.name_of_patches_field(release)
    if now.get(name, []) == before.get(name, []):
        return
    path = f"spec.{name}"
    if now.get("suspend") is not True and not (release >= PATCHES and before.get("suspend") is True):
        message = f"cannot change because Trainer {release_as_text(release)} refuses changed patches while the job runs"
        fix = "set spec.suspend: true first, wait until the pods of the job are gone, then change the patches"
        yield RUNNING.problem(path, message, fix)
        return
    yield from _check_changes_while_pods_active(subject, path)


def _check_changes_while_pods_active(subject: Subject, path: str) -> Iterator[Problem]:
    """Yield changes while pods of the TrainJob's JobSet are active. If all JobSets of the cluster are known and this
    JobSet does not exist, no pod is active.
    """
    view, name = subject.cluster_view(), subject.typed(TrainJob).name
    if not name:
        return
    job_set = view.find(JobSet, name)
    if not job_set and not view.is_whole(JobSet.gvk):
        yield ACTIVE_PODS.problem(path, missing=view.all_missing_objects())
    counts = job_set.status.replicated_jobs_status
    jobs = ", ".join(f"`{count.name}`" for count in counts if count.active > 0)
    if jobs:
        message = f"cannot change while pods of replicated job {jobs} are active"
        fix = "suspend the job if it still runs, wait until these pods are gone, then change the patches"
        yield ACTIVE_PODS.problem(path, message, fix)


def check_changes_that_job_set_rejects(subject: Subject) -> Iterator[Problem]:
    """Yield changes that Trainer accepts, but that JobSet refuses in an existing JobSet (kubernetes-sigs/jobset#624).

    Trainer updates a JobSet that is suspended, or that belongs to a suspended TrainJob.
    """
    now, before = comparable_specs(subject)
    if True not in (now.get("suspend"), before.get("suspend")) or _is_refused_by_api_server(subject):
        return
    changed = [name for name in _FIELDS_THAT_MAKE_JOB_SET if now.get(name) != before.get(name)]
    if not changed:
        return
    old = _immutable_parts_of_job_set(merge_train_job(subject.subject_of_other_object(subject.old_object)), before)
    new = _immutable_parts_of_job_set(subject.once(merge_train_job), now)
    if old != new:
        fields = _differing_fields_of_pods(Items(old, subject.deadline), new) or "fields"
        message = f"changes {fields} of pods, but JobSet refuses this change of an existing JobSet"
        fix = "create a new TrainJob, or change only nodeSelector, tolerations, schedulingGates, labels and annotations"
        yield JOB_SET_IMMUTABLE.problem(f"spec.{changed[0]}", message, fix)


def _differing_fields_of_pods(old: Items[JSON], new: list[JSON]) -> str:
    """Return the names of at most three fields of pods that differ, as text; "" if another part of the JobSet
    differs.
    """
    pods = ([get(job, _FIXED_POD) or job for job in jobs] for jobs in zip(old, new, strict=False))
    names = sorted({name for one, other in pods for name in (*one, *other) if one.get(name) != other.get(name)})
    return " and ".join(names[:_MOST_NAMES]) if "template" not in names else ""


def _is_refused_by_api_server(subject: Subject) -> bool:
    return any(chain(validate_immutable_fields(subject), validate_immutable_patches(subject)))


def _immutable_parts_of_job_set(job: MergedTrainJob, spec: Mapping[str, JSON]) -> list[JSON]:
    """Return the immutable parts of a JobSet: the replicated jobs without the fields of pods that may change.

    Without the runtime, return the immutable parts of the patches.
    """
    if job.runtime.is_found:
        return [_immutable_part_of_job(replicated) for replicated in job.replicated_jobs]
    layers = train_job_patches.read_patches(TrainJob({"spec": spec}, (), job.object.reading), PATCHES)
    pods = [{**overlay.pod.json, "name": overlay.name} for layer in layers for overlay in layer.overlays]
    return [pod for pod in map(_immutable_fields_of_pod, pods) if len(pod) > 1]


def _immutable_part_of_job(job: ReplicatedJob) -> JSON:
    metadata = job.pod_template.metadata.json
    others = {name: value for name, value in metadata.items() if name not in ("labels", "annotations")}
    spec = {**job.template.spec.json, "template": [others, _immutable_fields_of_pod(job.pod.json)]}
    return {**job.json, "template": {**job.template.json, "spec": spec}}


def _immutable_fields_of_pod(pod: Mapping[str, JSON]) -> JSON:
    return {name: value for name, value in pod.items() if name not in _MUTABLE}
