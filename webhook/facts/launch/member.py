"""The containers of an object that start training processes, with the GPUs and pods that they do it on.

One for each container that stays, of each pod set. A TrainJob's are those of its trainer, merged with the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhook.deadline import Deadline
from webhook.facts.command_lines.command import Launch, launch, launched
from webhook.facts.dra.pod_claims import PodClaim, pod_claims
from webhook.facts.dra.selected_requests import selected
from webhook.facts.gpu.resources import devices_of
from webhook.facts.pods.containers import Container, containers, variables
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text, whole
from webhook.paths import FieldPath, get
from webhook.workloads.podsets import PodSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One container of the pods of one pod set.

    Args:
        pod_set: its name.
        path: where the container stands.
        launch: what its command starts.
        env: its variables by name; None for one whose value comes from elsewhere.
        has_other_env: whether it has variables that are not listed.
        gpus: GPUs that it gets; None where its claims do not say how many.
        has_claims: whether it gets devices by claims.
        pods: how many of the pods train together, at least; None where nobody knows.
    """

    pod_set: str
    path: FieldPath
    launch: Launch
    env: Mapping[str, str | None] = field(default_factory=dict)
    has_other_env: bool = False
    gpus: int | None = None
    has_claims: bool = False
    pods: int | None


_RAY_JOB: Final = ("ray.io", "RayJob")
_ENTRYPOINT_ASKS: Final = ("entrypointNumCpus", "entrypointNumGpus", "entrypointResources")
_NAMES: Final = re.compile(r"torch|accelerate|deepspeed|\bds\b|[$`]")
"""What a command has to say for a launcher of processes to be in it: the name of one, or something to be filled in."""


def mentions_launcher(subject: Subject) -> bool:
    """Whether a command of an object may run torchrun, accelerate or deepspeed: most pods say nothing of them."""
    if _NAMES.search(_entrypoint(subject)):
        return True
    for podset in subject.deadline.paced(subject.once(pod_sets).all):
        for container in subject.deadline.paced(containers(podset.template)):
            for side in ("command", "args"):
                words = subject.deadline.each(items(container.value.get(side)))
                if any(isinstance(word, str) and _NAMES.search(word) for word in words):
                    return True
    return False


def members(subject: Subject) -> Sequence[Member]:
    """The containers of an object whose pods it makes itself, to be asked for with `Subject.once`."""
    sets = subject.once(pod_sets).all
    listed = tuple(_members(sets, subject))
    return (*listed, _driver(listed, subject)) if _entrypoint(subject) else listed


def _entrypoint(subject: Subject) -> str:
    """The command that a RayJob runs, "" for other objects."""
    return text(get(subject.object, ("spec", "entrypoint"))) if subject.group_kind == _RAY_JOB else ""


def _driver(listed: Sequence[Member], subject: Subject) -> Member:
    """The entrypoint of a RayJob, which a shell runs once: on the head, unless it asks for resources of its own.

    ray-project/ray@007c8cdf python/ray/dashboard/modules/job/job_manager.py submit_job: on the head it may use all
    GPUs, elsewhere those that it asks for.
    """
    head = next((each for each in listed if each.pod_set == "head"), None)
    gpus = head.gpus if head is not None else None
    if any(get(subject.object, ("spec", name)) is not None for name in _ENTRYPOINT_ASKS):
        gpus = whole(get(subject.object, ("spec", "entrypointNumGpus")))
    started = launch({"command": ["sh", "-c", _entrypoint(subject)]}, subject.deadline)
    env = head.env if head is not None else {}
    return Member(
        pod_set="", path=("spec", "entrypoint"), launch=started, env=env, has_other_env=True, gpus=gpus, pods=1
    )


def _members(sets: Sequence[PodSet], subject: Subject) -> Iterator[Member]:
    claims: Mapping[tuple[str, str], PodClaim] | None = None
    for podset in subject.deadline.paced(sets):
        for container in containers(podset.template, subject.deadline.each):
            if container.init:
                continue
            named = container.claims()
            if named and claims is None:
                claims = {(claim.pod_set, claim.name): claim for claim in subject.once(pod_claims).claims}
            yield Member(
                pod_set=podset.name,
                path=podset.locate(container.path),
                launch=launched(container.value, subject),
                env=variables(container.value, subject),
                has_other_env=bool(container.value.get("envFrom")),
                gpus=_gpus(container, podset, claims or {}, subject.deadline),
                has_claims=bool(named),
                pods=_together(podset, subject),
            )


def _gpus(
    container: Container, podset: PodSet, claims: Mapping[tuple[str, str], PodClaim], deadline: Deadline
) -> int | None:
    """Extended resources, and devices of claims; None where those of a claim are not known."""
    wanted: dict[str, set[str]] = {}
    for entry in map(mapping, container.claims()):
        wanted.setdefault(text(entry.get("name")), set()).add(text(entry.get("request")))
    count = devices_of(container.value.get("resources"), deadline)
    for name, requests in wanted.items():
        claim = claims.get((podset.name, name))
        taken = selected(claim.contents, requests) if claim is not None and claim.is_found else None
        if taken is None or taken.devices is None:
            return None
        count += taken.devices if taken.is_gpu else 0
    return count


def _together(podset: PodSet, subject: Subject) -> int | None:
    """Pods of one group; of a JobSet those of one replica, which may be a training of its own."""
    if podset.count is None or subject.group_kind != ("jobset.x-k8s.io", "JobSet"):
        return podset.count
    replicas = whole(get(subject.object, (*podset.path[:3], "replicas")))
    return podset.count // replicas if replicas else podset.count
