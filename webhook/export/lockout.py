"""Finds the ways in which a webhook can block its cluster while it does not answer.

A cluster cannot start or be repaired without some objects, such as Pods of kube-system and of the webhook, leases,
nodes and certificates. A webhook that fails closed for these objects prevents its own recovery. Sources:
kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices, and the requests of kubelet,
kube-scheduler and kube-controller-manager v1.36.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import NAME_LABEL
from webhook.manifests.label_selectors import EVERYTHING, Labels, compile_selector
from webhook.manifests.models import NamedRule
from webhook.manifests.webhook_configurations import Webhook, WebhookConfiguration
from webhook.text.wording import counted

Namespaces: TypeAlias = Mapping[str, Labels]
"""The labels of namespaces by name. A namespace without an entry has only the label with its name."""

INFRASTRUCTURE: Final = (
    *("kube-system", "kube-public", "kube-node-lease"),
    *("calico-system", "tigera-operator", "kube-flannel", "metallb-system", "istio-system"),
    *("gpu-operator", "nvidia-gpu-operator", "nvidia-device-plugin", "nvidia-dra-driver-gpu", "kube-amd-gpu"),
    *("nvidia-network-operator", "node-feature-discovery", "inteldeviceplugins-system", "karpenter"),
    *("rook-ceph", "longhorn-system", "cert-manager"),
)
"""Namespaces without jobs of users. Their components restore nodes, networks, devices, volumes or certificates. The
names are those in the projects' installation instructions."""
_SYSTEM: Final = "kube-system"
_LEASES: Final = "kube-node-lease"
_LONGEST_TIMEOUT_S: Final = 15
"""A longer timeoutSeconds is reported, because controllers fall behind if each request waits longer. The default of API
servers is 10 s."""


@dataclass(frozen=True, slots=True)
class _CriticalRequest:
    """A request on which a cluster depends.

    `namespace` is "" for cluster-scoped objects. _OWN is the webhook's namespace, and _ANY a user's namespace without
    labels.
    """

    group: str
    resource: str
    operation: str
    namespace: str
    harm: str


_OWN: Final = "its own"
_ANY: Final = "any"
_NEEDS: Final = (
    _CriticalRequest(
        "",
        "pods",
        "CREATE",
        _SYSTEM,
        "no Pod of kube-system can be created, such as the DNS or the proxy of a new node",
    ),
    _CriticalRequest("", "pods", "CREATE", _OWN, "its own Pods cannot be created again"),
    _CriticalRequest(
        "apps", "deployments", "UPDATE", _OWN, "its own Deployment cannot be changed, so no new image can fix it"
    ),
    _CriticalRequest("apps", "replicasets", "CREATE", _OWN, "its own Deployment cannot roll out"),
    _CriticalRequest("", "secrets", "UPDATE", _OWN, "its own certificate cannot be renewed"),
    _CriticalRequest("", "pods/binding", "CREATE", _OWN, "its own Pods cannot be scheduled"),
    _CriticalRequest("", "pods/status", "UPDATE", _OWN, "kubelets cannot report that its own Pods run"),
    _CriticalRequest(
        "discovery.k8s.io", "endpointslices", "UPDATE", _OWN, "its own Service does not learn of new Pods"
    ),
    _CriticalRequest(
        "coordination.k8s.io", "leases", "UPDATE", _LEASES, "nodes cannot renew their leases and become NotReady"
    ),
    _CriticalRequest(
        "coordination.k8s.io", "leases", "UPDATE", _SYSTEM, "controllers and schedulers lose their leader"
    ),
    _CriticalRequest(
        "coordination.k8s.io", "leases", "UPDATE", _ANY, "controllers in other namespaces lose their leader"
    ),
    _CriticalRequest("", "pods/binding", "CREATE", _ANY, "no Pod can be scheduled"),
    _CriticalRequest("", "pods/status", "UPDATE", _ANY, "kubelets cannot report the status of Pods"),
    _CriticalRequest("", "nodes", "CREATE", "", "no node can join"),
    _CriticalRequest("", "nodes", "UPDATE", "", "no node can be labelled, tainted or drained"),
    _CriticalRequest("", "nodes", "DELETE", "", "no node that has failed can be removed"),
    _CriticalRequest("", "nodes/status", "UPDATE", "", "no node can report its state"),
    # a kubelet writes its CSINode before it reports Ready (pkg/volume/csi)
    _CriticalRequest("storage.k8s.io", "csinodes", "CREATE", "", "no new node becomes Ready"),
    _CriticalRequest("storage.k8s.io", "csinodes", "UPDATE", "", "no node can register a driver of volumes"),
    _CriticalRequest("", "namespaces", "UPDATE", "", "no namespace can be labelled, so none can be exempted"),
    _CriticalRequest("", "namespaces/status", "UPDATE", "", "no deletion of a namespace can begin"),
    _CriticalRequest("", "namespaces/finalize", "UPDATE", "", "no deletion of a namespace can end"),
    _CriticalRequest("authentication.k8s.io", "tokenreviews", "CREATE", "", "no token can be checked"),
    _CriticalRequest("authorization.k8s.io", "subjectaccessreviews", "CREATE", "", "no rights of users can be checked"),
    _CriticalRequest(
        "certificates.k8s.io", "certificatesigningrequests", "CREATE", "", "no kubelet gets a certificate"
    ),
    _CriticalRequest(
        "certificates.k8s.io",
        "certificatesigningrequests/approval",
        "UPDATE",
        "",
        "no kubelet certificate can be approved",
    ),
    _CriticalRequest(
        "certificates.k8s.io",
        "certificatesigningrequests/status",
        "UPDATE",
        "",
        "no kubelet certificate is signed",
    ),
)


