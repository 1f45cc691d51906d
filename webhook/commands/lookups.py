"""What the webhook must be allowed to read: a ClusterRole for exactly the kinds that the loaded policies look up.

Knows rbac.authorization.k8s.io/v1; which kinds those are is the policies' business, and what a kind's resource is
called the workload table's, or the rule of plurals.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.admission.fixtures import plural
from webhook.attributes import GroupVersionKind
from webhook.workloads.table import Table

_VERBS = ("get", "list", "watch")
"""What a watch cache needs."""


def cluster_role(name: str, kinds: Iterable[GroupVersionKind], table: Table) -> dict[str, Any]:
    """The role, with one rule for each group.

    Args:
        name: of the role.
        kinds: what is looked up.
        table: knows resources that no rule of plurals gives.
    """
    groups: dict[str, set[str]] = {}
    for kind in kinds:
        row = table.row(kind.group, kind.kind)
        groups.setdefault(kind.group, set()).add(row.resource if row else plural(kind.kind))
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [group], "resources": sorted(resources), "verbs": list(_VERBS)}
            for group, resources in sorted(groups.items())
        ],
    }
