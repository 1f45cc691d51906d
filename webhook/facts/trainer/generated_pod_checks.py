"""Checks the pods that a TrainJob gets from its runtime by the API server's rules: claims, volumes and images.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation. The pods stand nowhere in the TrainJob: a problem of the
pods of the runtime itself is told where the TrainJob names the runtime, another where it has its patches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from webhook.facts.jobset.volume_claims import claim_template_names
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import merge_train_job
from webhook.facts.trainer.generated_pods import GeneratedPods, source_fields_of, sources_by_name
from webhook.facts.trainer.train_job_claims import (
    UNUSED_CLAIM,
    advise_unused_claims,
    check_claims_are_declared,
    claim_source_problem,
)
from webhook.facts.trainer.train_job_images import check_image_is_set
from webhook.facts.trainer.train_job_volumes import validate_mounts, validate_volume_sources
from webhook.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec


def validate_pods(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the pods of all replicated jobs: rejected fields, and wasted devices."""
    job = subject.once(merge_train_job)
    problems = list(_problems_of_pods(job.job_set, subject))
    if problems:
        of_runtime = set(_problems_of_pods(job.runtime.spec.template.spec, subject))
        for refusal in Items(problems, subject.deadline):
            is_own = refusal in of_runtime
            is_unused = refusal.code == UNUSED_CLAIM.id
            fix = f"in the runtime, {refusal.fix}" if is_own and is_unused else refusal.fix
            yield replace(refusal, path=job.path_for_runtime_problem(is_own=is_own), fix=fix)


def _problems_of_pods(job_set: JobSetSpec, subject: Subject) -> Iterator[Problem]:
    job, shared = subject.once(merge_train_job), claim_template_names(job_set)
    before = {replicated.name: replicated for replicated in job.runtime.replicated_jobs}
    for replicated in job_set.replicated_jobs:
        if (replicated.name, "") not in job.merged.unknown:
            pods = GeneratedPods(replicated, before.get(replicated.name), job)
            yield from _validate_sources(pods)
            yield from _validate_containers(pods, shared)
            yield from advise_unused_claims(pods, subject)


def _validate_sources(pods: GeneratedPods) -> Iterator[Problem]:
    """Yield volumes and claims with more than one source, and claims without any."""
    yield from validate_volume_sources(pods)
    wrong = [claim for claim in pods.spec.resource_claims if len(source_fields_of(claim)) != 1]
    before = sources_by_name(pods.before.pod.resource_claims) if wrong and pods.before is not None else {}
    for claim in wrong:
        yield claim_source_problem(claim, before, pods)


def _validate_containers(pods: GeneratedPods, shared: Collection[str]) -> Iterator[Problem]:
    mountable = {volume.name for volume in pods.spec.volumes}.union(shared)
    declared = {claim.name for claim in pods.spec.resource_claims}
    for container in pods.spec.all_containers():
        yield from check_claims_are_declared(container, declared, pods)
        if (pods.replicated.name, container.name) not in pods.job.merged.unknown:
            yield from check_image_is_set(container, pods)
            yield from validate_mounts(container, mountable, pods)
