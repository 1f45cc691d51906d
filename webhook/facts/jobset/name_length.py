"""How long a JobSet's name may be: the names of its jobs, pods and claims, and its coordinator's label, begin with it.

kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go: `<name>-<job>-<replica>`, and where pods are indexed and
counted `<name>-<job>-<replica>-<pod>-abcde`, are DNS labels; `<name>-<job>-<replica>-<pod>.<subdomain>` is a label's
value; pkg/controllers/volume_claim_policy.go: a claim is `<template>-<name>`, of 63 characters too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.facts.jobset.job_set import problem
from webhook.facts.jobset.volume_claims import claim_templates
from webhook.facts.train_job_pods.nodes import replicas
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

MOST: Final = 63
Limit: TypeAlias = tuple[int, str, str]
"""The most characters, what is named after the JobSet (a key of _NAMED), and of which part of it."""
_NAMED: Final = {
    "coordinator": "the label of coordinator `{}` contains the name",
    "claim": "the claim of template `{}` is named after the JobSet",
    "volume": "a volume `…{}` of the flux plugin is named after the JobSet",
    "pod": "the pods of replicated job `{}` are named after the JobSet",
    "job": "the jobs of replicated job `{}` are named after the JobSet",
}


def validate_name(obj: JSON, limits: Iterable[Limit]) -> Iterator[Problem]:
    """The name of an object that a JobSet has, too, by the strictest limit."""
    most, of, name = min(limits)
    metadata, size = obj.get("metadata", {}), length(obj)
    field = "name" if metadata.get("name") is not None else "generateName"
    given = metadata.get(field, "")
    if of and size > most and not is_placeholder(given):
        message = f"is too long because {_NAMED[of].format(name)}, with at most {MOST} characters in all"
        yield problem("name-length", f"metadata.{field}", message, f"use at most {most} characters", given)


def limit(spec: JSON) -> Limit:
    """The most characters, and whose names make it so: `pod` or `job` and a replicated job, `claim` and a template.

    (63, "", "") where nothing is named after the JobSet.
    """
    return min(_limits(spec), key=lambda each: each[0], default=(MOST, "", ""))


def _limits(spec: JSON) -> Iterator[Limit]:
    for job in get(spec, ("replicatedJobs",), []):
        name, highest = get(job, ("name",), ""), replicas(job) - 1
        template = get(job, ("template", "spec"), {})
        pods = template.get("completions")
        if pods is not None and template.get("completionMode") in (None, "Indexed"):
            yield MOST - len(f"-{name}-{highest}-{pods - 1}-abcde"), "pod", name
        else:
            yield MOST - len(f"-{name}-{highest}"), "job", name
    for claim in sorted(claim_templates(spec)):
        yield MOST - len(f"{claim}-"), "claim", claim
    coordinator = get(spec, ("coordinator",))
    if coordinator is not None:
        yield _coordinated(coordinator, get(spec, ("network", "subdomain"), ""))


def _coordinated(coordinator: JSON, subdomain: str) -> Limit:
    """Without a subdomain, the label's value has the name twice."""
    job = coordinator.get("replicatedJob", "")
    indexes = (coordinator.get(field) or 0 for field in ("jobIndex", "podIndex"))
    remaining = MOST - len("-".join(("", job, *map(str, indexes)))) - 1
    return (remaining - len(subdomain) if subdomain else remaining // 2), "coordinator", job


def length(obj: JSON) -> int:
    """Of an object's name, or of the one that generateName will make (k8s.io/apiserver pkg/storage/names)."""
    prefix = get(obj, ("metadata", "generateName"), "")
    return len(get(obj, ("metadata", "name"), "")) or (min(len(prefix), MOST - 5) + 5 if prefix else 0)
