"""What an audit makes of the files that it reads: the objects of a cluster, and each object as a user submits it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook import documents
from webhook.admission import fixtures
from webhook.attributes import JSON, POD, Attributes, GroupVersionKind
from webhook.cluster import Cluster
from webhook.cluster.files import identity
from webhook.cluster.nearest_files import RepeatedObjects


def objects(inputs: documents.Inputs) -> Iterator[JSON]:
    """The audited objects that a cluster could hold."""
    return (each.value for each in inputs.documents if _is_object(each.value))


def repeated(inputs: documents.Inputs, cluster: Cluster) -> RepeatedObjects:
    """Of the audited objects those whose names stand in several files; an object of --context means itself to all."""
    audited = {id(obj) for obj in objects(inputs)}
    return RepeatedObjects(
        (each.source, each.value)
        for each in inputs.documents
        if id(each.value) in audited and id(_held(each.value, cluster)) in audited
    )


def _held(obj: JSON, cluster: Cluster) -> JSON | None:
    (group, kind), (namespace, name) = identity(obj)
    return cluster.get(GroupVersionKind(group, "", kind), namespace, name)


def as_submitted(attributes: Attributes) -> Attributes:
    """A stored object without the node that the scheduler wrote: rules about spec.nodeName are for users who set it."""
    spec = attributes.object.get("spec") if isinstance(attributes.object, dict) else None
    if attributes.kind != POD or not isinstance(spec, dict) or "nodeName" not in spec:
        return attributes
    kept = {name: value for name, value in spec.items() if name != "nodeName"}
    return replace(attributes, object={**attributes.object, "spec": kept})


def _is_object(value: JSON) -> bool:
    """Whether it is no review, and has a kind."""
    return isinstance(value, dict) and "kind" in value and not fixtures.is_call(value)
