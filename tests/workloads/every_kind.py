"""An object of each kind of the workload table around a given pod template."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.literals import TABLE
from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.workloads.podsets import pod_templates
from webhook.workloads.rows import PodSetRule, Row


def objects_around(template: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield objects with the template for each kind and place of the table, with a name. A Pod has no place."""
    for row in TABLE.rows:
        for rule in row.podSets:
            if rule.template:
                yield f"{row.kind}.{row.group} {rule.template}", object_around(template, row, rule)


def object_around(template: JSON, row: Row, rule: PodSetRule) -> JSON:
    inner = template
    if rule.embeds == "podSpec":
        inner = dict(template["spec"])  # a copy, which gets the labels
    elif rule.embeds == "object":
        inner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "inner"}, "spec": {"template": template}}
    api_version = f"{row.group}/{row.versions[0]}" if row.group else row.versions[0]
    obj = {"apiVersion": api_version, "kind": row.kind, "metadata": {"name": "x", "namespace": "team"}}
    made = _with_value(obj, rule.template, inner)
    if rule.when and not pod_templates(made, TABLE):
        made = _with_value(made, _place_of_condition(rule), {"spec": {"containers": [{"name": "c", "image": "i"}]}})
    return _with_metadata_beside(made, template) if rule.embeds == "podSpec" else made


def _with_metadata_beside(obj: JSON, template: JSON) -> JSON:
    """Set the template's labels and annotations where an object with a bare PodSpec has the labels and annotations of
    its pods.
    """
    containers = template["spec"].get("containers")
    (podset,) = [each for each in pod_templates(obj, TABLE) if each.template["spec"].get("containers") is containers]
    place = paths.get(obj, podset.metadata[-1])
    place.update({name: value for name, value in (template.get("metadata") or {}).items() if name != "name"})
    return obj


def _place_of_condition(rule: PodSetRule) -> str:
    element = re.match(r".*(\[\]|\{\})\.?|", rule.template)
    return f"{element[0] if element else ''}{rule.when}"


def _with_value(obj: JSON, path: str, value: JSON) -> JSON:
    """Return the object with a value at the path of a template."""
    if not path:
        return value
    step, _, rest = path.partition(".")
    name, each = re.fullmatch(r"([^\[{]*)(\[\]|\{\})?", step).groups()  # type: ignore[union-attr]
    inside = (obj or {}).get(name)
    if each == "[]":
        inside = [_with_value(inside[0] if inside else {"name": "e"}, rest, value)]
    elif each == "{}":
        inside = {"Worker": _with_value((inside or {}).get("Worker"), rest, value)}
    else:
        inside = _with_value(inside, rest, value)
    return {**(obj or {}), name: inside}
