"""What `claimgate webhook-config --check --live` says of ConfigMaps with parameters: mistakes, and edits of the shipped
ones that the next upgrade reverts.

Reads the shipped ConfigMaps with parameters, and the manager of each key (metadata.managedFields). Values of the
installing tool are not edits, also if they differ from the shipped ones: a folder or Helm values of the site set them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from webhook.apimachinery.paths import get, path_as_text
from webhook.cluster.lookup import namespace_and_name
from webhook.cluster.site_params import CONFIG_MAP, NAME, data_of_site, is_below_site
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet

if TYPE_CHECKING:
    from webhook.commands.enforcing import ClusterReader

_APPLIERS: Final = frozenset(("kubectl-client-side-apply", "kubectl-create", "argocd-controller"))
"""Field managers of tools that apply whole folders; server-side apply has the operation Apply."""
_HELM: Final = "helm"
"""In the name of each field manager that installs charts: `helm`, `helm-controller`, `terraform-provider-helm`."""


def edited_params(cluster: ClusterReader, loaded: PolicySet, namespace: str) -> Iterator[str]:
    """Yield each key of a shipped ConfigMap that was edited in the cluster, and where to set it instead.

    Args:
        cluster: where to look.
        loaded: the policies, with the shipped ConfigMaps.
        namespace: where claimgate runs in this cluster.

    Raises:
        LookupFailed: the cluster cannot be read.
    """
    site = data_of_site(cluster.get_or_none(f"/api/v1/namespaces/{namespace}/configmaps/{NAME}"))
    for shipped in loaded.params:
        place, name = namespace_and_name(shipped)
        if not is_below_site(CONFIG_MAP, place, name, loaded.own_namespace):
            continue
        stored = cluster.get_or_none(f"/api/v1/namespaces/{namespace}/configmaps/{name}") or {}
        is_chart = get(stored, ("metadata", "labels", "app.kubernetes.io/managed-by"), "") == "Helm"
        for key, manager in sorted(_edited_keys(stored, is_chart=is_chart).items()):
            if key in (shipped.get("data") or {}) and f"{name}.{key}" not in site:
                told = f"ConfigMap {namespace}/{name}: `{key}` was set by {manager}"
                yield f"{told}: {_fix(name, key, is_chart=is_chart)}"


def mistaken_params(cluster: ClusterReader, loaded: PolicySet, namespace: str) -> Iterator[str]:
    """Yield each key or rule that does not exist, in the ConfigMaps where claimgate runs, as the log of a server does.

    Args:
        cluster: where to look.
        loaded: the policies, with the shipped ConfigMaps.
        namespace: where claimgate runs in this cluster, which need not be the one that the policies name.

    Raises:
        LookupFailed: the cluster cannot be read.
    """
    rules = ParamRuleChecker(loaded.policies, loaded.registry, loaded.params, own_namespace=loaded.own_namespace)
    for stored in cluster.items(f"/api/v1/namespaces/{namespace}/configmaps"):
        name = stored["metadata"]["name"]
        param = {"apiVersion": "v1", "kind": "ConfigMap", "data": stored.get("data") or {}}
        param["metadata"] = {**stored["metadata"], "namespace": loaded.own_namespace}
        for path, text in rules.mistakes_if_object_is_param(param):
            yield f"ConfigMap {namespace}/{name}: {path_as_text(path)}: {text}"


def _fix(name: str, key: str, *, is_chart: bool) -> str:
    if is_chart:
        return f"the next helm upgrade undoes this: set `params.{name}.{key}` of the chart"
    return f"the next kubectl apply undoes this: set `{name}.{key}` in ConfigMap {NAME} instead"


def _edited_keys(stored: Mapping[str, Any], *, is_chart: bool) -> dict[str, str]:
    """Return the keys of a ConfigMap that are not set by what installs it, each with its field manager."""
    edited: dict[str, str] = {}
    for entry in get(stored, ("metadata", "managedFields"), None) or ():
        manager = entry.get("manager") or "an unknown manager"
        is_applied = manager in _APPLIERS or entry.get("operation") == "Apply"
        if _HELM in manager or (is_applied and not is_chart) or manager == "argocd-controller":
            continue
        keys = get(entry, ("fieldsV1", "f:data"), None) or {}
        edited.update({key.removeprefix("f:"): manager for key in keys if key.startswith("f:")})
    return edited
