"""Checks whether a cluster is ready for claimgate to fail closed, and why Pods behind a Service are not ready.

Each line names one thing that is missing or could not be read. A Pod's status is interpreted as kubelet and
kube-scheduler v1.36 write it. Events are not read.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.paths import get
from webhook.cluster.connection import Connection, ServerRefused
from webhook.commands.live_registration import STORED_POLICIES
from webhook.errors import LookupFailed
from webhook.manifests.webhook_configurations import ServiceReference, WebhookConfiguration
from webhook.rules.text import shorten_text
from webhook.server.tls import describe_wrong_period
from webhook.text.wording import counted, some_of

_IMAGE: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
"""Reasons of a container that waits because the node cannot get its image (pkg/kubelet/images/types.go)."""
_KILLED: Final = "OOMKilled"
_LONGEST: Final = 500
_MOUNTS: Final = frozenset({"ContainerCreating", "CreateContainerConfigError"})


def describe_unready_pods(pods: Sequence[dict[str, Any]], namespace: str) -> Iterator[str]:
    """Yield a line for each Pod that is not ready and is not terminating, with the reason.

    `namespace` is the namespace of the Pods, for the commands in the lines.
    """
    if not pods:
        yield f"there are no Pods: `kubectl -n {namespace} describe replicasets` says why none can be created"
        return
    for pod in pods:
        if "deletionTimestamp" not in pod["metadata"] and (reason := _reason_of_unready_pod(pod, namespace)):
            yield f"Pod {pod['metadata']['name']}: {reason}"


def _reason_of_unready_pod(pod: dict[str, Any], namespace: str) -> str:
    status = pod.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") == "True":
        return ""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"no node accepts it: {scheduled.get('message', '')}"
    name, containers = pod["metadata"]["name"], status.get("containerStatuses") or ()
    for container in containers:
        if waiting := (container.get("state") or {}).get("waiting"):
            return _reason_of_waiting_container(container, waiting, name, namespace)
    if not containers:
        return f"no kubelet has reported its status yet: `kubectl -n {namespace} describe pod {name}` shows its events"
    return f"it runs and is not ready: `kubectl -n {namespace} logs {name}` says why"


def _reason_of_waiting_container(container: dict[str, Any], waiting: dict[str, Any], pod: str, namespace: str) -> str:
    reason = waiting.get("reason", "")
    if reason in _IMAGE:
        image = container.get("image", "")
        return f"nodes cannot pull image `{image}` ({reason}): apply again with an image that they can pull"
    if reason in _MOUNTS:
        see = f"`kubectl -n {namespace} describe pod {pod}` names it"
        return f"it waits for something that it mounts, such as the Secret with the certificate ({reason}): {see}"
    ended = (container.get("lastState") or {}).get("terminated") or {}
    if error := _reason_in_log(str(ended.get("message") or "")):
        return f"it does not stay up ({reason}): {error}"
    if ended.get("reason") == _KILLED:
        return f"it does not stay up ({reason}): it needed more memory than its limit; raise resources.limits.memory"
    return f"it does not stay up ({reason}): `kubectl -n {namespace} logs --previous {pod}` says why"


def _reason_in_log(end_of_log: str) -> str:
    """Return the first error in the last lines of a log; without an error, the last line."""
    lines = [line.strip() for line in end_of_log.splitlines() if line.strip()]
    errors = [error for line in lines if (error := line if line.startswith("error: ") else _error_of_log_line(line))]
    return shorten_text((errors or lines[-1:] or [""])[0], _LONGEST)


def _error_of_log_line(line: str) -> str:
    """Return "" for a line that is not JSON, such as a line that the kubelet cut."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(fields, dict) or fields.get("level") != "error":
        return ""
    return f"{fields.get('message')}: {fields.get('error')}"


_SECRET: Final = "claimgate-certificates"  # noqa: S105 - its name
_VOLUME: Final = "tls"
"""The Deployment's volume with the certificate."""
_REPLICAS: Final = 2
_MOST_NAMES: Final = 5
_ANSWERED_BY_ONE: Final = "the ready replica answers all reviews"
_ANSWERED_BY_REST: Final = "the ready replicas answer all reviews"


class ClusterReader(Struct, frozen=True):
    """Reads objects of a cluster. Functions raise LookupFailed if they cannot read. `get_or_none` returns None for an
    object that does not exist.
    """

    connection: Connection

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        return list(self.connection.get(path, query).get("items") or ())

    def get_or_none(self, path: str) -> dict[str, Any] | None:
        try:
            return dict(self.connection.get(path, {}))
        except ServerRefused as refused:
            if refused.code == 404:
                return None
            raise


