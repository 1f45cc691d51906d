"""What becomes of changed pod templates: by the row of the kind, and by whether the object is suspended.

The words are those of kinds.yaml. An object that is suspended before or after an update has no pods that could keep the
old template. Takes any JSON, as podsets.py does.
"""

from __future__ import annotations

from webhook import paths
from webhook.attributes import JSON
from webhook.workloads.podsets import PodSet, group_kind
from webhook.workloads.rows import Change
from webhook.workloads.table import Table


def change_of_template(obj: JSON, old: JSON, table: Table) -> Change:
    """Return what becomes of a template that an update from `old` to `obj` changes; mutable where nobody says
    otherwise.
    """
    row = table.row(*group_kind(obj))
    if row is None or row.templates in ("mutable", "immutable"):
        return row.templates if row else "mutable"
    if row.suspend and any(paths.get(each, paths.parse_path(row.suspend)) is True for each in (obj, old)):
        return "mutable"
    return "later" if row.templates == "later" else "immutable"


def is_template_changed(podset: PodSet, before: PodSet | None) -> bool:
    """Return whether an update changes the PodSpec of a template, `before` being the old object's of the same name."""
    if before is None or podset.elsewhere:
        return False
    return bool(podset.template.get("spec") != before.template.get("spec"))
