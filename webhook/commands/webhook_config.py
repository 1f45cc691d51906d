"""`claimgate webhook-config`: prints webhook configurations and rights for the policies.

Knows admissionregistration.k8s.io/v1. The rules of webhooks come from the policies.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias
from urllib.parse import urlsplit

import typer
from msgspec import Struct, field

from webhook import assembly
from webhook.apimachinery.attributes import NAME_LABEL, Phase, plural_of_kind
from webhook.apimachinery.names import dns1123_subdomain_errors
from webhook.commands import options
from webhook.commands.live_options import KubeContext
from webhook.commands.live_registration import STORED_POLICIES
from webhook.commands.opted_out import OPT_OUT
from webhook.commands.webhook_check import WantedInstallation, check_files, check_live
from webhook.errors import ConfigurationError, InputError, InputProblem, LookupFailed
from webhook.export.cluster_role import cluster_role
from webhook.export.exemptions import exemption_conditions
from webhook.export.lockout import INFRASTRUCTURE
from webhook.export.registrations import Webhook, WebhooksOfPhase, webhook_registrations
from webhook.export.webhook_rules import WebhookRule
from webhook.input.reload import ReloadableValue, create_file_state_function
from webhook.logs.structured import Log
from webhook.manifests.claimgate_kinds import GROUP, KINDS, POLICY_EXCEPTION, VERSION
from webhook.manifests.configuration import ConfigurationFile
from webhook.manifests.leave_alone import current_day
from webhook.policy.policy_set import PolicySet
from webhook.settings.configured import settings_from_changed_file
from webhook.settings.shared import Settings
from webhook.text import terminal
from webhook.yamltext.input_files import read_whole
from webhook.yamltext.yamlfile import discover, dump

if TYPE_CHECKING:
    from webhook.cluster.connection import Connection
    from webhook.commands.follow_policies import PolicyFollower

DOMAIN: Final = "claimgate.dev"
LABELS: Final = {"app.kubernetes.io/name": "claimgate", "app.kubernetes.io/part-of": "claimgate"}
_PATHS: Final = {Phase.VALIDATE: "/validate", Phase.MUTATE: "/mutate"}
_PORTS: Final = 443
_SERVICE: Final = "claimgate"
_VALID_PORTS: Final = range(1, 1 << 16)
_NEVER: Final = "the loaded policies match nothing, so there is nothing to register"

Manifest: TypeAlias = dict[str, Any]


class FailurePolicy(StrEnum):
    """What an API server does with a request if it cannot call the webhook (admissionregistration/v1)."""

    FAIL = "Fail"
    IGNORE = "Ignore"


class Registration(Struct, frozen=True, kw_only=True):
    """The settings that all webhooks of an installation have in common.

    `exempt` returns the matchConditions for users that are exempt now.
    """

    name: str = "claimgate"
    client: Mapping[str, Any] = field(default_factory=dict)
    failure_policy: FailurePolicy = FailurePolicy.IGNORE
    timeout_s: int = 5
    excluded_namespaces: tuple[str, ...] = ()
    object_opt_out: bool = False
    stored_policies: bool = False
    exempt: Callable[[], Sequence[tuple[str, str]]] = tuple


@options.add_settings_flags(
    Settings, "config", "policies", "only", "workloads", "cel_engine", "kubernetes_version", "own_namespace"
)
def command(
    path: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH", show_default=False, help="With --check: files with configurations of any webhook."
        ),
    ] = None,
    *,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of both configurations.")] = "claimgate",
    service: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE/NAME[:PORT]",
            help="The Service in front of the webhook. Default: claimgate of --own-namespace.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[str, typer.Option(metavar="URL", help="Call this https address instead of a Service.")] = "",
    ca_bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Certificates to trust, PEM. Without this flag, use `claimgate certs inject`."
        ),
    ] = None,
    failure_policy: Annotated[
        FailurePolicy, typer.Option(help="What API servers do with a request if the webhook does not answer.")
    ] = FailurePolicy.IGNORE,
    timeout: Annotated[
        int, typer.Option(min=1, max=30, metavar="SECONDS", help="How long an API server waits for an answer.")
    ] = 5,
    exclude_namespace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also exclude this namespace; repeatable.",
        ),
    ] = None,
    any_pod: Annotated[
        bool,
        typer.Option(
            "--any-pod", help="Also call the webhook for Pods and workloads without a device, a claim or a queue."
        ),
    ] = False,
    object_opt_out: Annotated[
        bool,
        typer.Option("--object-opt-out", help=f"Also exclude objects with the label {OPT_OUT[0]}={OPT_OUT[1]}."),
    ] = False,
    rbac: Annotated[
        bool, typer.Option("--rbac", help="Print the ClusterRole for the objects that policies look up.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help=(
                "Check the configurations of PATH or --live: what could block a cluster, and matchConditions that are "
                "too expensive for a large object."
            ),
        ),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Include the policies stored in the cluster. With --check: check all configurations in the cluster.",
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="With --live: keep the configurations in the cluster up to date, until Ctrl-C.",
        ),
    ] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --live: the kubeconfig of the cluster.")
    ] = None,
    kube_context: KubeContext = None,
    authorizer: Annotated[
        bool, typer.Option("--authorizer", help="With --rbac: include the rights for `serve --authorizer`.")
    ] = False,
    settings: Settings,
) -> int:
    """Print the ValidatingWebhookConfiguration and MutatingWebhookConfiguration that the policies need.

    --check prints no configuration, and reports what could block a cluster. --check --live also reports what is
    missing before `failurePolicy: Fail` is safe, and lists the requests that are refused while the webhook does not
    answer. If the check finds something, the exit code is 1.

    --live --watch updates rules and matchConditions of the configurations in the cluster. Other fields stay unchanged.
    """
    is_live = live or kubeconfig is not None or kube_context is not None
    if check and bool(path) == is_live:
        raise ConfigurationError("webhook-config: --check needs either PATH or --live")
    if path and not check:
        raise ConfigurationError("webhook-config: only --check reads the configurations of PATH: add --check")
    if watch and (check or rbac or not is_live):
        raise ConfigurationError("webhook-config: --watch needs --live, and neither --check nor --rbac")
    if check and path:
        return check_files(path, settings.kubernetes_version)
    if failure_policy is FailurePolicy.FAIL and settings.enforcement_action != "deny":
        origin = settings.origins.get("enforcement_action", "--enforcement-action")
        message = (
            f"--failure-policy Fail with {origin} `{settings.enforcement_action}` refuses what claimgate cannot answer"
        )
        raise ConfigurationError(f"{message}, and nothing else: remove one of the two")
    client, namespaces_of_service = _client_config(service or f"{settings.own_namespace}/{_SERVICE}", url)
    _check_names("--name", name)
    _check_names("--exclude-namespace", *(exclude_namespace or ()))
    if ca_bundle is not None:
        client["caBundle"] = base64.b64encode(_read_ca_bundle(ca_bundle)).decode()
    excluded = dict.fromkeys([*INFRASTRUCTURE, *namespaces_of_service, *(exclude_namespace or ())])
    registration = Registration(
        name=name,
        client=client,
        failure_policy=failure_policy,
        timeout_s=timeout,
        excluded_namespaces=tuple(excluded),
        object_opt_out=object_opt_out,
        stored_policies=is_live and not check,
        exempt=_exempt_conditions_of_file(settings) if watch else lambda: _exempt_conditions(settings.configuration),
    )
    loaded = assembly.assemble_policies_and_context(settings).policies
    connection = _connection(kubeconfig, kube_context) if is_live else None
    if watch and connection:
        _follower_of_policies(settings, connection, loaded, registration, any_pod=any_pod).run_until_stopped()
        return 0
    if connection and not check:
        loaded = _policies_with_stored(settings, connection, loaded)
    role = cluster_role(name, loaded.interests(), loaded.table, may_ask=authorizer)
    if rbac:
        sys.stdout.write(dump(role))
        return 0
    wanted = {phase: webhook_registrations(loaded, phase, any_pod=any_pod) for phase in Phase}
    manifests = webhook_configurations(wanted, registration)
    if check and connection:
        needed = WantedInstallation(name=name, role=role, phases=len(manifests))
        return check_live(connection, needed, loaded, settings.kubernetes_version)
    if not manifests:
        raise ConfigurationError(_NEVER)
    ended = assembly.exceptions_at_their_end(settings.configuration, current_day())
    terminal.print_to_stderr(f"warning: {each}" for each in ended)
    terminal.print_to_stderr(_note_of_rules_skipped_for_pods(wanted))
    sys.stdout.write("---\n".join(dump(manifest) for manifest in manifests))
    return 0


def _exempt_conditions(configuration: ConfigurationFile) -> tuple[tuple[str, str], ...]:
    return exemption_conditions(configuration.value.exemptions, current_day())


def _exempt_conditions_of_file(settings: Settings) -> Callable[[], tuple[tuple[str, str], ...]]:
    """Return a function that reads the conditions from the configuration file. If the file has a mistake, the
    conditions come from the last good file.
    """
    path = settings.configuration.path
    file = ReloadableValue(
        lambda: settings_from_changed_file(settings).configuration,
        create_file_state_function(lambda: discover(filter(None, [path]))),
    )

    def conditions() -> tuple[tuple[str, str], ...]:
        if file.poll() and file.error:
            terminal.print_to_stderr([file.error])
        return _exempt_conditions(file.current)

    return conditions


def _connection(kubeconfig: Path | None, kube_context: str | None) -> Connection:
    from webhook.cluster.connection import connect_to_cluster

    return connect_to_cluster(kubeconfig, kube_context)


def _policies_with_stored(settings: Settings, connection: Connection, loaded: PolicySet) -> PolicySet:
    """Return the policies of files together with those that the cluster stores.

    Raises:
        InputError: the cluster cannot be read.
    """
    from webhook.live_policies.combine import combine_file_and_stored_policies
    from webhook.live_policies.compile import Compiler
    from webhook.live_policies.objects import watch_stored_policies

    stored = watch_stored_policies(connection, Log("error"))
    try:
        stored_policies = stored.list_oldest_first()
    except LookupFailed as error:
        raise InputError(InputProblem(message=f"cannot read the cluster: {error}")) from None
    return combine_file_and_stored_policies(
        loaded, Compiler(assembly.create_compile_options(settings), may_ask=True).compile(stored_policies)
    ).policies


def _follower_of_policies(
    settings: Settings, connection: Connection, loaded: PolicySet, registration: Registration, *, any_pod: bool
) -> PolicyFollower:
    from webhook.commands.follow_policies import PolicyFollower
    from webhook.live_policies.compile import Compiler
    from webhook.live_policies.objects import watch_stored_policies

    return PolicyFollower(
        name=registration.name,
        files=loaded,
        stored=watch_stored_policies(connection, Log("error")),
        connection=connection,
        compiler=Compiler(assembly.create_compile_options(settings), may_ask=True),
        render=lambda wanted: webhook_configurations(wanted, registration),
        exempt=registration.exempt,
        any_pod=any_pod,
    )


def _note_of_rules_skipped_for_pods(wanted: Mapping[Phase, WebhooksOfPhase]) -> Iterator[str]:
    """Yield a note with the rules that skip Pods without devices, and the flag that changes this."""
    names = sorted({rule for each in wanted.values() for rules in each.left_out.values() for rule in rules})
    if names:
        note = "note: API servers do not call claimgate for Pods and workloads without a device, a claim or a queue"
        yield f"{note}, so these rules do not check such objects: {', '.join(names)}; --any-pod adds the objects"


def webhook_configurations(wanted: Mapping[Phase, WebhooksOfPhase], registration: Registration) -> list[Manifest]:
    """Return the configurations, the validating configuration first. A phase without rules has no configuration."""
    kinds = {Phase.VALIDATE: "ValidatingWebhookConfiguration", Phase.MUTATE: "MutatingWebhookConfiguration"}
    exempt = registration.exempt()
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": registration.name, "labels": dict(LABELS)},
            "webhooks": [
                *(_webhook_entry(phase, webhook, registration, exempt) for webhook in wanted[phase].webhooks),
                *(
                    [_entry_for_stored_policies(registration)]
                    if phase is Phase.VALIDATE and registration.stored_policies
                    else ()
                ),
            ],
        }
        for phase, kind in kinds.items()
        if phase in wanted and wanted[phase].webhooks
    ]


def _webhook_entry(
    phase: Phase, webhook: Webhook, registration: Registration, exempt: Sequence[tuple[str, str]] = ()
) -> Manifest:
    entry: Manifest = {
        "name": ".".join(filter(None, (webhook.name, phase.value, DOMAIN))),
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client_config_at(registration.client, _PATHS[phase]),
        "rules": [_rule_entry(rule) for rule in webhook.rules],
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "failurePolicy": registration.failure_policy.value,
        "timeoutSeconds": registration.timeout_s,
    }
    opted_out = {"key": OPT_OUT[0], "operator": "NotIn", "values": [OPT_OUT[1]]}
    names = list(registration.excluded_namespaces)
    by_name = [{"key": NAME_LABEL, "operator": "NotIn", "values": names}] if names else []
    entry["namespaceSelector"] = {"matchExpressions": [*by_name, opted_out]}
    if registration.object_opt_out:
        entry["objectSelector"] = {"matchExpressions": [opted_out]}
    conditions = (*webhook.conditions, *exempt)
    if conditions:
        entry["matchConditions"] = [{"name": name, "expression": text} for name, text in conditions]
    if phase is Phase.MUTATE:
        entry["reinvocationPolicy"] = "IfNeeded"
    return entry


def _entry_for_stored_policies(registration: Registration) -> Manifest:
    """Return the webhook that refuses stored policies with errors. This webhook must fail open: otherwise, no user
    could fix a policy while claimgate does not answer.
    """
    rules = tuple(
        WebhookRule(
            groups=(GROUP,),
            versions=(VERSION,),
            resources=tuple(sorted(map(plural_of_kind, kinds))),
            operations=("CREATE", "UPDATE"),
            scope=scope,
        )
        for kinds, scope in ((KINDS, "Cluster"), ((POLICY_EXCEPTION,), "Namespaced"))
    )
    entry = _webhook_entry(Phase.VALIDATE, Webhook(name="", rules=rules), registration)
    return {**entry, "name": STORED_POLICIES, "failurePolicy": FailurePolicy.IGNORE.value}


def _rule_entry(rule: WebhookRule) -> Manifest:
    return {
        "apiGroups": list(rule.groups),
        "apiVersions": list(rule.versions),
        "resources": list(rule.resources),
        "operations": list(rule.operations),
        "scope": rule.scope,
    }


def _client_config_at(client: Mapping[str, Any], path: str) -> Manifest:
    """The path is in the Service or at the end of the URL."""
    if "url" in client:
        return {**client, "url": client["url"].rstrip("/") + path}
    return {**client, "service": {**client["service"], "path": path}}


def _client_config(service: str, url: str) -> tuple[Manifest, list[str]]:
    """Return the client configuration without path and caBundle, and the namespaces to exclude.

    The Service's own namespace is excluded, because its Pods must start without the webhook.
    """
    if url:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            raise ConfigurationError(f"--url: expected https://HOST[:PORT][/PATH], found `{url}`")
        return {"url": url}, []
    namespace, _, rest = service.partition("/")
    name, _, port = rest.partition(":")
    if not namespace or not name or not (port or str(_PORTS)).isdecimal() or int(port or _PORTS) not in _VALID_PORTS:
        raise ConfigurationError(f"--service: expected NAMESPACE/NAME[:PORT], found `{service}`")
    return {"service": {"namespace": namespace, "name": name, "port": int(port or _PORTS)}}, [namespace]


def _check_names(flag: str, *names: str) -> None:
    for name in names:
        if dns1123_subdomain_errors(name):
            expected = "expected lower case letters, digits, dashes and dots"
            raise ConfigurationError(f"{flag}: `{name}` is not a valid name: {expected}")


def _read_ca_bundle(path: Path) -> bytes:
    try:
        content = read_whole(path)
    except OSError as error:
        raise ConfigurationError(f"--ca-bundle: {path}: {str(error.strerror).lower()}") from None
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ConfigurationError(f"--ca-bundle: {path} does not contain a PEM certificate")
    return content
