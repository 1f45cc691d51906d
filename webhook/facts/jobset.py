"""What JobSet and the API server will say of a JobSet spec, long after what holds it was accepted.

Each finding is `what` and where, relative to the JobSet spec; what it is worth is for policies to say. Sources:
kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go; k8s.io/kubernetes v1.36 pkg/apis/core/validation; the
reserved volume is kubeflow/trainer#3998.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from webhook.attributes import JSON
from webhook.facts.containers import Container, containers, items, text
from webhook.paths import FieldPath, get, render

POD = ("template", "spec", "template")
TOKEN_VOLUME = "kubeflow-trainer-token"  # noqa: S105 - a volume's name
TOKEN_MOUNT = "/var/run/secrets/kubeflow/trainer"  # noqa: S105 - a path
_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PART = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")  # of `<name>-<job>-0`, so it may begin with a digit
_OWN_VOLUMES = ("initializer", TOKEN_VOLUME)  # of a volumeClaimPolicy or the controller


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that will be refused or overwritten. `text` is the name it is about."""

    what: str
    at: FieldPath
    text: str
    job: str = ""
    container: str = ""

    def note(self, root: FieldPath) -> JSON:
        """As facts show it, below a path."""
        path = render((*root, *self.at))
        return {"what": self.what, "path": path, "text": self.text, "job": self.job, "container": self.container}


def is_placeholder(value: str) -> bool:
    """Whether a text is still to be filled in: `${NAME}`, `{{ .Values.name }}`, `$(NAME)`."""
    return "$" in value or "{{" in value


def findings(spec: JSON) -> Iterator[Finding]:
    """Everything that will be said of a JobSet spec."""
    jobs = items(get(spec, ("replicatedJobs",)))
    names = [text(get(job, ("name",))) for job in jobs]
    shared = {
        text(get(template, ("metadata", "name")))
        for policy in items(get(spec, ("volumeClaimPolicies",)))
        for template in items(get(policy, ("templates",)))
    }
    for index, target in enumerate(items(get(spec, ("successPolicy", "targetReplicatedJobs")))):
        if text(target) not in names and not is_placeholder(text(target)):
            yield Finding("unknownTarget", ("successPolicy", "targetReplicatedJobs", index), text(target))
    for index, job in enumerate(jobs):
        at = ("replicatedJobs", index)
        yield from _job(job, names, at, first=index == 0)
        yield from _pod(get(job, POD) or {}, shared, names[index], (*at, *POD))


def _job(job: JSON, names: list[str], at: FieldPath, *, first: bool) -> Iterator[Finding]:
    name, group = text(get(job, ("name",))), text(get(job, ("groupName",)))
    if name and not _PART.fullmatch(name) and not is_placeholder(name):
        yield Finding("badName", (*at, "name"), name, name)
    if group and not _LABEL.fullmatch(group) and not is_placeholder(group):
        yield Finding("badName", (*at, "groupName"), group, name)
    for index, other in enumerate(items(get(job, ("dependsOn",)))):
        where, wanted = (*at, "dependsOn", index, "name"), text(get(other, ("name",)))
        if first:
            yield Finding("firstDepends", where, wanted, name)
        elif wanted not in names and not is_placeholder(wanted):
            yield Finding("unknownDependency", where, wanted, name)


def _pod(template: JSON, shared: set[str], job: str, at: FieldPath) -> Iterator[Finding]:
    volumes = items(get(template, ("spec", "volumes")))
    claims = items(get(template, ("spec", "resourceClaims")))
    for field, listed in (("volumes", volumes), ("resourceClaims", claims)):
        for index, each in enumerate(listed):
            sources = (
                [key for key, value in each.items() if value not in (None, "") and key != "name"]
                if isinstance(each, dict)
                else []
            )
            if len(sources) > 1:
                what = "twoSources" if field == "volumes" else "twoClaims"
                yield Finding(what, (*at, "spec", field, index), ", ".join(sorted(sources)), job)
    named = {text(get(each, ("name",))) for each in volumes}
    if TOKEN_VOLUME in named:
        yield Finding("reservedVolume", (*at, "spec", "volumes"), TOKEN_VOLUME, job)
    mountable = named | shared | {*_OWN_VOLUMES}
    declared = {text(get(each, ("name",))) for each in claims}
    used: set[str] = set()
    for container in containers(template):
        for index, claim in enumerate(container.claims()):
            name = text(get(claim, ("name",)))
            used.add(name)
            if name not in declared:
                where = (*at, *container.path, "resources", "claims", index, "name")
                yield Finding("danglingClaim", where, name, job, container.name)
        yield from _container(container, mountable, job, at)
    for index, claim in enumerate(claims):
        if (name := text(get(claim, ("name",)))) not in used:
            yield Finding("unusedClaim", (*at, "spec", "resourceClaims", index), name, job)


def _container(container: Container, volumes: set[str], job: str, at: FieldPath) -> Iterator[Finding]:
    if not container.value.get("image"):
        yield Finding("noImage", (*at, *container.path), container.name, job, container.name)
    for index, mount in enumerate(items(container.value.get("volumeMounts"))):
        where = (*at, *container.path, "volumeMounts", index)
        if text(get(mount, ("mountPath",))) == TOKEN_MOUNT:
            yield Finding("reservedVolume", (*where, "mountPath"), TOKEN_MOUNT, job, container.name)
        name = text(get(mount, ("name",)))
        if name not in volumes and not is_placeholder(name):
            yield Finding("unknownVolume", (*where, "name"), name, job, container.name)
