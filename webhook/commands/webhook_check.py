"""`claimgate webhook-config --check`: what could block a cluster, and what is missing before claimgate enforces."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from webhook.cel.library.declaration import Version
from webhook.errors import InputError, InputProblem, LookupFailed
from webhook.export.condition_costs import costly_conditions
from webhook.export.lockout import (
    Namespaces,
    lockout_dangers,
    sentences_about_dangers,
    sentences_about_refused_requests,
)
from webhook.input import documents
from webhook.manifests.label_selectors import labels_of
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


def check_files(named: Sequence[str], version: Version) -> int:
    """Print how the configurations of files can block a cluster, or not be asked; return 1 when there is anything.

    Args:
        named: files.
        version: the Kubernetes version of the API server.

    Raises:
        InputError: nothing can be read, or there is no configuration.
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
    costs = [told for each in configurations for told in costly_conditions(each, version)]
    return _print_and_return_exit_code([*dangers, *costs], configurations)


class WantedInstallation(Struct, frozen=True, kw_only=True):
    """What an installation needs: the name of its configurations, a ClusterRole, and in how many phases it is asked."""

    name: str
    role: Mapping[str, Any]
    phases: int


def check_live(connection: Connection, wanted: WantedInstallation, loaded: PolicySet, version: Version) -> int:
    """Print how any configuration of a cluster can block it, ours as if it failed closed, and what ours lacks for that.

    Notes tell what is left out by a label. Of ours it prints also which matchConditions may cost too much; those of
    others are others' business.

    Args:
        connection: to the cluster.
        wanted: what the loaded policies need.
        loaded: the policies.
        version: the Kubernetes version of the API server.
    """
    from webhook.commands.answering import check_answer_to_dry_run_pod, translates_gpu_in_empty_cluster
    from webhook.commands.edited_params import edited_params
    from webhook.commands.enforcing import ClusterReader, prefix_lines_with_name, steps_before_enforcing
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
        raise InputError(InputProblem(message=f"the cluster cannot be asked: {error}")) from None
    costs = [
        told
        for each in configurations
        if each.metadata.name == wanted.name
        for told in costly_conditions(each, version)
    ]
    ours = [_with_failure_policy_fail(each) for each in configurations if each.metadata.name == wanted.name]
    others = [each for each in configurations if each.metadata.name != wanted.name]
    lines = sentences_about_dangers(danger for each in (*ours, *others) for danger in lockout_dangers(each, namespaces))
    lacks = list(steps_before_enforcing(cluster, ours, wanted.role, wanted.phases))
    if not lacks:  # else that would be why no answer comes
        answers = check_answer_to_dry_run_pod(
            cluster.connection, ours, namespaces, is_changed=translates_gpu_in_empty_cluster(loaded)
        )
        lacks = list(prefix_lines_with_name("answer to a dry run", answers))
    notes = notes_about_opt_out(cluster, ours, namespaces)
    edits = prefix_lines_with_name(
        "an upgrade would lose", edited_params(cluster, loaded, _own_namespace(ours) or loaded.own_namespace)
    )
    return _print_and_return_exit_code([*lacks, *lines, *costs, *edits], ours, notes)


def _own_namespace(ours: Sequence[WebhookConfiguration]) -> str:
    """Return the namespace of the Service that our webhooks call; "" where they call an address."""
    services = [one.client_config.service for each in ours for one in each.webhooks]
    return next((each.namespace for each in services if each is not None), "")


def _with_failure_policy_fail(configuration: WebhookConfiguration) -> WebhookConfiguration:
    webhooks = [one.model_copy(update={"failure_policy": "Fail"}) for one in configuration.webhooks]
    return configuration.model_copy(update={"webhooks": webhooks})


def _print_and_return_exit_code(
    lines: Sequence[str], configurations: Sequence[WebhookConfiguration], notes: Iterable[str] = ()
) -> int:
    """Print what is wrong, or what is refused while configurations do not answer, and notes, which do not count."""
    sys.stdout.write(terminal.lines([*(lines or sentences_about_refused_requests(configurations)), *notes]))
    return int(bool(lines))
