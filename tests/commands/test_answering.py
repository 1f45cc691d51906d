"""What `webhook-config --check` writes about the webhook's answer to a dry run. tests/e2e/test_operation.py and
test_install.py use a real API server.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.literals import policies
from webhook import assembly
from webhook.cluster.connection import NOTHING, ServerRefused
from webhook.commands.answering import check_answer_to_dry_run_pod, translates_gpu_in_empty_cluster
from webhook.manifests.webhook_configurations import parse_webhook_configuration
from webhook.settings.shared import Settings

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
SELECTOR = {"matchLabels": {"asked": "yes"}}
NAMESPACES = {"default": {}, "team": {"asked": "yes"}}
CHANGED = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}


class Answering:
    def __init__(self, answer: object, seconds: float = 0) -> None:
        self.answer, self.seconds = answer, seconds
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    def post(self, path: str, body: Any, _read_s: float, query: Mapping[str, str] = NOTHING) -> Any:
        self.asked.append((path, query))
        self.sent = body
        time.sleep(self.seconds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def told(server: Any, *, is_changed: bool = True, namespaces: Any = None, resources: str = "pods") -> list[str]:
    webhook = {
        "name": "pods.mutate.claimgate.dev",
        "clientConfig": {},
        "rules": [{**RULE, "resources": [resources]}],
        "timeoutSeconds": 1,
        "namespaceSelector": SELECTOR,
    }
    ours = parse_webhook_configuration(
        {"kind": "MutatingWebhookConfiguration", "metadata": {"name": "claimgate"}, "webhooks": [webhook]}
    )
    return list(check_answer_to_dry_run_pod(server, [ours], namespaces or NAMESPACES, is_changed=is_changed))


def test_an_answer_in_time_is_fine_for_a_namespace_with_the_webhook() -> None:
    server = Answering(CHANGED)
    assert told(server) == []
    assert server.asked == [("/api/v1/namespaces/team/pods", {"dryRun": "All"})]


REFUSED = {
    "claimgate denies, which is an answer": (
        403,
        'admission webhook "pods.mutate.claimgate.dev" denied the request: x',
        "",
    ),
    "another webhook denies": (
        403,
        'admission webhook "other" denied the request: x',
        "unknown, because the Pod was ref",
    ),
    "no right to create a Pod": (
        403,
        "pods is forbidden: User x cannot create resource",
        "unknown, because the Pod was refused",
    ),
    "claimgate does not answer": (
        500,
        'failed calling webhook "pods.mutate.claimgate.dev": EOF',
        "none: failed calling",
    ),
}


@pytest.mark.parametrize(("code", "message", "start"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_of_the_server_is_explained(code: int, message: str, start: str) -> None:
    found = told(Answering(ServerRefused(code, message)))
    assert len(found) == bool(start)
    assert all(one.startswith(start) and one.endswith(message) for one in found)


def test_a_late_answer_is_reported_with_both_times() -> None:
    (one,) = told(Answering(CHANGED, seconds=1))
    assert " seconds for all webhooks together, and API servers wait 1 for each: look at" in one


def test_a_pod_with_gpu_was_not_seen_by_the_webhook() -> None:
    said = "spec.containers[0].resources.limits[gpu]: Invalid value: must be a standard resource for containers"
    (one,) = told(Answering(ServerRefused(422, said)))
    assert one.startswith("none, because `gpu` is still in the Pod")


@pytest.mark.parametrize(("is_changed", "resource"), [(True, "gpu"), (False, "nvidia.com/gpu")])
def test_without_a_policy_about_gpu_the_test_pod_uses_a_valid_resource(is_changed: bool, resource: str) -> None:
    server = Answering(CHANGED)
    assert told(server, is_changed=is_changed) == []
    assert resource in server.sent["spec"]["containers"][0]["resources"]["limits"]


def test_without_a_called_namespace_no_dry_run_is_made() -> None:
    server = Answering(CHANGED)
    (one,) = told(server, namespaces={"default": {}})
    assert one.startswith("unknown, because the webhooks for Pods match no namespace")
    assert told(server, resources="jobs") == []
    assert server.asked == []


def test_only_the_shipped_policies_translate_gpu() -> None:
    assert translates_gpu_in_empty_cluster(assembly.assemble_policies_and_context(Settings()).policies)
    assert not translates_gpu_in_empty_cluster(policies())
