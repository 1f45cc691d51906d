"""What the API server refuses of the pods that a TrainJob gets from its runtime: claims, volumes and images.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation. The pods stand nowhere in the TrainJob: a problem of the
runtime's own pods is told where the TrainJob names it, another where it has its patches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook.facts.dra.device_claims import idle, may_stay_idle
from webhook.facts.dra.pod_claims import PodClaim as ResolvedClaim
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.jobset.volume_claims import claim_templates
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.typed.pods import Container, PodClaim, PodSpec
from webhook.typed.volumes import Volume

CLAIM_DECLARED: Final = TRAIN_JOB.rule(
    "train-job/claim-declared",
    title="Containers refer to claims that the merged pod declares.",
    why="The API server refuses the pods otherwise.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/4027",),
)
CLAIM_SOURCE: Final = TRAIN_JOB.rule(
    "train-job/claim-source",
    title="A claim of the merged pod has one source.",
    why=(
        "A patch that gives a claim of the runtime another source adds it to the first, and the API server refuses "
        "the pods."
    ),
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/4027",),
)
VOLUME_SOURCE: Final = TRAIN_JOB.rule(
    "train-job/volume-source",
    title="A volume of the merged pod has one source.",
    why=(
        "A patch that gives a volume of the runtime another source adds it to the first, and the API server refuses "
        "the pods."
    ),
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
VOLUME_EXISTS: Final = TRAIN_JOB.rule(
    "train-job/volume-exists",
    title="Containers mount volumes that the merged pod has.",
    why="The API server refuses the pods otherwise.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
IMAGE_REQUIRED: Final = TRAIN_JOB.rule(
    "train-job/image-required",
    title="Containers of the merged pod have an image.",
    why="The API server refuses the pods otherwise.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
STATUS_VOLUME: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/status-volume",
    title="No container of another step mounts the volume by which pods report their status.",
    why="Trainer adds it only to the pods of the trainer, and only with its alpha feature TrainJobStatus.",
    refused_by="the API server, when the pods are created",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/trainjobstatus/trainjobstatus.go",
    fails="controller",
)
UNUSED_CLAIM: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/unused-claim",
    title="A container uses each claim of the pod.",
    why="The devices of a claim are allocated for the pod, and stay idle where no container refers to it.",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)

_STATUS: Final = "kubeflow-trainer-token"
"""The volume by which pods report the status of the job."""


def validate_pods(subject: Subject) -> Iterator[Problem]:
    """Everything that is refused, or wasted, of the pods of all replicated jobs."""
    job = subject.once(merge_train_job)
    problems = list(_problems(job.job_set, subject))
    if problems:
        of_runtime = set(_problems(job.runtime.spec.template.spec, subject))
        for refusal in Items(problems, subject.deadline):
            is_own = refusal in of_runtime
            is_unused = refusal.code == UNUSED_CLAIM.id
            fix = f"in the runtime, {refusal.fix}" if is_own and is_unused else refusal.fix
            yield replace(refusal, path=job.origin(is_own=is_own), fix=fix)


def _problems(job_set: JobSetSpec, subject: Subject) -> Iterator[Problem]:
    job, shared = subject.once(merge_train_job), claim_templates(job_set)
    before = {replicated.name: replicated for replicated in job.runtime.jobs}
    for replicated in job_set.replicated_jobs:
        if (replicated.name, "") not in job.merged.unknown:
            pods = _Pods(replicated, before.get(replicated.name), job)
            yield from _validate_sources(pods)
            yield from _validate_containers(pods, shared)
            yield from _unused_claims(pods, subject)


@dataclass(frozen=True, slots=True)
class _Pods:
    """The pods of a replicated job, and `before` the patches."""

    replicated: ReplicatedJob
    before: ReplicatedJob | None
    job: MergedTrainJob

    @property
    def spec(self) -> PodSpec:
        return self.replicated.pod

    def __str__(self) -> str:
        return f"replicated job `{self.replicated.name}` of {self.job.runtime}"


def _validate_sources(pods: _Pods) -> Iterator[Problem]:
    """Volumes and claims with more than one source, and claims without any."""
    yield from _volume_source(pods)
    wrong = [claim for claim in pods.spec.resource_claims if len(_sources(claim)) != 1]
    before = _sources_by_name(pods.before.pod.resource_claims) if wrong and pods.before is not None else {}
    for claim in wrong:
        yield _claim_source(claim, before, pods)


def _volume_source(pods: _Pods) -> Iterator[Problem]:
    wrong = [volume for volume in pods.spec.volumes if len(_sources(volume)) > 1]
    before = _sources_by_name(pods.before.pod.volumes) if wrong and pods.before is not None else {}
    for volume in wrong:
        yield VOLUME_SOURCE.problem("", *_several_sources(volume, "volume", before, pods))


def _claim_source(claim: PodClaim, before: Mapping[str, list[str]], pods: _Pods) -> Problem:
    message = f"claim `{claim.name}` of {pods} has no source"
    fix = "set resourceClaimName or resourceClaimTemplateName"
    if _sources(claim):
        message, fix = _several_sources(claim, "claim", before, pods)
    return CLAIM_SOURCE.problem("", message, fix)


def _several_sources(
    named: Volume | PodClaim, what: str, before: Mapping[str, list[str]], pods: _Pods
) -> tuple[str, str]:
    """What is said of a volume or claim with several sources, and what to do about it."""
    sources = " and ".join(_sources(named))
    first = before.get(named.name, [])
    keep = f"set only {first[0]}, as the runtime does" if len(first) == 1 else "set only one of them"
    message = f"merged with {pods}, {what} `{named.name}` has both {sources}, but must have only one of them"
    return message, f"{keep}, or give the {what} another name"


def _sources_by_name(listed: Items[Volume] | Items[PodClaim]) -> Mapping[str, list[str]]:
    return {named.name: _sources(named) for named in listed}


def _sources(named: Volume | PodClaim) -> list[str]:
    """The fields of a volume or a claim that say where it comes from."""
    return sorted(key for key, value in named.json.items() if value not in (None, "") and key != "name")


def _validate_containers(pods: _Pods, shared: Collection[str]) -> Iterator[Problem]:
    mountable = {volume.name for volume in pods.spec.volumes}.union(shared)
    declared = {claim.name for claim in pods.spec.resource_claims}
    for container in pods.spec.all_containers():
        yield from _claim_declared(container, declared, pods)
        if (pods.replicated.name, container.name) not in pods.job.merged.unknown:
            yield from _image_required(container, pods)
            yield from _validate_mounts(container, mountable, pods)


def _claim_declared(container: Container, declared: Collection[str], pods: _Pods) -> Iterator[Problem]:
    for claim in container.resources.claims:
        if claim.name not in declared and not is_placeholder(claim.name):
            refers = f"container `{container.name}` of {pods} refers to claim `{claim.name}`"
            fix = "declare the claim in resourceClaims, or correct the name"
            yield CLAIM_DECLARED.problem("", f"{refers}, which the pod does not declare", fix)


def _image_required(container: Container, pods: _Pods) -> Iterator[Problem]:
    if not container.image:
        fix = "set spec.trainer.image" if container.name == "node" else "set the image in the runtime"
        yield IMAGE_REQUIRED.problem("", f"container `{container.name}` of {pods} has no image", fix)


def _validate_mounts(container: Container, volumes: Collection[str], pods: _Pods) -> Iterator[Problem]:
    for mount in container.volume_mounts:
        name = mount.name
        mounts = f"container `{container.name}` of {pods} mounts volume `{name}`, which"
        if name == _STATUS and name not in volumes:
            message = f"{mounts} only pods of the trainer step have, and only with the feature TrainJobStatus"
            yield STATUS_VOLUME.problem("", message, "remove the mount in the runtime")
        elif name not in volumes and not is_placeholder(name):
            fix = f"add a volume `{name}` to the pod, in the runtime or a patch, or correct the name in the mount"
            yield VOLUME_EXISTS.problem("", f"{mounts} the pod does not have", fix)


def _unused_claims(pods: _Pods, subject: Subject) -> Iterator[Problem]:
    """Claims of devices that the pods of a node do not share, and that no container refers to."""
    if not pods.spec.resource_claims:
        return
    used = {claim.name for container in pods.spec.all_containers() for claim in container.resources.claims}
    kept = subject.once(_kept_claims)
    for name in sorted({claim.name for claim in pods.spec.resource_claims} - used):
        if (claim := kept.get((pods.replicated.name, name))) is not None:
            message = f"no container of {pods} uses claim `{name}`{idle(claim)}"
            fix = "name the claim in resources.claims of a container, or remove the claim"
            yield UNUSED_CLAIM.problem("", message, fix)


def _kept_claims(subject: Subject) -> Mapping[tuple[str, str], ResolvedClaim]:
    """Claims that would be allocated for nobody, by their replicated jobs and names."""
    lost = set(subject.once(merge_train_job).merged.lost_claims)
    return {
        (claim.pod_set, claim.name): claim
        for claim in subject.once(pod_claims).claims
        if claim.name not in lost and may_stay_idle(claim)
    }
