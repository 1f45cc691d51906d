"""`claimgate webhook-config --check`: finds what could block a cluster, and what is missing before enforcing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from webhook.apimachinery.paths import get
from webhook.cel.library.declaration import Version
from webhook.cluster.lookup import namespace_and_name
from webhook.errors import InputError, InputProblem, LookupFailed
from webhook.export.condition_costs import costly_conditions
from webhook.export.exemptions import expired_exemptions
from webhook.export.lockout import (
    Namespaces,
    lockout_dangers,
    sentences_about_dangers,
    sentences_about_refused_requests,
)
from webhook.input import documents
from webhook.manifests.label_selectors import labels_of
from webhook.manifests.leave_alone import current_day
from webhook.manifests.webhook_configurations import (
    GROUP,
    KINDS,
    WebhookConfiguration,
    is_webhook_configuration,
    parse_webhook_configuration,
)
from webhook.policy.policy_set import PolicySet
from webhook.text import terminal

if TYPE_CHECKING:
    from webhook.cluster.connection import Connection
    from webhook.commands.enforcing import ClusterReader


_DOMAIN: Final = ".claimgate.dev"
_SOUND: Final = (
    "nothing is missing in the objects that you may read: configurations, certificate, rights and parameters"
)
_NOT_ASKED: Final = "not checked: what a replica can reach; see /readyz?verbose and the log of the replica"
_ENFORCEMENT_ACTION: Final = ("--enforcement-action", "CLAIMGATE_ENFORCEMENT_ACTION")


def check_files(named: Sequence[str], version: Version) -> int:
    """Print how the configurations of files can block a cluster or fail to call a webhook. Return the exit code.

    `version` is the Kubernetes version of the API server.

    Raises:
        InputError: a file cannot be read, or there is no webhook configuration.
    """
    inputs = documents.read_documents(named)
    problems = (*inputs.problems, *documents.problem_of_nothing_read(named, inputs, "webhook configuration"))
    if problems:
        raise InputError(*problems)
    configurations = [
        parse_webhook_configuration(one.value) for one in inputs.documents if is_webhook_configuration(one.value)
    ]
    if not configurations:
        raise InputError(*(InputProblem(message="there is no webhook configuration", file=name) for name in named))
    dangers = sentences_about_dangers(danger for each in configurations for danger in lockout_dangers(each, {}))
    costs = [cost for each in configurations for cost in costly_conditions(each, version)]
    deployments = [one.value for one in inputs.documents if get(one.value, ("kind",)) == "Deployment"]
    idle = servers_that_deny_nothing(deployments, configurations)
    return _print_and_return_exit_code([*dangers, *costs, *idle], sentences_about_refused_requests(configurations))


def servers_that_deny_nothing(
    deployments: Iterable[Any], configurations: Iterable[WebhookConfiguration]
) -> Iterator[str]:
    """Yield a sentence about each server that denies nothing while API servers refuse requests that get no answer.

    Configurations of other webhooks, and Deployments without our arguments, are left out.
    """
    webhooks = [webhook for each in configurations for webhook in each.webhooks]
    is_closed = any(one.failure_policy == "Fail" and one.name.endswith(_DOMAIN) for one in webhooks)
    for one in deployments if is_closed else ():
        for container in get(one, ("spec", "template", "spec", "containers")) or ():
            words = [str(word) for word in container.get("args") or ()]
            words += [f"{each.get('name')}={each.get('value')}" for each in container.get("env") or ()]
            for word in words:
                flag, _, action = word.partition("=")
                if flag in _ENFORCEMENT_ACTION and action in ("warn", "audit"):
                    place = "/".join(filter(None, namespace_and_name(one)))
                    effect = "only requests that claimgate cannot answer are refused"
                    yield f"Deployment {place} has {word}, and failurePolicy is Fail: {effect}: set only one of them"


class WantedInstallation(Struct, frozen=True, kw_only=True):
    """The name of the configurations, their expected number (`phases`), and the ClusterRole."""

    name: str
    role: Mapping[str, Any]
    phases: int


def check_live(connection: Connection, installation: WantedInstallation, loaded: PolicySet, version: Version) -> int:
    """Print how the webhook configurations of a cluster can block it, and what is missing before claimgate may fail
    closed. Return the exit code.

    Our configuration is checked as if it failed closed, and for expensive matchConditions. Notes name namespaces and
    objects that a label excludes.
    """
    from webhook.commands.answering import check_answer_to_dry_run_pod, translates_gpu_in_empty_cluster
    from webhook.commands.enforcing import (
        ClusterReader,
        describe_ready_replicas,
        prefix_lines_with_name,
        requests_without_replica,
        steps_before_enforcing,
    )
    from webhook.commands.installation import check_served_configurations, edited_params, leftovers, mistaken_params
    from webhook.commands.opted_out import notes_about_opt_out

    cluster = ClusterReader(connection)
    try:
        namespaces: Namespaces = {
            one["metadata"]["name"]: labels_of(one) for one in cluster.items("/api/v1/namespaces")
        }
        configurations = [
            parse_webhook_configuration({**one, "kind": kind})
            for kind in KINDS
            for one in cluster.items(f"/apis/{GROUP}/v1/{kind.lower()}s")
        ]
    except LookupFailed as error:
        raise InputError(InputProblem(message=f"cannot read the cluster: {error}")) from None
    stored = [each for each in configurations if each.metadata.name == installation.name]
    costs = [cost for each in stored for cost in costly_conditions(each, version)]
    fail_closed = [_with_failure_policy_fail(each) for each in stored]
    others = [each for each in configurations if each.metadata.name != installation.name]
    lines = sentences_about_dangers(
        danger for each in (*fail_closed, *others) for danger in lockout_dangers(each, namespaces)
    )
    steps = list(steps_before_enforcing(cluster, stored, installation.role, installation.phases))
    if not steps:  # if a part is missing, claimgate cannot answer
        answers = check_answer_to_dry_run_pod(
            cluster.connection, fail_closed, namespaces, is_changed=translates_gpu_in_empty_cluster(loaded)
        )
        steps = list(prefix_lines_with_name("answer to a dry run", answers))
    notes = notes_about_opt_out(cluster, fail_closed, namespaces)
    own_namespace = _own_namespace(fail_closed) or loaded.own_namespace
    idle = prefix_lines_with_name("enforcement", _idle_servers(cluster, own_namespace, stored))
    wrong = prefix_lines_with_name("without effect", mistaken_params(cluster, loaded, own_namespace))
    edits = prefix_lines_with_name("an upgrade would lose", edited_params(cluster, loaded, own_namespace))
    old = prefix_lines_with_name("left over", leftovers(cluster, own_namespace))
    mistakes, ends = check_served_configurations(cluster, own_namespace, loaded, current_day())
    expired = expired_exemptions(stored, current_day())
    sentences = [*steps, *lines, *costs, *idle, *mistakes, *wrong, *expired, *edits, *old]
    sound = (
        _SOUND,
        *prefix_lines_with_name("replicas", describe_ready_replicas(cluster, stored)),
        _NOT_ASKED,
        f"failurePolicy as stored: if no replica answered, {requests_without_replica(stored)}",
    )
    title = "requests that a webhook with failurePolicy: Fail would refuse if no replica answered:"
    refused = sentences_about_refused_requests(fail_closed, title, _served_groups(cluster))
    return _print_and_return_exit_code(sentences, (*sound, *refused), (*notes, *ends))


def _served_groups(cluster: ClusterReader) -> frozenset[str] | None:
    """Return the names of the API groups that a cluster serves; None if they cannot be read."""
    try:
        groups = cluster.connection.get("/apis", {}).get("groups") or ()
    except LookupFailed:
        return None
    return frozenset(str(one.get("name")) for one in groups)


def _idle_servers(
    cluster: ClusterReader, namespace: str, configurations: Sequence[WebhookConfiguration]
) -> Iterator[str]:
    yield from servers_that_deny_nothing(
        cluster.items(f"/apis/apps/v1/namespaces/{namespace}/deployments"), configurations
    )


def _own_namespace(configurations: Sequence[WebhookConfiguration]) -> str:
    """Return the namespace of the Service of our webhooks; "" if the webhooks have a URL."""
    services = [one.client_config.service for each in configurations for one in each.webhooks]
    return next((each.namespace for each in services if each is not None), "")


def _with_failure_policy_fail(configuration: WebhookConfiguration) -> WebhookConfiguration:
    webhooks = [one.model_copy(update={"failure_policy": "Fail"}) for one in configuration.webhooks]
    return configuration.model_copy(update={"webhooks": webhooks})


def _print_and_return_exit_code(lines: Sequence[str], otherwise: Iterable[str], notes: Iterable[str] = ()) -> int:
    """Print the mistakes, then the notes. Without mistakes, print `otherwise` first. Return 1 if there are mistakes,
    else 0.
    """
    sys.stdout.write(terminal.lines([*(lines or otherwise), *notes]))
    return int(bool(lines))
