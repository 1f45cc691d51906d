"""Makes the pod of a shard as the controller of a BatchSandbox does: merges a patch into the template, and decodes the
outcome over the template.

Source: as of shards.py. What is walked is charged; knows nothing of what may be wrong with a patch.
"""

from __future__ import annotations

from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.patch import strategic
from webhook.paths import get

_SOLID: Final = frozenset(("image", "resources"))


def template_as_go_writes(template: JSON, deadline: Deadline) -> JSON:
    """Return the template as Go writes it: whatever has no name in a list of its pod has an empty one."""
    spec = get(template, ("spec",))
    if not isinstance(spec, dict):
        return template if isinstance(template, dict) else {}
    charged, named = deadline.items_with_clock_checks, {}
    for name, tag in strategic.merge_tags_of_type("PodSpec").items():
        listed = list_or_empty(spec.get(name))
        if tag.get("merge") == "name" and listed and all(isinstance(item, dict | None) for item in charged(listed)):
            named[name] = [
                item if text_or_empty(get(item, ("name",))) else {**(item or {}), "name": ""}
                for item in charged(listed)
            ]
    return {**template, "spec": {**spec, **named}}


def merge_shard_patch(template: JSON, patch: JSON, deadline: Deadline) -> JSON:
    """Return the template with the patch merged into it; an item that a list did not have comes in with its nulls."""
    merged = strategic.merge_patch(template, patch, "PodTemplateSpec", deadline)
    spec = merged.get("spec")
    for name, tag in strategic.merge_tags_of_type("PodSpec").items() if isinstance(spec, dict) else ():
        key, given = tag.get("merge"), list_or_empty(get(patch, ("spec", name)))
        if not key or not given:
            continue
        charged = deadline.items_with_clock_checks
        had = {str(get(item, (key,))) for item in charged(list_or_empty(get(template, ("spec", name))))}
        new = {str(get(item, (key,))): item for item in charged(given) if isinstance(item, dict)} if had else {}
        if new.keys() - had:
            listed = charged(spec[name])
            whole = [new.get(now, item) if (now := str(get(item, (key,)))) not in had else item for item in listed]
            merged = {**merged, "spec": {**merged["spec"], name: whole}}
    return merged


def decode_over_old_value(old: JSON, new: JSON, deadline: Deadline) -> JSON:
    """Return what Go makes of a value that it decodes over another: fields that it does not name stay as they were.

    Null empties pointers, lists and maps; of a container, image and resources are none of these.
    """
    if new is old:
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        deadline.spend(len(old) + len(new))
        named = {name: value for name, value in new.items() if value is not None or name not in _SOLID}
        return {
            **old,
            **{name: decode_over_old_value(old.get(name), value, deadline) for name, value in named.items()},
        }
    if isinstance(old, list) and isinstance(new, list):
        placed = enumerate(deadline.items_with_clock_checks(new))
        return [decode_over_old_value(old[at] if at < len(old) else None, value, deadline) for at, value in placed]
    return new


def list_or_empty(value: JSON) -> list[JSON]:
    """Return a list, or an empty one for null and whatever else stands in a patch."""
    return value if isinstance(value, list) else []


def text_or_empty(value: JSON) -> str:
    """Return a text, or "" for null and whatever else stands in a patch."""
    return value if isinstance(value, str) else ""
