"""The text about Pods that are not ready. It uses the status that kubelets and schedulers write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.server import ApiServer
from webhook.cluster.connection import connect_to_cluster
from webhook.commands.enforcing import (
    ClusterReader,
    check_service,
    describe_ready_replicas,
    describe_unready_pods,
    requests_without_replica,
)
from webhook.commands.live_registration import STORED_POLICIES
from webhook.manifests.webhook_configurations import ServiceReference, parse_webhook_configuration


def _waiting(reason: str) -> dict[str, Any]:
    return {"containerStatuses": [{"image": "claimgate:0.1.0", "state": {"waiting": {"reason": reason}}}]}


_LOG = (
    '{"message": "cut\n[]\n{"level": "info", "message": "ready"}\n'
    '{"level": "error", "message": "the server does not start", "error": "no such option: --max-bodi"}\n'
)
STATES = {
    "an image that does not exist": (
        _waiting("ImagePullBackOff"),
        "Pod a: nodes cannot pull image `claimgate:0.1.0` (ImagePullBackOff): apply again with an image that they can pull",
    ),
    "a Secret that is missing": (
        _waiting("ContainerCreating"),
        (
            "Pod a: it waits for something that it mounts, such as the Secret with the certificate (ContainerCreating): "
            "`kubectl -n n describe pod a` names it"
        ),
    ),
    "a process that ends": (
        _waiting("CrashLoopBackOff"),
        "Pod a: it does not stay up (CrashLoopBackOff): `kubectl -n n logs --previous a` says why",
    ),
    "a process that ends with a reason": (
        {
            "containerStatuses": [
                {
                    **_waiting("CrashLoopBackOff")["containerStatuses"][0],
                    "lastState": {"terminated": {"reason": "Error", "message": "a note\nerror: one\nerror: two\n"}},
                }
            ]
        },
        "Pod a: it does not stay up (CrashLoopBackOff): error: one",
    ),
    "a process that ends with a line of its log": (
        {
            "containerStatuses": [
                {
                    **_waiting("CrashLoopBackOff")["containerStatuses"][0],
                    "lastState": {"terminated": {"reason": "Error", "message": _LOG}},
                }
            ]
        },
        "Pod a: it does not stay up (CrashLoopBackOff): the server does not start: no such option: --max-bodi",
    ),
    "a process that takes more memory than it may": (
        {
            "containerStatuses": [
                {
                    **_waiting("CrashLoopBackOff")["containerStatuses"][0],
                    "lastState": {"terminated": {"reason": "OOMKilled"}},
                }
            ]
        },
        (
            "Pod a: it does not stay up (CrashLoopBackOff): it needed more memory than its limit; "
            "raise resources.limits.memory"
        ),
    ),
    "no room": (
        {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]},
        "Pod a: no node accepts it: 0/3 nodes are available",
    ),
    "a process that cannot read the cluster": (
        {
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [{"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
        },
        "Pod a: it runs and is not ready: `kubectl -n n logs a` says why",
    ),
    "a status that is not written yet": (
        {},
        "Pod a: no kubelet has reported its status yet: `kubectl -n n describe pod a` shows its events",
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_a_pod_says_why_it_is_not_ready(state: str) -> None:
    status, expected = STATES[state]
    ending = {"metadata": {"name": "b", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": status}
    assert list(describe_unready_pods([{"metadata": {"name": "a"}, "status": status}, ending], "n")) == [expected]


def test_a_ready_pod_is_not_named() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"state": {"running": {}}}]}
    assert list(describe_unready_pods([{"metadata": {"name": "a"}, "status": status}], "n")) == []


def test_missing_pods_are_reported() -> None:
    (told,) = describe_unready_pods([], "n")
    assert told.startswith("there are no Pods")


FATES = {
    "base": (["Ignore", "Ignore"], "all requests pass unchecked (failurePolicy: Ignore)"),
    "enforce": (
        ["Fail", "Fail"],
        "the API server refuses each request that it would send to claimgate (failurePolicy: Fail)",
    ),
    "one webhook that fails open and one that fails closed": (
        ["Fail", "Ignore"],
        "requests to webhooks with failurePolicy: Fail are refused, and all other requests pass unchecked",
    ),
}


@pytest.mark.parametrize(("stored", "told"), FATES.values(), ids=FATES)
def test_the_stored_failure_policy_decides_about_requests_without_a_replica(stored: list[str], told: str) -> None:
    own = {"name": STORED_POLICIES, "failurePolicy": "Ignore"}  # the webhook for stored policies never fails closed
    webhooks = [{"name": "pods.validate.claimgate.dev", "failurePolicy": each} for each in stored]
    configuration = {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "claimgate"},
        "webhooks": [{**one, "clientConfig": {"url": "https://h"}} for one in (own, *webhooks)],
    }
    assert requests_without_replica([parse_webhook_configuration(configuration)]) == told


SERVICE = ServiceReference(namespace="n", name="claimgate")
NAMESPACED = "/api/v1/namespaces/n"


def _endpoints(*ready: bool) -> dict[str, Any]:
    endpoints = [{"conditions": {"ready": one}, "nodeName": f"node-{index}"} for index, one in enumerate(ready)]
    return {"items": [{"endpoints": endpoints}]}


def _pod(name: str, *, ready: bool) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": {"name": name}, "status": {"conditions": conditions, "containerStatuses": [{"state": {}}]}}


def _cluster(server: ApiServer, folder: Path, replicas: int, *ready: bool) -> ClusterReader:
    """Return a reader of a cluster with a Deployment, a Service that selects its Pods, and one Pod for each value of
    `ready`.
    """
    names = (*"abc",)[: len(ready)]
    server.answers |= {
        f"{NAMESPACED}/services/claimgate": (200, {"spec": {"selector": {"a": "b"}}}),
        "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices": (200, _endpoints(*ready)),
        "/apis/apps/v1/namespaces/n/deployments/claimgate": (200, {"spec": {"replicas": replicas}}),
        f"{NAMESPACED}/pods": (200, {"items": [_pod(name, ready=one) for name, one in zip(names, ready, strict=True)]}),
        "/api/v1/nodes": (200, {"items": [{}, {}]}),
    }
    return ClusterReader(connect_to_cluster(server.kubeconfig(folder)))


UNREADY = "Pod c: it runs and is not ready: `kubectl -n n logs c` says why"
BEHIND = {
    "two of two": (2, (True, True), []),
    "an unready Pod beside two ready ones": (
        2,
        (True, True, False),
        [UNREADY, "2 replicas ready, and 1 Pod not; meanwhile the ready replicas answer all reviews"],
    ),
    "two of three": (
        3,
        (True, True, False),
        [UNREADY, "2 replicas ready, 3 expected; meanwhile the ready replicas answer all reviews"],
    ),
    "a third Pod that does not exist": (
        3,
        (True, True),
        ["2 replicas ready, 3 expected; meanwhile the ready replicas answer all reviews"],
    ),
    "one replica is ready, but two are wanted": (
        1,
        (True,),
        ["1 replica ready, 2 expected; meanwhile the ready replica answers all reviews"],
    ),
}


@pytest.mark.parametrize(("replicas", "ready", "told"), BEHIND.values(), ids=BEHIND)
def test_each_replica_that_is_not_ready_is_named(
    replicas: int, ready: tuple[bool, ...], told: list[str], server: ApiServer, tmp_path: Path
) -> None:
    cluster = _cluster(server, tmp_path, replicas, *ready)
    assert list(check_service(cluster, SERVICE, "all pass")) == told


def test_replicas_that_may_not_be_read_are_not_known(server: ApiServer, tmp_path: Path) -> None:
    cluster = _cluster(server, tmp_path, 2, True, True)
    client = {"clientConfig": {"service": {"namespace": "n", "name": "claimgate"}}}
    webhook = {
        "name": "a.claimgate.dev",
        "rules": [],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **client,
    }
    kind = "ValidatingWebhookConfiguration"
    ours = [parse_webhook_configuration({"kind": kind, "metadata": {"name": "claimgate"}, "webhooks": [webhook]})]
    assert list(describe_ready_replicas(cluster, ours)) == ["2 of 2 ready behind Service n/claimgate"]
    for path in (f"{NAMESPACED}/pods", "/apis/apps/v1/namespaces/n/deployments/claimgate"):
        server.answers[path] = 403, {"message": "forbidden"}
    assert list(check_service(cluster, SERVICE, "all pass")) == []
    first, pods, deployment = describe_ready_replicas(cluster, ours)
    assert first == "2 of 2 ready behind Service n/claimgate"
    assert pods.startswith("whether all replicas are ready is not known, because the Pods cannot be read: ")
    assert deployment.startswith("whether all replicas are ready is not known, because the Deployment cannot be read: ")