@dataclass(frozen=True, slots=True)
class Danger:
    """One way in which a webhook can block its cluster."""

    configuration: str
    webhook: str
    harm: str
    fix: str


def sentences_about_dangers(dangers: Iterable[Danger]) -> Iterator[str]:
    """Yield one sentence for each cause, about all webhooks with the cause."""
    causes: dict[tuple[str, str], list[Danger]] = {}
    for each in dangers:
        causes.setdefault((each.harm, each.fix), []).append(each)
    for (harm, fix), dangers_of_cause in causes.items():
        webhooks = f"{dangers_of_cause[0].configuration}: {dangers_of_cause[0].webhook}"
        if len(dangers_of_cause) > 1:
            places = " and ".join(dict.fromkeys(each.configuration for each in dangers_of_cause))
            webhooks = f"{counted(len(dangers_of_cause), 'webhook')} of {places}"
        yield f"{webhooks}: {harm}; {fix}"


WHILE_SILENT: Final = "while the webhooks do not answer, these requests are refused:"


def sentences_about_refused_requests(
    configurations: Iterable[WebhookConfiguration], title: str = WHILE_SILENT, served: Container[str] | None = None
) -> Iterator[str]:
    """Yield lines about the requests that are refused while the webhooks of some configurations do not answer.

    A webhook with `failurePolicy: Ignore` refuses nothing. Resources with the same operations and the same names of
    matchConditions share a line. The last line names requests that are never refused.

    The configurations must have no dangers. `served` are the API groups of the cluster, or None. Other groups have no
    requests.
    """
    closed = [webhook for each in configurations for webhook in each.webhooks if webhook.failure_policy == "Fail"]
    if not closed:
        yield "no request is refused while the webhooks do not answer: each has failurePolicy Ignore"
        return
    yield title
    absent: set[str] = set()
    for (operations, conditions), names in _resources_by_conditions(closed).items():
        conditions_as_text = f" (matchConditions: {', '.join(conditions)})" if conditions else ""
        not_served = {name for name in names if served is not None and not _is_of_group(name, served)}
        absent |= not_served
        if resources := sorted(names - not_served):
            yield f"- {operations} of {', '.join(resources)}{conditions_as_text}"
    if absent:
        yield f"- and of {counted(len(absent), 'resource')} of APIs that this cluster does not serve yet"
    excluded = {name for webhook in closed for name in _excluded_namespaces(webhook)}
    everywhere = sorted(name for name in excluded if all(name in _excluded_namespaces(webhook) for webhook in closed))
    if everywhere:
        yield f"in all namespaces but {', '.join(everywhere)}"
    needs: dict[str, list[str]] = {}
    for need in _NEEDS:
        places = {"": "", _OWN: " in the namespace of the webhook", _ANY: " in namespaces of users"}
        place = places.get(need.namespace, f" in {need.namespace}")
        needs.setdefault(place, []).append(f"{need.operation} of {need.resource}")
    never_refused = "; ".join(f"{', '.join(each)}{place}" for place, each in needs.items())
    yield f"a cluster needs these requests to start, and no webhook of this check can refuse them: {never_refused}"