def steps_before_enforcing(
    cluster: ClusterReader, configurations: Sequence[WebhookConfiguration], role: Mapping[str, Any], expected: int
) -> Iterator[str]:
    """Yield a line for each thing to do before enforcing.

    `role` is the ClusterRole that the loaded policies need. `expected` is the expected number of configurations.
    """
    if len(configurations) < expected:
        yield f"{counted(expected, 'configuration')} expected, found {len(configurations)}: apply deploy/base"
    bundles = {
        one.client_config.service: one.client_config.ca_bundle for each in configurations for one in each.webhooks
    }
    services = {service: bundle for service, bundle in bundles.items() if service is not None}
    for service, bundle in services.items():
        name = f"certificate of Service {service.namespace}/{service.name}"
        problems = check_certificate(cluster, service, bundle, requests_without_replica(configurations))
        yield from prefix_lines_with_name(name, problems)
    if services or not bundles:  # a server with a URL is outside the cluster, and has the rights of its kubeconfig
        yield from prefix_lines_with_name(f"ClusterRole {role['metadata']['name']}", _check_applied_role(cluster, role))
    for service in services:  # last, because a problem above may be the cause
        name = f"Service {service.namespace}/{service.name}"
        yield from prefix_lines_with_name(
            name, check_service(cluster, service, requests_without_replica(configurations))
        )


def prefix_lines_with_name(name: str, lines: Iterator[str]) -> Iterator[str]:
    """Put the name of the object before each line. An object that cannot be read gets a line with the reason."""
    try:
        yield from (f"{name}: {line}" for line in lines)
    except LookupFailed as error:
        yield f"{name}: unknown, because it cannot be read: {error}"


def requests_without_replica(configurations: Sequence[WebhookConfiguration]) -> str:
    """Return what happens to requests while no replica answers, as the stored configurations say. The webhook for
    stored policies is left out, because it always fails open.
    """
    webhooks = [one for each in configurations for one in each.webhooks if one.name != STORED_POLICIES]
    match sorted({one.failure_policy for one in webhooks}):
        case ["Fail"]:
            return "the API server refuses each request that it would send to claimgate (failurePolicy: Fail)"
        case ["Fail", "Ignore"]:
            return "requests to webhooks with failurePolicy: Fail are refused, and all other requests pass unchecked"
        case _:
            return "all requests pass unchecked (failurePolicy: Ignore)"


def describe_ready_replicas(cluster: ClusterReader, configurations: Sequence[WebhookConfiguration]) -> Iterator[str]:
    """Yield the number of ready replicas behind each Service of our webhooks, and a line about unreadable objects.
    Webhooks with a URL have no line.
    """
    services = dict.fromkeys(one.client_config.service for each in configurations for one in each.webhooks)
    for service in filter(None, services):
        endpoints = _endpoints(cluster, service)
        ready = sum(map(_is_ready, endpoints))
        yield f"{ready} of {len(endpoints)} ready behind Service {service.namespace}/{service.name}"
        namespace = service.namespace
        for what, path in (
            ("Pods", f"/api/v1/namespaces/{namespace}/pods"),
            ("Deployment", _path_of_deployment(service)),
        ):
            try:
                cluster.connection.get(path, {"limit": "1"} if what == "Pods" else {})
            except LookupFailed as error:
                if not (isinstance(error, ServerRefused) and error.code == 404):
                    yield f"whether all replicas are ready is not known, because the {what} cannot be read: {error}"


def _endpoints(cluster: ClusterReader, service: ServiceReference) -> list[Any]:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{service.namespace}/endpointslices"
    slices = cluster.items(path, labelSelector=f"kubernetes.io/service-name={service.name}")
    return [one for each in slices for one in each.get("endpoints") or ()]


def _path_of_deployment(service: ServiceReference) -> str:
    return f"/apis/apps/v1/namespaces/{service.namespace}/deployments/{service.name}"


def _is_ready(endpoint: Mapping[str, Any]) -> bool:
    return (endpoint.get("conditions") or {}).get("ready", True) is not False


def check_service(cluster: ClusterReader, service: ServiceReference, without_replica: str) -> Iterator[str]:
    """Yield why Pods behind a Service are not ready, the number of ready replicas, and what happens to requests now.

    `without_replica` says what happens to requests while no replica is ready.
    """
    namespace = service.namespace
    stored = cluster.get_or_none(f"/api/v1/namespaces/{namespace}/services/{service.name}")
    if stored is None:
        yield "it does not exist: apply deploy/base"
        return
    ready = [one for one in _endpoints(cluster, service) if _is_ready(one)]
    expected = max(_REPLICAS, _wanted_replicas(cluster, service))
    meanwhile = without_replica if not ready else _ANSWERED_BY_ONE if len(ready) == 1 else _ANSWERED_BY_REST
    if len(ready) < expected:
        if (pods := _pods_behind_service(cluster, stored, namespace)) is not None:
            yield from describe_unready_pods(pods, namespace)
        yield f"{counted(len(ready), 'replica')} ready, {expected} expected; meanwhile {meanwhile}"
    else:
        others = _pods_if_readable(cluster, stored, namespace)
        if lines := list(describe_unready_pods(others, namespace)) if others else ():
            yield from lines
            yield f"{counted(len(ready), 'replica')} ready, and {counted(len(lines), 'Pod')} not; meanwhile {meanwhile}"
        if len({one.get("nodeName") for one in ready}) < _REPLICAS <= len(cluster.items("/api/v1/nodes")):
            yield "all replicas run on one node, and end with it: delete one Pod, so a new Pod runs on another node"


