"""What an audit makes of the files that it reads: the objects of a cluster, and each object as a user submits it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook import documents
from webhook.admission import fixtures
from webhook.attributes import JSON, POD, Attributes


def objects(inputs: documents.Inputs) -> Iterator[tuple[str, JSON]]:
    """The audited objects that a cluster could hold, and kustomizations, with their files."""
    return ((each.source, each.value) for each in inputs.documents if not fixtures.is_call(each.value))


def as_submitted(attributes: Attributes) -> Attributes:
    """A stored object without the node that the scheduler wrote: rules about spec.nodeName are for users who set it."""
    spec = attributes.object.get("spec") if isinstance(attributes.object, dict) else None
    if attributes.kind != POD or not isinstance(spec, dict) or "nodeName" not in spec:
        return attributes
    kept = {name: value for name, value in spec.items() if name != "nodeName"}
    return replace(attributes, object={**attributes.object, "spec": kept})
