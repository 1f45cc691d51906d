"""Makes the ClusterRole of the webhook, which may read only the objects that the loaded policies look up.

The resource of a kind comes from the workload table, or from the rule for plurals. `resourceNames` allow a list or
watch with the field selector `metadata.name`, because authorization reads the name from the selector
(k8s.io/apiserver v0.36 pkg/endpoints/request/requestinfo.go).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.apimachinery.attributes import plural_of_kind
from webhook.cluster.interest import Interest
from webhook.workloads.table import Table

_VERBS = ("get", "list", "watch")
"""The verbs that a watch with its lists needs."""

_ASKING = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}


def cluster_role(name: str, interests: Iterable[Interest], table: Table, *, may_ask: bool = False) -> dict[str, Any]:
    """Return the role. Each API group has one rule for resources with all objects, and one rule for each resource with
    named objects.

    The table knows irregular plurals of kinds. `may_ask` adds the right that `authorizer` needs.
    """
    whole: dict[str, set[str]] = {}
    named: dict[tuple[str, str], set[str]] = {}
    for each in interests:
        row = table.row(*each.kind)
        group, resource = each.gvk.group, row.resource if row else plural_of_kind(each.gvk.kind)
        if each.scope.name:
            named.setdefault((group, resource), set()).add(each.scope.name)
        else:
            whole.setdefault(group, set()).add(resource)
    rules = {(group, ""): _rule_of_group(group, resources) for group, resources in whole.items()}
    for (group, resource), names in named.items():
        if resource not in whole.get(group, ()):
            rules[group, resource] = {**_rule_of_group(group, {resource}), "resourceNames": sorted(names)}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [*(rule for _, rule in sorted(rules.items())), *([_ASKING] if may_ask else [])],
    }


def _rule_of_group(group: str, resources: Iterable[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": sorted(resources), "verbs": list(_VERBS)}
