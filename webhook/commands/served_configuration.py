"""What is wrong with the `claimgate.yaml` of the servers in a cluster: `claimgate webhook-config --check --live`.

A running server keeps its last good configuration. A new Pod has no earlier configuration, so with a mistake it does
not start. Knows Deployments and the ConfigMaps that they mount. Knows no Helm values and no kustomizations.
"""

from __future__ import annotations

import datetime as dt
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from webhook.apimachinery.paths import get
from webhook.assembly import exceptions_at_their_end
from webhook.cluster.connection import ServerRefused
from webhook.cluster.lookup import namespace_and_name
from webhook.errors import InputError, LookupFailed
from webhook.manifests.claimgate_kinds import API_VERSION, GROUP, POLICY_EXCEPTION, VERSION
from webhook.manifests.configuration_file import configuration_of_documents
from webhook.manifests.configuration_model import EMPTY, FileConfiguration
from webhook.manifests.leave_alone import NOTICE_DAYS, describe_end
from webhook.manifests.models import ShapeError
from webhook.manifests.policy_exceptions import (
    effect_of_exception,
    parse_policy_exception,
    sentences_about_mistakes,
)
from webhook.policy.configured_rules import apply_configuration_to_policies
from webhook.policy.policy_set import PolicySet
from webhook.text.wording import counted
from webhook.yamltext import yamlfile

if TYPE_CHECKING:
    from webhook.commands.enforcing import ClusterReader

_VARIABLE: Final = "CLAIMGATE_CONFIG"
_OWN_POLICIES: Final = ("--policies", "--only", "CLAIMGATE_POLICIES", "CLAIMGATE_ONLY")


_MOST_NOTES: Final = 20
"""How many notes about PolicyExceptions are printed."""
_CONSEQUENCE: Final = "running replicas keep the last good configuration, but a new replica does not start"


class MountedConfiguration(Struct, frozen=True):
    """A key of a ConfigMap that a Deployment mounts as its configuration.

    has_own_policies: whether the server has policies that this command cannot read. Unknown rules may then belong to
    them.
    """

    config_map: str
    key: str
    has_own_policies: bool


def check_served_configurations(
    cluster: ClusterReader, namespace: str, policies: PolicySet, day: dt.date
) -> tuple[list[str], list[str]]:
    """Return each mistake of the configurations that the Deployments of a namespace mount, and exceptions at their end.

    Args:
        cluster: where to look.
        namespace: where claimgate runs in this cluster.
        policies: those that rules are looked up in.
        day: today.
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
    """Return a note about each PolicyException that has no effect or ends soon, under the configurations of servers."""
    try:
        listed = cluster.items(f"/apis/{GROUP}/{VERSION}/policyexceptions")
    except ServerRefused as refused:
        if refused.code == HTTPStatus.NOT_FOUND:  # the kind is not installed
            return []
        raise
    typed = {"apiVersion": API_VERSION, "kind": POLICY_EXCEPTION}
    notes = [told for each in listed for told in _notes_about_policy_exception({**each, **typed}, served, day)]
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
    """Yield the name and the text of each configuration, and whether its server has its own policies; the text is None
    if the ConfigMap does not have the key.
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
            given = (*variables, *(str(word).partition("=")[0] for word in container.get("args") or ()))
            for mount in container.get("volumeMounts") or () if path else ():
                config_map, folder = config_maps.get(mount["name"]), mount["mountPath"].rstrip("/")
                if config_map is None or posixpath.dirname(path) != folder:
                    continue
                file = posixpath.basename(path)
                items = {one["path"]: one["key"] for one in config_map.get("items") or ()}
                yield MountedConfiguration(
                    str(config_map.get("name")), items.get(file, file), any(word in _OWN_POLICIES for word in given)
                )