def _resources_by_conditions(webhooks: Iterable[Webhook]) -> dict[tuple[str, tuple[str, ...]], set[str]]:
    grouped: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for webhook in webhooks:
        conditions = tuple(each.name for each in webhook.match_conditions)
        for rule in webhook.rules:
            names = {".".join(filter(None, (each, group))) for group in rule.api_groups for each in rule.resources}
            grouped.setdefault((", ".join(sorted(rule.operations)), conditions), set()).update(names)
    return grouped


def _is_of_group(resource: str, groups: Container[str]) -> bool:
    """A name such as `jobs.batch` has a group. A name without a group is of the core group, which is always served."""
    group = resource.partition(".")[2]
    return group in ("", "*") or group in groups


def _excluded_namespaces(webhook: Webhook) -> frozenset[str]:
    selector = webhook.namespace_selector
    expressions = (selector.match_expressions or ()) if selector is not None else ()
    return frozenset(
        name
        for each in expressions
        if each.key == NAME_LABEL and each.operator == "NotIn"
        for name in each.values or ()
    )


def lockout_dangers(configuration: WebhookConfiguration, namespaces: Namespaces) -> Iterator[Danger]:
    """Yield every way in which a configuration can block the cluster. Any project's configuration is accepted.

    A webhook with `failurePolicy: Ignore` cannot block a cluster. matchConditions are assumed to be true. If the
    objectSelector of a webhook matches no object without labels, the webhook is called for few objects. Then only its
    caBundle and its timeout are checked.
    """
    place = f"{configuration.kind} {configuration.metadata.name}"
    for webhook in configuration.webhooks:
        if webhook.failure_policy == "Fail":
            for harm, fix in _dangers_of_webhook(webhook, namespaces):
                yield Danger(place, webhook.name, harm, fix)


def _dangers_of_webhook(webhook: Webhook, namespaces: Namespaces) -> Iterator[tuple[str, str]]:
    service = webhook.client_config.service
    if service is not None and not webhook.client_config.ca_bundle:
        yield (
            "no call can succeed, because there is no caBundle",
            "write clientConfig.caBundle, as `claimgate certs inject` does",
        )
    if webhook.timeout_seconds > _LONGEST_TIMEOUT_S:
        waits = f"while it does not answer, each request waits {webhook.timeout_seconds} seconds"
        yield waits, f"set timeoutSeconds to {_LONGEST_TIMEOUT_S} or less"
    if not compile_selector(webhook.object_selector).matches({}):
        return
    for need in _NEEDS:
        namespace = need.namespace
        if namespace == _OWN:
            if service is None:
                continue
            namespace = service.namespace
        labels = {} if namespace == _ANY else namespaces
        if any(_does_rule_match_request(rule, need) for rule in webhook.rules) and _selects_namespace(
            webhook, namespace, labels
        ):
            yield f"while it does not answer, {need.harm}", _fix_for_lockout(need, namespace)


def _does_rule_match_request(rule: NamedRule, need: _CriticalRequest) -> bool:
    """A rule with resourceNames matches few objects, and is left out."""
    if rule.resource_names or rule.scope == ("Cluster" if need.namespace else "Namespaced"):
        return False
    resource, _, sub = need.resource.partition("/")
    names = {need.resource, f"*/{sub}", f"{resource}/*", "*/*"} if sub else {resource, "*", "*/*"}
    return (
        not {need.group, "*"}.isdisjoint(rule.api_groups)
        and not {need.operation, "*"}.isdisjoint(rule.operations)
        and not names.isdisjoint(rule.resources)
    )


def _selects_namespace(webhook: Webhook, namespace: str, namespaces: Namespaces) -> bool:
    """Cluster-scoped objects are always selected."""
    chosen = compile_selector(webhook.namespace_selector)
    if not namespace or chosen == EVERYTHING:
        return True
    return chosen.matches(namespaces.get(namespace, {NAME_LABEL: namespace}))


def _fix_for_lockout(need: _CriticalRequest, namespace: str) -> str:
    if not namespace or namespace == _ANY:
        return f"leave {need.resource} out of its rules, or set failurePolicy to Ignore"
    return f"exclude namespace {namespace} in its namespaceSelector, or set failurePolicy to Ignore"
