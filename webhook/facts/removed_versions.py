"""The check of objects in a version that no current release serves; removed_versions.yaml lists these versions.

An API server refuses these objects before it calls a webhook, so the webhook is not registered for the policy of this
check. Only audit, replay and test evaluate the policy. A cluster may still run an old release, so the check only warns.
An object is not reported if a CustomResourceDefinition in the same files serves the version. The object is not reported
either if another object in the same files creates a cluster of an older release of Kubernetes. A patch that a
kustomization merges into an object is not reported, because nobody applies the patch alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.names import label_value_errors
from webhook.apimachinery.paths import get
from webhook.apimachinery.releases import Release, parse_release
from webhook.cluster.interest import Interest
from webhook.cluster.known_kinds import RELEASE_FIELDS
from webhook.facts.subject import Check, Subject
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.cluster_objects import CustomResourceDefinition
from webhook.typed.collections import Items
from webhook.typed.pods import PodSpec
from webhook.yamltext import yamlfile

SERVED_VERSION: Final = RuleGroup(
    "served-version",
    refused_by="the API server, which does not know the version",
    source="https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
    level="warn",
    level_in_tests="advice",
    fails="create",
)
"""Objects in an API version that no current release serves."""

REMOVED: Final = SERVED_VERSION.rule(
    "served-version/removed",
    title="The API version was removed from Kubernetes",
    why=(
        "Newer clusters answer `no matches for kind` and create nothing. claimgate does not check the pods of the "
        "object until the version is changed."
    ),
)

FILE: Final = Path(__file__).with_name("removed_versions.yaml")
_KUBERNETES: Final = "Kubernetes "
_HEAD: Final = frozenset(("apiVersion", "kind", "metadata"))
"""The fields of a patch that sets labels or annotations, as in kubebuilder's `webhookcainjection_patch.yaml`."""
_BEFORE_RELEASE: Final = re.compile(r"(?:^|[-_/])(?:pre|before)-v?[0-9]{1,4}\.[0-9]{1,4}(?:$|[-_/.])")
"""Matches a folder or a file for clusters before a release, such as `images-pre-4.6`."""
_CONTROLLER_GEN: Final = "controller-gen.kubebuilder.io/version"
"""The annotation of definitions that controller-gen writes."""
_CHART: Final = "helm.sh/chart"
"""The label with the name and the release of a chart. Older charts have the labels `chart` and `heritage`."""
_DEFINITION: Final = "CustomResourceDefinition"
_PODS: Final = ("spec", "template", "spec")
LOOKUPS_OF_RELEASE: Final = tuple(
    Interest(kind, frozenset((".".join(each for each in path if isinstance(each, str)),)))
    for kind, path in RELEASE_FIELDS.items()
)
"""Objects that create a cluster. Only audits look up these objects."""


class RemovedVersion(Struct, frozen=True):
    """A removed version.

    Args:
        release: a release without the version.
        instead: the version to use instead, with the new kind if the kind changed; "" without a replacement.
        fix: what to do without a replacement.
    """

    release: str
    instead: str
    fix: str = ""


@cache
def read_removed_versions() -> Mapping[tuple[str, str, str], RemovedVersion]:
    """Return the removed versions by group, version and kind. The file is read at the first call."""
    (document,) = yamlfile.read(FILE)
    return {
        (row["group"], version, kind): RemovedVersion(row["removed"], row["instead"], row.get("fix", ""))
        for row in document.value["removed"]
        for version in row["versions"]
        for kind in row["kinds"]
    }


def is_removed(kind: GroupVersionKind) -> bool:
    """Return whether current releases do not serve a version of a kind."""
    return (kind.group, kind.version, kind.kind) in read_removed_versions()


def is_for_old_release(file: str, kind: GroupVersionKind) -> bool:
    """Return whether the name of a file, or of a folder above it, says that the file is for old releases. Examples are
    `extensions-v1beta1-plugin.yml`, `crd-v1beta1.yaml` and the folder `images-pre-4.6`.

    `kustomize build -o` names each file after its object, with underscores. Such names return False.
    """
    name = posixpath.splitext(posixpath.basename(file))[0]
    named = f"-{kind.group.partition('.')[0]}-{kind.version}-"
    is_named = named in f"-{name}-" or name.endswith(f"-{kind.version}")
    return (is_named or _BEFORE_RELEASE.search(file) is not None) and is_removed(kind)


