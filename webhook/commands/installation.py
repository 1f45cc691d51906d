"""Finds mistakes in the installation of a cluster, for `claimgate webhook-config --check --live`.

- Mistakes in `claimgate.yaml` of the servers. A running server keeps its last good configuration, but a new Pod does
  not start. The check reads Deployments and their ConfigMaps, not Helm values or kustomizations.
- Mistakes in ConfigMaps with parameters.
- Edits of shipped ConfigMaps, which the next upgrade reverts. metadata.managedFields names the manager of each key. A
  value from the installing tool is not an edit: the value comes from the site's folder or Helm values.
- Objects of earlier versions. `kubectl apply` deletes nothing, so these objects stay active after an upgrade. Helm
  deletes them.
"""

from __future__ import annotations

import datetime as dt
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import plural_of_kind
from webhook.apimachinery.paths import get, path_as_text
from webhook.assembly import exceptions_at_their_end
from webhook.cluster.connection import ServerRefused
from webhook.cluster.lookup import namespace_and_name
from webhook.cluster.site_params import CONFIG_MAP, NAME, data_of_config_map, is_below_site
from webhook.errors import InputError, LookupFailed
from webhook.manifests.claimgate_kinds import API_VERSION, GROUP, POLICY_EXCEPTION, VERSION
from webhook.manifests.configuration import EMPTY, FileConfiguration, configuration_of_documents
from webhook.manifests.leave_alone import NOTICE_DAYS, describe_end
from webhook.manifests.models import ShapeError
from webhook.manifests.policy_exceptions import effect_of_exception, parse_policy_exception, sentences_about_mistakes
from webhook.policy.configured_rules import apply_configuration_to_policies
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.text.wording import counted
from webhook.yamltext import yamlfile

if TYPE_CHECKING:
    from webhook.commands.enforcing import ClusterReader


_APPLIERS: Final = frozenset(("kubectl-client-side-apply", "kubectl-create", "argocd-controller"))
"""Field managers of tools that apply whole folders. Server-side apply has the operation Apply instead."""
_HELM: Final = "helm"
"""Part of the name of every field manager that installs charts, such as `helm-controller`."""
_VARIABLE: Final = "CLAIMGATE_CONFIG"
_OWN_POLICIES: Final = ("--policies", "--only", "CLAIMGATE_POLICIES", "CLAIMGATE_ONLY")


_MOST_NOTES: Final = 20
"""At most this many notes about PolicyExceptions are printed."""
_CONSEQUENCE: Final = "running replicas keep the last good configuration, but a new replica does not start"


class MountedConfiguration(Struct, frozen=True):
    """A key of a ConfigMap that a Deployment mounts as its configuration file.

    `has_own_policies` says that the server loads policies that this command cannot read. A rule that is unknown here
    may belong to such a policy.
    """

    config_map: str
    key: str
    has_own_policies: bool


def check_served_configurations(
    cluster: ClusterReader, namespace: str, policies: PolicySet, day: dt.date
) -> tuple[list[str], list[str]]:
    """Return the mistakes in the configurations that Deployments mount, and notes about exceptions that end soon.

    `namespace` is where claimgate runs, and `policies` define the known rules.
    """
    mistakes: list[str] = []
    ends: list[str] = []
    served: list[FileConfiguration] = []
    try:
        for name, text, has_own_policies in _served_texts(cluster, namespace):
            if text is None:
                mistakes.append(f"{name}: there is no such key; {_CONSEQUENCE}")
                continue
            try:
                file = configuration_of_documents(yamlfile.load(text, name), name)
                if not (has_own_policies or file.value.policies):
                    apply_configuration_to_policies(policies, file)
            except InputError as error:
                mistakes += (f"{problem}; {_CONSEQUENCE}" for problem in error.problems)
            else:
                ends += exceptions_at_their_end(file, day, notice_days=NOTICE_DAYS)
                served.append(file.value)
        ends += _notes_about_policy_exceptions(cluster, served or [EMPTY], day)
    except LookupFailed as error:
        mistakes.append(f"configuration: unknown, because it cannot be read: {error}")
    return mistakes, ends


def _notes_about_policy_exceptions(
    cluster: ClusterReader, served: Sequence[FileConfiguration], day: dt.date
) -> list[str]:
    """Notes are about PolicyExceptions that end soon, or have no effect under a configuration of the servers."""
    try:
        exceptions = cluster.items(f"/apis/{GROUP}/{VERSION}/policyexceptions")
    except ServerRefused as refused:
        if refused.code == HTTPStatus.NOT_FOUND:  # the kind PolicyException is not installed
            return []
        raise
    typed = {"apiVersion": API_VERSION, "kind": POLICY_EXCEPTION}
    notes = [note for each in exceptions for note in _notes_about_policy_exception({**each, **typed}, served, day)]
    more = len(notes) - _MOST_NOTES
    return [*notes[:_MOST_NOTES], *([f"{POLICY_EXCEPTION}: {counted(more, 'other note')}"] if more > 0 else ())]


def _notes_about_policy_exception(
    value: dict[str, Any], served: Sequence[FileConfiguration], day: dt.date
) -> Iterator[str]:
    try:
        exception = parse_policy_exception(value)
    except ShapeError as error:
        place = "/".join(namespace_and_name(value))
        yield f"{POLICY_EXCEPTION} {place} has no effect: {'; '.join(sentences_about_mistakes(error.problems))}"
        return
    effects = [effect_of_exception(exception, each, day) for each in served]
    refused = next((each for each in effects if not each.holds), None)
    if refused is not None:
        yield f"{exception.place} has no effect: {refused.message}"
    elif exception.spec.days_left(day) <= NOTICE_DAYS:
        yield f"{exception.place}: {describe_end(exception.spec, day)}"


