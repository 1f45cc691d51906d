"""Finds the object that a user names as `KIND/NAME`, as kubectl does: kinds, resources, short names and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.errors import ConfigurationError
from webhook.status import owned_objects
from webhook.status.sources import ClusterReading
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean, named
from webhook.workloads.plurals import plural_of_kind
from webhook.workloads.table import Table

_SHORT_NAMES: Final[Mapping[str, str]] = {
    "po": "pod",
    "deploy": "deployment",
    "rs": "replicaset",
    "rc": "replicationcontroller",
    "sts": "statefulset",
    "ds": "daemonset",
    "cj": "cronjob",
    "lws": "leaderworkerset",
    "vcjob": "job.batch.volcano.sh",
    "vj": "job.batch.volcano.sh",
    "isvc": "inferenceservice",
    "wl": "workload",
    "pg": "podgroup",
    "pvc": "persistentvolumeclaim",
    "nb": "notebook",
}
"""Short names that the CustomResourceDefinitions of these kinds, or Kubernetes, declare."""
_OTHERS: Final = (
    owned_objects.WORKLOAD,
    owned_objects.VOLCANO_GROUP,
    owned_objects.PLUGIN_GROUP,
    owned_objects.KAI_GROUP,
    owned_objects.RESOURCE_CLAIM,
    GroupVersionKind("", "v1", "PersistentVolumeClaim"),
)
"""Kinds that hold no pods and say why others wait."""
_ENDS_OF_FILES: Final = (".yaml", ".yml", ".json")


def split_object_name(text: str) -> tuple[str, str]:
    """Return the kind and the name of `KIND/NAME`.

    Raises:
        ConfigurationError: the text is not such a name.
    """
    kind, slash, name = text.partition("/")
    if text.endswith(_ENDS_OF_FILES):
        raise ConfigurationError(
            f"why: `{text}` is a file, and not an object of the cluster: `claimgate simulate FILE` says whether the "
            "job of a file can start"
        )
    if not slash or not name or "/" in name or not kind:
        raise ConfigurationError(f"why: `{text}` does not name an object: write KIND/NAME, such as job/train")
    return kind, name


def find_named_object(text: str, namespace: str, reading: ClusterReading, table: Table) -> JSON:
    """Return the object that a user names.

    Args:
        text: `KIND/NAME`, the kind with or without its group.
        namespace: the namespace of the object.
        reading: reads the cluster.
        table: the kinds that hold pods.

    Raises:
        ConfigurationError: the text is not such a name, or the object does not exist.
    """
    kind_text, name = split_object_name(text)
    kinds = list(_kinds_of_text(kind_text.lower(), table))
    if not kinds:
        known = nearest_name(kind_text.lower(), {each.kind.lower() for each in _known_kinds(table)}) or ""
        fix = did_you_mean(known, "name a kind that makes pods, or what Kueue and schedulers make for it")
        raise ConfigurationError(f"why: kind `{kind_text}` is not known: {fix}")
    for kind in kinds:
        obj = reading.get(kind, namespace, name)
        if isinstance(obj, dict):
            return obj
    if reading.missing:
        raise ConfigurationError("\n".join(f"why: {each}" for each in reading.missing))
    tried = named([f"{plural_of_kind(each.kind)}.{each.group}".rstrip(".") for each in kinds], "resource")
    raise ConfigurationError(f"why: {name} does not exist in namespace {namespace} ({tried}): name another with -n")


def _kinds_of_text(text: str, table: Table) -> Iterator[GroupVersionKind]:
    """Yield the kinds that a text may mean, kinds of Kubernetes first, as in kubectl."""
    text = _SHORT_NAMES.get(text, text)
    name, _, group = text.partition(".")
    meant = [each for each in _known_kinds(table) if name in (each.kind.lower(), plural_of_kind(each.kind))]
    of_group = [each for each in meant if not group or each.group == group or each.group.startswith(f"{group}.")]
    yield from sorted(of_group, key=lambda each: "." in each.group)


def _known_kinds(table: Table) -> Iterator[GroupVersionKind]:
    for row in table.rows:
        yield GroupVersionKind(row.group, row.versions[0], row.kind)
    yield from _OTHERS
