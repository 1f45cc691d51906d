"""Checks that claimgate answers API servers in time. The check creates one Pod with a GPU, as a dry run.

For a dry run, API servers call every webhook and store nothing. With `failurePolicy: Ignore`, an API server does not
report a failed call. The check recognizes a failed call by the resource `gpu`, which claimgate translates. Without
the translation, kube-apiserver v1.36 refuses the Pod because of this name (ValidatePodCreate).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

from webhook.admission.fixtures import attributes_of_fixture
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.connection import Connection, ServerRefused
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.export.lockout import Namespaces
from webhook.manifests.label_selectors import compile_selector
from webhook.manifests.webhook_configurations import Webhook, WebhookConfiguration
from webhook.policy.policy_set import PolicySet

_LONGEST_S: Final = 60.0
"""Seconds to wait. A dry run has two phases, and an API server waits at most 30 seconds for each phase."""
_UNCHANGED: Final = "[gpu]: Invalid value"


def _restricted_pod_with_device(resource: str) -> dict[str, Any]:
    """Return a Pod with one device that satisfies the Pod security standard `restricted`."""
    container = {
        "name": "main",
        "image": "none",
        "resources": {"limits": {"cpu": "1", "memory": "1Gi", resource: "1"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "claimgate-dry-run"},
        "spec": {"securityContext": security, "containers": [container]},
    }


def check_answer_to_dry_run_pod(
    connection: Connection, configurations: Sequence[WebhookConfiguration], namespaces: Namespaces, *, is_changed: bool
) -> Iterator[str]:
    """Yield the problem if the answer to a dry run is wrong, late, missing or unknown.

    `is_changed` says whether the loaded policies translate `gpu` to a resource of the cluster.

    Raises:
        LookupFailed: the API server cannot be reached.
    """
    webhooks = [one for each in configurations for one in each.webhooks if _is_about_pods(one)]
    if not webhooks:
        return
    namespace = _common_namespace(webhooks, namespaces)
    if not namespace:
        yield "unknown, because the webhooks for Pods match no namespace"
        return
    started = time.monotonic()
    try:
        connection.post(
            f"/api/v1/namespaces/{namespace}/pods",
            _restricted_pod_with_device("gpu" if is_changed else "nvidia.com/gpu"),
            _LONGEST_S,
            {"dryRun": "All"},
        )
    except ServerRefused as refused:
        yield from _problems_of_refusal(refused, webhooks)
    yield from _warnings_about_duration(time.monotonic() - started, min(one.timeout_seconds for one in webhooks))


def _is_about_pods(webhook: Webhook) -> bool:
    return any("" in rule.api_groups and "pods" in rule.resources for rule in webhook.rules)


def _common_namespace(webhooks: Sequence[Webhook], namespaces: Namespaces) -> str:
    """Return a namespace that all webhooks select, `default` if possible; "" if there is none."""
    selectors = [compile_selector(webhook.namespace_selector) for webhook in webhooks]
    names = [name for name, labels in namespaces.items() if all(selector.matches(labels) for selector in selectors)]
    return min(names, key=lambda name: (name != "default", name), default="")


def _problems_of_refusal(refused: ServerRefused, webhooks: Sequence[Webhook]) -> Iterator[str]:
    """Yield the problem of a refusal. A denial by claimgate is an answer, and yields nothing."""
    if refused.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        yield f"none: {refused}"
    elif _UNCHANGED in str(refused):
        yield (
            "none, because `gpu` is still in the Pod: the API server cannot call claimgate, and its log says why under "
            "`failing open`; or claimgate changes nothing here, as under --enforcement-action=audit"
        )
    elif not any(f'"{one.name}" denied' in str(refused) for one in webhooks):
        yield f"unknown, because the Pod was refused for another reason: {refused}"


def _warnings_about_duration(took_s: float, waits_s: int) -> Iterator[str]:
    if took_s >= waits_s:
        yield (
            f"{took_s:.1f} seconds for all webhooks together, and API servers wait {waits_s} for each: look at "
            "claimgate_admission_webhook_admission_duration_seconds and at the way from API servers to the Pods"
        )


def translates_gpu_in_empty_cluster(loaded: PolicySet) -> bool:
    """Return whether the policies translate `gpu` in a cluster without any objects."""
    view = ClusterWithAssumedNamespaces(FilesCluster(()))
    patch = answer_request(
        attributes_of_fixture(_restricted_pod_with_device("gpu")), loaded, view, phase=Phase.MUTATE
    ).patch
    return any(str(one["path"]).startswith("/spec/containers/0/resources") for one in patch)
