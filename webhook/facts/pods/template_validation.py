"""What the API server will say of a pod made from a template: its claims, volumes and images.

Sources: k8s.io/kubernetes v1.36 pkg/apis/core/validation; the reserved volume is kubeflow/trainer#3998.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.finding import Finding
from webhook.facts.pods.containers import Container, containers, items, text
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder

TOKEN_VOLUME: Final = "kubeflow-trainer-token"  # noqa: S105 - a volume's name
TOKEN_MOUNT: Final = "/var/run/secrets/kubeflow/trainer"  # noqa: S105 - a path
_OWN_VOLUMES: Final = ("initializer", TOKEN_VOLUME)  # of a volumeClaimPolicy or the controller


def findings(
    template: JSON, shared: AbstractSet[str], job: str, at: FieldPath, deadline: Deadline
) -> Iterator[Finding]:
    """Everything that will be said of the pods of a replicated job; `shared` are volumes that JobSet adds."""
    volumes = items(get(template, ("spec", "volumes")))
    claims = items(get(template, ("spec", "resourceClaims")))
    yield from _sources(deadline.paced(volumes), "twoSources", job, (*at, "spec", "volumes"))
    yield from _sources(deadline.paced(claims), "twoClaims", job, (*at, "spec", "resourceClaims"))
    named = {text(get(each, ("name",))) for each in volumes}
    if TOKEN_VOLUME in named:
        yield Finding("reservedVolume", (*at, "spec", "volumes"), TOKEN_VOLUME, job)
    mountable = (named, shared, _OWN_VOLUMES)
    declared = {text(get(each, ("name",))) for each in claims}
    used: set[str] = set()
    for container in deadline.paced(containers(template)):
        for index, claim in enumerate(deadline.paced(container.claims())):
            name = text(get(claim, ("name",)))
            used.add(name)
            if name not in declared and not is_placeholder(name):
                where = (*at, *container.path, "resources", "claims", index, "name")
                yield Finding("danglingClaim", where, name, job, container.name, by="pod")
        yield from _container(container, mountable, job, at, deadline)
    for index, claim in enumerate(deadline.paced(claims)):
        if (name := text(get(claim, ("name",)))) not in used:
            yield Finding("unusedClaim", (*at, "spec", "resourceClaims", index), name, job)


def _sources(listed: Iterable[JSON], what: str, job: str, at: FieldPath) -> Iterator[Finding]:
    """Volumes or claims with more than one source."""
    for index, each in enumerate(listed):
        fields = each.items() if isinstance(each, dict) else ()
        sources = [key for key, value in fields if value not in (None, "") and key != "name"]
        if len(sources) > 1:
            yield Finding(what, (*at, index), ", ".join(sorted(sources)), job, by="pod")


def _container(
    container: Container, volumes: Sequence[Collection[str]], job: str, at: FieldPath, deadline: Deadline
) -> Iterator[Finding]:
    if not container.value.get("image"):
        yield Finding("noImage", (*at, *container.path), container.name, job, container.name, by="pod")
    for index, mount in enumerate(deadline.paced(items(container.value.get("volumeMounts")))):
        where = (*at, *container.path, "volumeMounts", index)
        if text(get(mount, ("mountPath",))) == TOKEN_MOUNT:
            yield Finding("reservedVolume", (*where, "mountPath"), TOKEN_MOUNT, job, container.name)
        name = text(get(mount, ("name",)))
        if not any(name in each for each in volumes) and not is_placeholder(name):
            yield Finding("unknownVolume", (*where, "name"), name, job, container.name, by="pod")
