"""What the API server refuses of the pods that a TrainJob gets from its runtime: claims, volumes and images.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation. The pods stand nowhere in the TrainJob: a problem of the
runtime's own pods is told where the TrainJob names it, another where it has its patches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.dra.claim_use import idle, may_stay_idle
from webhook.facts.dra.pod_claims import PodClaim, pod_claims
from webhook.facts.jobset.volume_claims import claim_templates
from webhook.facts.pods.containers import Container, containers
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.nodes import name_of
from webhook.facts.train_job_pods.runtime_reference import Runtime
from webhook.facts.train_job_pods.train_job import TrainJob, train_job
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("train-job").problem
_POD: Final = ("template", "spec", "template")
_STATUS: Final = "kubeflow-trainer-token"
"""The volume by which pods report the status of the job."""


def validate_pods(subject: Subject) -> Iterator[Problem]:
    """Everything that is refused, or wasted, of the pods of all replicated jobs."""
    job = subject.once(train_job)
    problems = list(_problems(job.merged.spec, subject))
    if problems:
        own = set(_problems(get(job.runtime.spec, ("template", "spec")) or {}, subject))
        for each in job.deadline.paced(problems):
            is_own = each in own
            fix = f"in the runtime, {each.fix}" if is_own and each.code == "train-job/unused-claim" else each.fix
            yield replace(each, path=job.origin(is_own=is_own), fix=fix)


def _found(rule: str, message: str, fix: str) -> Problem:
    """What is wrong with a pod, wherever the pod stands."""
    return problem(rule, "", message, fix)


def _problems(spec: JSON, subject: Subject) -> Iterator[Problem]:
    job, shared = subject.once(train_job), claim_templates(spec)
    jobs = job.deadline.paced(get(job.runtime.spec, ("template", "spec", "replicatedJobs")) or [])
    before = {name_of(each): get(each, _POD) or {} for each in jobs}
    for each in job.deadline.paced(get(spec, ("replicatedJobs",), [])):
        name = name_of(each)
        if (name, "") in job.merged.unknown:
            continue
        pod = _Pod(get(each, _POD) or {}, name, job.runtime, job.deadline, before.get(name, {}))
        yield from pod.problems(shared, job)
        yield from pod.unused_claims(subject)


@dataclass(frozen=True, slots=True)
class _Pod:
    """The pod template of a replicated job, and `before` the patches."""

    template: JSON
    job: str
    runtime: Runtime
    deadline: Deadline
    before: JSON

    @property
    def where(self) -> str:
        return f"replicated job `{self.job}` of {self.runtime}"

    def problems(self, shared: Collection[str], job: TrainJob) -> Iterator[Problem]:
        volumes = get(self.template, ("spec", "volumes"), [])
        claims = get(self.template, ("spec", "resourceClaims"), [])
        yield from self._sources(volumes, "volume", "volumes")
        yield from self._sources(claims, "claim", "resourceClaims")
        mountable = {name_of(each) for each in volumes}.union(shared)
        declared = {name_of(each) for each in claims}
        for container in self.deadline.paced(containers(self.template)):
            yield from self._claims(container, [name_of(claim) for claim in container.claims()], declared)
            if (self.job, container.name) not in job.merged.unknown:
                yield from self._container(container, mountable)

    def _sources(self, listed: list[JSON], what: str, field: str) -> Iterator[Problem]:
        """Volumes or claims with more than one source."""
        own: Mapping[str, list[str]] | None = None
        for each in self.deadline.each(listed):
            sources = _sources_of(each)
            if not sources and what == "claim":
                message = f"claim `{name_of(each)}` of {self.where} has no source"
                yield _found("claim-source", message, "set resourceClaimName or resourceClaimTemplateName")
            if len(sources) > 1:
                if own is None:
                    before = get(self.before, ("spec", field)) or []
                    own = {name_of(one): _sources_of(one) for one in self.deadline.paced(before)}
                message = (
                    f"merged with {self.where}, {what} `{name_of(each)}` has both {' and '.join(sources)}, but must "
                    "have only one of them"
                )
                first = own.get(name_of(each), [])
                keep = f"set only {first[0]}, as the runtime does" if len(first) == 1 else "set only one of them"
                yield _found(f"{what}-source", message, f"{keep}, or give the {what} another name")

    def _claims(self, container: Container, names: list[str], declared: Collection[str]) -> Iterator[Problem]:
        for name in self.deadline.each(names):
            if name not in declared and not is_placeholder(name):
                refers = f"container `{container.name}` of {self.where} refers to claim `{name}`"
                fix = "declare the claim in resourceClaims, or correct the name"
                yield _found("claim-declared", f"{refers}, which the pod does not declare", fix)

    def _container(self, container: Container, volumes: Collection[str]) -> Iterator[Problem]:
        if not container.value.get("image"):
            fix = "set spec.trainer.image" if container.name == "node" else "set the image in the runtime"
            yield _found("image-required", f"container `{container.name}` of {self.where} has no image", fix)
        for mount in self.deadline.each(container.value.get("volumeMounts", [])):
            name = mount.get("name", "")
            mounts = f"container `{container.name}` of {self.where} mounts volume `{name}`, which"
            if name == _STATUS and name not in volumes:
                message = f"{mounts} only pods of the trainer step have, and only with the feature TrainJobStatus"
                yield _found("status-volume", message, "remove the mount in the runtime")
            elif name not in volumes and not is_placeholder(name):
                fix = f"add a volume `{name}` to the pod, in the runtime or a patch, or correct the name in the mount"
                yield _found("volume-exists", f"{mounts} the pod does not have", fix)

    def unused_claims(self, subject: Subject) -> Iterator[Problem]:
        """Claims of devices that the pods of a node do not share, and that no container refers to."""
        claims = get(self.template, ("spec", "resourceClaims"), [])
        if not claims:
            return
        used = {name_of(claim) for each in containers(self.template) for claim in each.claims()}
        kept = subject.once(_kept_claims)
        for name in sorted({name_of(each) for each in self.deadline.each(claims)} - used):
            if (claim := kept.get((self.job, name))) is not None:
                message = f"no container of {self.where} uses claim `{name}`{idle(claim)}"
                yield _found(
                    "unused-claim", message, "name the claim in resources.claims of a container, or remove the claim"
                )


def _sources_of(named: JSON) -> list[str]:
    """The fields of a volume or a claim that say where it comes from."""
    return sorted(key for key, value in named.items() if value not in (None, "") and key != "name")


def _kept_claims(subject: Subject) -> Mapping[tuple[str, str], PodClaim]:
    """Claims that would be allocated for nobody, by their replicated jobs and names."""
    lost = set(subject.once(train_job).merged.lost_claims)
    return {
        (claim.pod_set, claim.name): claim
        for claim in subject.once(pod_claims).claims
        if claim.name not in lost and may_stay_idle(claim)
    }
