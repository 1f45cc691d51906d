"""What an audit makes of the objects that it reads: each as a user submits it."""

from __future__ import annotations

from dataclasses import replace

from webhook.attributes import POD, Attributes


def as_submitted(attributes: Attributes) -> Attributes:
    """A stored object without the node that the scheduler wrote: rules about spec.nodeName are for users who set it."""
    spec = attributes.object.get("spec") if isinstance(attributes.object, dict) else None
    if attributes.kind != POD or not isinstance(spec, dict) or "nodeName" not in spec:
        return attributes
    kept = {name: value for name, value in spec.items() if name != "nodeName"}
    return replace(attributes, object={**attributes.object, "spec": kept})
