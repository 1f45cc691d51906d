"""The text about Pods that are not ready, from the status that kubelets and schedulers write."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.commands.enforcing import describe_unready_pods, requests_without_replica
from webhook.commands.live_registration import STORED_POLICIES
from webhook.manifests.webhook_configurations import parse_webhook_configuration


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
        "Pod a: it runs and is not ready: `kubectl -n n logs a` says what it cannot read",
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
    "some of both": (
        ["Fail", "Ignore"],
        "webhooks with failurePolicy: Fail refuse their requests, and those of the others pass unchecked",
    ),
}


@pytest.mark.parametrize(("stored", "told"), FATES.values(), ids=FATES)
def test_what_becomes_of_requests_without_a_replica_depends_on_what_is_stored(stored: list[str], told: str) -> None:
    own = {"name": STORED_POLICIES, "failurePolicy": "Ignore"}  # it never fails closed
    webhooks = [{"name": "pods.validate.claimgate.dev", "failurePolicy": each} for each in stored]
    configuration = {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "claimgate"},
        "webhooks": [{**one, "clientConfig": {"url": "https://h"}} for one in (own, *webhooks)],
    }
    assert requests_without_replica([parse_webhook_configuration(configuration)]) == told