def file_for_new_releases(file: str, kind: GroupVersionKind) -> str:
    """Return the file that new releases take in place of a file in a folder named after a removed version.

    For `crd/v1beta1/jobs.yaml` this is `crd/v1/jobs.yaml`. The result is "" for other folders.
    """
    removed = read_removed_versions().get((kind.group, kind.version, kind.kind))
    folder, name = posixpath.split(file)
    above, version = posixpath.split(folder)
    if removed is None or version != kind.version or not removed.instead:
        return ""
    return posixpath.join(above, posixpath.basename(removed.instead.partition(" ")[0]), name)


def replacements_in_kubernetes() -> Sequence[str]:
    """Return the API versions and kinds that replace removed ones of Kubernetes, as helm writes capabilities.

    Examples are `policy/v1` and `policy/v1/PodDisruptionBudget`.
    """
    kinds = {
        f"{version}/{other or kind}"
        for (_, _, kind), removed in read_removed_versions().items()
        for version, _, other in (removed.instead.partition(" "),)
        if version and removed.release.startswith(_KUBERNETES)
    }
    return sorted(kinds | {each.rpartition("/")[0] for each in kinds})


def check_version_is_still_served(subject: Subject) -> Iterator[Problem]:
    """Report an object of a removed version."""
    kind = subject.attributes.kind
    known = read_removed_versions().get((kind.group, kind.version, kind.kind))
    if known is not None and not (
        _is_patch(subject)
        or _is_served_by_given_definition(subject)
        or _is_release_of_files_older(subject, known.release)
    ):
        what = f"is a version of {kind.kind} that {known.release} and later do not serve"
        message = f"{what}, so the API server refuses the object"
        if known.instead:
            version, _, other = known.instead.partition(" ")
            fix = f"write {version}" + (f" and kind {other}" if other else "") + ", with the fields of this version"
            fix = _fix_of_generated_object(subject, fix)
        else:
            message, fix = f"{message}; nothing replaces this kind", known.fix
        problem = REMOVED.problem("apiVersion", message, fix, kind.api_version)
        yield structs.replace(problem, release=known.release)


def _fix_of_generated_object(subject: Subject, fix: str) -> str:
    """Return the fix for an object that controller-gen or a chart may have made; otherwise `fix`.

    Source: kubernetes-sigs/controller-tools v0.7.0, which no longer writes v1beta1; helm v3 docs, labels of charts.
    """
    labels = subject.metadata.labels
    chart = labels.get(_CHART, labels.get("chart", "") if "heritage" in labels else "")
    if _CONTROLLER_GEN in subject.metadata.annotations:
        again = "generate the file again with controller-gen 0.7 or later"
        return f"{again}; if the file is a copy, take a newer release of its project"
    is_label = bool(chart) and not label_value_errors(chart)  # no placeholder, and short enough for a message
    return f"{fix}, or take a newer release of chart `{chart}`" if is_label else fix


def _is_patch(subject: Subject) -> bool:
    """Return whether an object only sets labels or annotations, lacks the group of a CustomResourceDefinition, or has a
    container without an image. No API server accepts such a definition or container.
    """
    obj = subject.object
    if obj.keys() <= _HEAD and subject.metadata.json.keys() & {"labels", "annotations"}:
        return True
    if subject.attributes.kind.kind == _DEFINITION:
        return get(obj, ("spec", "group")) is None
    pods = PodSpec.of(get(obj, _PODS), _PODS, subject.reading_context)
    return any(container.is_part for container in pods.containers)


def _is_served_by_given_definition(subject: Subject) -> bool:
    """Return whether a CustomResourceDefinition in the same files serves the version of the object."""
    kind = subject.attributes.kind
    definitions = subject.cluster_view().list_typed(CustomResourceDefinition)
    return any(each.serves(kind.group, kind.version, kind.kind) for each in definitions)


def _is_release_of_files_older(subject: Subject, removed: str) -> bool:
    """Return whether an object in the same files creates a cluster with a release of Kubernetes before `removed`."""
    without = parse_release(removed.removeprefix(_KUBERNETES)) if removed.startswith(_KUBERNETES) else None
    return without is not None and any(release < without for release in releases_of_files(subject))


def releases_of_files(subject: Subject) -> Iterator[Release]:
    """Yield the releases of Kubernetes of the clusters that objects in the same files create."""
    view = subject.cluster_view().copy_without_missing_objects()
    for kind, path in RELEASE_FIELDS.items():
        others = view.cluster.objects_in_other_files(kind)
        for obj in Items((*view.list_json(kind), *others), subject.deadline):
            written = str(get(obj, path))
            release = parse_release(parse_image_name(written).tag if path[-1] == "image" else written)
            if release is not None:
                yield release


CHECKS: Final = (
    Check(
        group="served-version",
        run=check_version_is_still_served,
        lookups_of_audits=LOOKUPS_OF_RELEASE,
    ),
)