def _served_texts(cluster: ClusterReader, namespace: str) -> Iterator[tuple[str, str | None, bool]]:
    """Yield name and text of each configuration, and whether its server loads other policies. A missing key has the
    text None.
    """
    deployments = cluster.items(f"/apis/apps/v1/namespaces/{namespace}/deployments")
    for each in dict.fromkeys(_mounted_configurations(deployments)):
        name = f"ConfigMap {namespace}/{each.config_map}"
        stored = cluster.get_or_none(f"/api/v1/namespaces/{namespace}/configmaps/{each.config_map}") or {}
        text = get(stored, ("data", each.key), None)
        yield f"{name} {each.key}", text, each.has_own_policies


def _mounted_configurations(deployments: Iterable[Mapping[str, Any]]) -> Iterator[MountedConfiguration]:
    for deployment in deployments:
        pod = get(deployment, ("spec", "template", "spec"), None) or {}
        config_maps = {one["name"]: one["configMap"] for one in pod.get("volumes") or () if one.get("configMap")}
        for container in pod.get("containers") or ():
            variables = {one["name"]: str(one.get("value") or "") for one in container.get("env") or ()}
            path = variables.get(_VARIABLE, "")
            words_of_container = (*variables, *(str(word).partition("=")[0] for word in container.get("args") or ()))
            for mount in container.get("volumeMounts") or () if path else ():
                config_map, folder = config_maps.get(mount["name"]), mount["mountPath"].rstrip("/")
                if config_map is None or posixpath.dirname(path) != folder:
                    continue
                file = posixpath.basename(path)
                items = {one["path"]: one["key"] for one in config_map.get("items") or ()}
                yield MountedConfiguration(
                    str(config_map.get("name")),
                    items.get(file, file),
                    any(word in _OWN_POLICIES for word in words_of_container),
                )


def edited_params(cluster: ClusterReader, loaded: PolicySet, namespace: str) -> Iterator[str]:
    """Yield a sentence about each edited key of a shipped ConfigMap, with the place where the site should set the key.

    `loaded` has the shipped ConfigMaps, and `namespace` is where claimgate runs.

    Raises:
        LookupFailed: the cluster cannot be read.
    """
    site = data_of_config_map(cluster.get_or_none(f"/api/v1/namespaces/{namespace}/configmaps/{NAME}"))
    for shipped in loaded.params:
        place, name = namespace_and_name(shipped)
        if not is_below_site(CONFIG_MAP, place, name, loaded.own_namespace):
            continue
        stored = cluster.get_or_none(f"/api/v1/namespaces/{namespace}/configmaps/{name}") or {}
        is_chart = get(stored, ("metadata", "labels", "app.kubernetes.io/managed-by"), "") == "Helm"
        for key, manager in sorted(_edited_keys(stored, is_chart=is_chart).items()):
            if key in (shipped.get("data") or {}) and f"{name}.{key}" not in site:
                message = f"ConfigMap {namespace}/{name}: `{key}` was set by {manager}"
                yield f"{message}: {_fix(name, key, is_chart=is_chart)}"


def mistaken_params(cluster: ClusterReader, loaded: PolicySet, namespace: str) -> Iterator[str]:
    """Yield a sentence about each unknown key or rule in the ConfigMaps of a namespace. A server logs the same
    mistakes.

    The namespace may differ from the namespace that the loaded policies name.

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
    """Return the keys that the installing tool did not set, each with its field manager."""
    edited: dict[str, str] = {}
    for entry in get(stored, ("metadata", "managedFields"), None) or ():
        manager = entry.get("manager") or "an unknown manager"
        is_applied = manager in _APPLIERS or entry.get("operation") == "Apply"
        if _HELM in manager or (is_applied and not is_chart) or manager == "argocd-controller":
            continue
        keys = get(entry, ("fieldsV1", "f:data"), None) or {}
        edited.update({key.removeprefix("f:"): manager for key in keys if key.startswith("f:")})
    return edited


class RemovedObject(Struct, frozen=True, kw_only=True):
    """An object in the namespace of claimgate that only earlier versions of deploy/ had.

    Attributes:
        api: the path of the API group and version, such as `/apis/batch/v1`.
        version: the last version with the object.
        effect: what happens if the object stays, as the end of a sentence.
    """

    kind: str
    api: str
    name: str
    version: str
    effect: str


_CERTIFICATES: Final = "claimgate-certificates"
REMOVED_OBJECTS: Final = (
    RemovedObject(
        kind="CronJob",
        api="/apis/batch/v1",
        name=_CERTIFICATES,
        version="0.1.0",
        effect=f"it renews the certificate with an old image, beside the Deployment {_CERTIFICATES}",
    ),
    RemovedObject(
        kind="Job",
        api="/apis/batch/v1",
        name=_CERTIFICATES,
        version="0.1.0",
        effect=f"the Deployment {_CERTIFICATES} does its work",
    ),
)
"""tests/e2e/test_upgrade.py compares these with the objects that an earlier version installs."""


def leftovers(cluster: ClusterReader, namespace: str) -> Iterator[str]:
    """Yield a sentence about each object of an earlier version, with the command that deletes the object.

    Raises:
        LookupFailed: the cluster cannot be read.
    """
    for removed in REMOVED_OBJECTS:
        resource = plural_of_kind(removed.kind)
        if cluster.get_or_none(f"{removed.api}/namespaces/{namespace}/{resource}/{removed.name}") is not None:
            fix = f"`kubectl -n {namespace} delete {removed.kind.lower()} {removed.name}`"
            place = f"{removed.kind} {namespace}/{removed.name}"
            yield f"{place}: no version after {removed.version} installs it, and {removed.effect}: {fix}"
