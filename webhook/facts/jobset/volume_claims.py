"""What JobSet's webhook refuses of volumeClaimPolicies, of which it makes PersistentVolumeClaims for all its pods.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go validateVolumeClaimPolicies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webhook.attributes import JSON
from webhook.facts.jobset.job_set import JobSet, problem
from webhook.facts.pods.containers import containers
from webhook.facts.values import names
from webhook.name_faults import subdomain_fault
from webhook.names import dns1123_subdomain
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

_POD = ("template", "spec", "template")


def claim_templates(spec: JSON) -> frozenset[str]:
    """The names of the volumes that volumeClaimPolicies add to pods."""
    return frozenset(
        get(template, ("metadata", "name"), "")
        for policy in get(spec, ("volumeClaimPolicies",), [])
        for template in get(policy, ("templates",), [])
    )


def validate_volume_claim_policies(job_set: JobSet) -> Iterator[Problem]:
    """One name each, mounted somewhere, and no volume of that name in a pod."""
    policies = job_set.spec.get("volumeClaimPolicies", [])
    pods = _Pods.of(job_set) if policies else _Pods({}, set())
    seen: set[str] = set()
    for index, policy in enumerate(job_set.deadline.paced(policies)):
        for place, template in enumerate(job_set.deadline.paced(policy.get("templates", []))):
            at = (*job_set.at, "volumeClaimPolicies", index, "templates", place, "metadata")
            yield from _validate_namespace(template, (*at, "namespace"))
            name = get(template, ("metadata", "name"), "")
            if not is_placeholder(name):
                yield from _validate_name(name, seen, pods, (*at, "name"))
                seen.add(name)


def _validate_namespace(template: JSON, path: FieldPath) -> Iterator[Problem]:
    if get(template, ("metadata", "namespace"), ""):
        message = "must not be set because the claims are created in the namespace of the JobSet"
        yield problem("claim-namespace", path, message, "remove the namespace")


def _validate_name(name: str, seen: set[str], pods: _Pods, path: FieldPath) -> Iterator[Problem]:
    if name in seen:
        message = "is also the name of a template before this one"
        yield problem("claim-template-twice", path, message, "rename one of the two templates", name)
    elif dns1123_subdomain(name):
        message = f"cannot be a part of the names of claims because {subdomain_fault(name)}"
        yield problem(
            "claim-template-name", path, message, "use lower-case letters, digits and dashes in the name", name
        )
    else:
        for job in pods.volumes.get(name, ()):
            message = (
                f"is also the name of a volume in the pods of replicated job `{job}`, but volumes of a pod "
                "need different names"
            )
            yield problem(
                "volume-conflict",
                path,
                message,
                f"rename the template, or rename the volume of replicated job `{job}`",
                name,
            )
        if name not in pods.mounted:
            message = "is not mounted by any container"
            yield problem(
                "unmounted-claim",
                path,
                message,
                f"add `{name}` to volumeMounts of a container, or remove the template",
                name,
            )


@dataclass(slots=True)
class _Pods:
    """Which replicated jobs have a volume of a name, and what their containers mount."""

    volumes: dict[str, list[str]]
    mounted: set[str]

    @classmethod
    def of(cls, job_set: JobSet) -> _Pods:
        """Those of a JobSet."""
        made, paced = cls({}, set()), job_set.deadline.paced
        for job in paced(job_set.jobs):
            template: Mapping[str, JSON] = get(job, _POD) or {}
            for name in dict.fromkeys(paced(names(get(template, ("spec", "volumes"))))):
                made.volumes.setdefault(name, []).append(job.get("name", ""))
            for container in paced(containers(template)):
                made.mounted.update(paced(names(container.value.get("volumeMounts"))))
        return made