def _pods_behind_service(
    cluster: ClusterReader, service: Mapping[str, Any], namespace: str
) -> list[dict[str, Any]] | None:
    """Return None for a Service without a selector."""
    chosen = (service.get("spec") or {}).get("selector")
    if not chosen:
        return None
    selector = ",".join(f"{key}={value}" for key, value in chosen.items())
    return cluster.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)


def _pods_if_readable(cluster: ClusterReader, service: Mapping[str, Any], namespace: str) -> Sequence[dict[str, Any]]:
    """Return the Pods of a Service; empty if unreadable, which `describe_ready_replicas` reports."""
    with suppress(LookupFailed):
        return _pods_behind_service(cluster, service, namespace) or ()
    return ()


def _wanted_replicas(cluster: ClusterReader, service: ServiceReference) -> int:
    """Return spec.replicas of the Deployment with the name of the Service; 0 if unknown."""
    with suppress(LookupFailed):
        return int(get(cluster.get_or_none(_path_of_deployment(service)) or {}, ("spec", "replicas"), None) or 0)
    return 0


def check_certificate(
    cluster: ClusterReader, service: ServiceReference, bundle: str, without_replica: str
) -> Iterator[str]:
    """Yield what is wrong with the stored certificate.

    `bundle` is the caBundle for the Service, in base64. `without_replica` says what happens to requests while the API
    server cannot call the Service.
    """
    from certs import CertificateError
    from certs.issue import is_signed_by, read
    from certs.keep import split

    name = _name_of_secret(cluster, service)
    secret = cluster.get_or_none(f"/api/v1/namespaces/{service.namespace}/secrets/{name}")
    serving = base64.b64decode((secret or {}).get("data", {}).get("tls.crt", ""))
    if not serving:
        maker = "the Deployment claimgate-certificates creates it, and its log says why it did not"
        own = "if you use a certificate of your own, check that caBundle fits it"
        yield f"unknown, because no Secret {service.namespace}/{name} with tls.crt exists: {maker}; {own}"
        return
    try:
        is_trusted = any(is_signed_by(serving, one) for one in split(base64.b64decode(bundle)))
        facts = read(serving)[0]
    except (CertificateError, binascii.Error) as error:
        yield f"the certificate or the caBundle cannot be read: {error}"
        return
    wrong = describe_wrong_period(facts.not_before, facts.not_after, datetime.now(UTC))
    if wrong:
        yield wrong
    if wrong and not is_trusted:
        steps = "first replace the certificate, then inject the bundle of its authority with `claimgate certs inject`"
        see = "the Deployment claimgate-certificates takes the two steps, and its log says why it did not"
        yield f"no authority of the caBundle signed it either: {steps}; {see}"
    elif not is_trusted:
        own = "inject the bundle with `claimgate certs inject`, as the Deployment claimgate-certificates does"
        yield f"no authority of the caBundle signed it, so the API server does not trust it: {own}"
    if wrong or not is_trusted:
        yield f"a replica that serves it gets no reviews; while all replicas serve it, {without_replica}"
    host = f"{service.name}.{service.namespace}.svc"
    if host not in facts.names:
        yield f"the certificate is not for {host}: issue it with --service {service.namespace}/{service.name}"


def _name_of_secret(cluster: ClusterReader, service: ServiceReference) -> str:
    """Return the Secret that the Deployment with the Service's name mounts; otherwise the name in deploy/base."""
    path = _path_of_deployment(service)
    volumes = get(cluster.get_or_none(path) or {}, ("spec", "template", "spec", "volumes"), None) or ()
    mounted = (one["secret"].get("secretName") for one in volumes if one.get("name") == _VOLUME and one.get("secret"))
    return next(filter(None, mounted), _SECRET)


def _check_applied_role(cluster: ClusterReader, role: Mapping[str, Any]) -> Iterator[str]:
    name, api = role["metadata"]["name"], "/apis/rbac.authorization.k8s.io/v1"
    applied = cluster.get_or_none(f"{api}/clusterroles/{name}")
    granted = _granted_resources((applied or {}).get("rules") or ())
    missing_rights = sorted(
        {f"{resource}.{group}".rstrip(".") for group, resource, _ in _granted_resources(role["rules"]) - granted}
    )
    fix = "apply the output of `claimgate webhook-config --rbac`"
    if applied is None and missing_rights:
        yield f"it does not exist: {fix}"
    elif missing_rights:
        names = some_of(missing_rights, _MOST_NAMES)
        yield f"it does not allow to list and watch {counted(len(missing_rights), 'resource')}: {names}; {fix}"
    if all(one["roleRef"]["name"] != name for one in cluster.items(f"{api}/clusterrolebindings")):
        yield "no ClusterRoleBinding gives it to the server's ServiceAccount: apply deploy/base"


def _granted_resources(rules: Sequence[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """Return group, resource and name of the objects that rules allow to list and watch. Name "" means all objects."""
    return {
        (group, resource, name)
        for rule in rules
        if {"list", "watch"} <= set(rule.get("verbs") or ()) or "*" in (rule.get("verbs") or ())
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        for name in rule.get("resourceNames") or ("",)
    }
