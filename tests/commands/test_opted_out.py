"""`webhook-config --check --live` names the namespaces and objects that a label excludes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.server import ApiServer, page, resources
from webhook.cluster.connection import connect_to_cluster
from webhook.commands.enforcing import ClusterReader
from webhook.commands.opted_out import notes_about_opt_out
from webhook.manifests.webhook_configurations import WebhookConfiguration, parse_webhook_configuration

LABEL = {"claimgate.dev/admission": "disabled"}
OPTED_OUT = {"matchExpressions": [{"key": "claimgate.dev/admission", "operator": "NotIn", "values": ["disabled"]}]}
NAMESPACES = {"free": LABEL, "old": {}, "team": {"claimgate.dev/admission": "enabled"}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    status, body = resources(("pods", "Pod", True), ("pods/status", "Pod", True))
    for each in body["resources"]:
        each["verbs"] = ["list"]
    server.answers["/api/v1"] = status, body
    server.answers["/apis"] = 200, {"groups": []}
    named = [("a", LABEL), ("b", {}), ("c", LABEL)]
    server.objects["/api/v1/pods"] = [
        {"metadata": {"name": name, "namespace": "team", "labels": labels, "resourceVersion": "1"}}
        for name, labels in named
    ]
    yield server
    server.shutdown()
    server.server_close()


def configuration(**webhook: Any) -> WebhookConfiguration:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    client = {"url": "https://127.0.0.1:9"}
    return parse_webhook_configuration(
        {
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "claimgate"},
            "webhooks": [{"name": "a.b.c", "clientConfig": client, "rules": [rule], **webhook}],
        }
    )


@pytest.mark.parametrize(
    ("webhook", "effect"),
    [
        pytest.param({}, "has no effect on objects", id="only namespaces may opt out"),
        pytest.param({"objectSelector": OPTED_OUT}, "excludes them", id="objects may, too"),
    ],
)
def test_objects_with_the_opt_out_label_are_listed(
    webhook: dict[str, Any], effect: str, server: ApiServer, tmp_path: Path
) -> None:
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    written = "claimgate.dev/admission=disabled"
    assert list(notes_about_opt_out(cluster, [configuration(**webhook)], NAMESPACES)) == [
        f"note: API servers do not call claimgate for 1 namespace with the label {written}: free",
        f"note: 2 objects with the label {written}, which {effect}: Pod team/a, Pod team/c",
    ]


def test_kinds_that_cannot_be_listed_are_reported_as_unknown(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/api/v1/pods"] = 403, {"message": "pods is forbidden"}
    del server.objects["/api/v1/pods"]
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    (note,) = notes_about_opt_out(cluster, [configuration()], {})
    assert note.startswith("note: which objects have the label claimgate.dev/admission=disabled is not known: ")


def test_objects_without_the_label_get_no_finding(server: ApiServer, tmp_path: Path) -> None:
    server.objects["/api/v1/pods"] = []
    server.answers["/api/v1/pods"] = page()
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    assert list(notes_about_opt_out(cluster, [configuration()], {"old": {}})) == []
