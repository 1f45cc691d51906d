"""Alerts and dashboard use only metrics that the server exports, with their labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.commands.test_serve import policy, served
from tests.server.asgi import review_of
from tests.yamldata import document

MONITORING = Path(__file__).parents[2] / "deploy" / "overlays" / "monitoring"
SCRAPED = {"pod", "instance", "job", "namespace"}
"""Labels that a Prometheus adds to every target."""
API_SERVER = {
    "apiserver_admission_webhook_request_total": {"name", "type", "code", "operation", "rejected"},
    "apiserver_admission_webhook_fail_open_count": {"name", "type"},
    "apiserver_admission_webhook_rejection_count": {"name", "type", "operation", "error_type", "rejection_code"},
}
"""Metrics of kube-apiserver v1.36, k8s.io/apiserver pkg/admission/metrics/metrics.go."""
LABELLED = {
    "claimgate_policy_faults_total": {"policy", "checks", "type"},
    "claimgate_connections_aborted_total": {"reason"},
    "claimgate_uncaught_faults_total": {"type"},
    "claimgate_exception_days_left": {"what", "owner", "expires"},
}
"""Labels of series that a healthy server does not export."""


def queries() -> Iterator[tuple[str, str]]:
    for group in document(MONITORING / "alerts.yaml")["spec"]["groups"]:
        yield from ((rule["alert"], rule["expr"]) for rule in group["rules"])
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])


QUERIES = list(queries())


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the name and the labels of each metric that a server exports after it has denied and mutated something."""
    folder = tmp_path_factory.mktemp("served")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(policy("pods") + "---\n" + MUTATION)
    with served(folder, "--only", str(policies)) as server, server.client() as client:
        server.wait("ready")
        client.post("/validate", json=review_of())
        client.post("/mutate", json=review_of())
        text = client.get("/metrics").text
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        found.setdefault(family.name + ("_total" if family.type == "counter" else ""), set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


MUTATION = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels}
"""


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_a_dashboard_query_uses_only_exported_metrics(title: str, query: str, exported: dict[str, set[str]]) -> None:
    known = {**exported, **API_SERVER}
    names = re.findall(r"\b((?:claimgate|process|apiserver)_[a-z_]+)\b", query)
    assert names, title
    assert set(names) <= set(known)
    allowed = SCRAPED.union(*(known[name] | LABELLED.get(name, set()) for name in names))
    matched = re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", query)
    grouped = [
        label for labels in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", query) for label in labels.split(",")
    ]
    assert {label.strip() for label in (*matched, *grouped)} <= allowed


def test_every_alert_says_what_to_do() -> None:
    (group,) = document(MONITORING / "alerts.yaml")["spec"]["groups"]
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert {"summary", "description"} == rule["annotations"].keys(), rule["alert"]


def test_the_page_lists_every_alert() -> None:
    (group,) = document(MONITORING / "alerts.yaml")["spec"]["groups"]
    page = (MONITORING.parents[2] / "docs" / "monitoring.md").read_text().split("## Alerts")[1]
    expected = [tuple(map(_words, _row_of_alert(rule))) for rule in group["rules"]]
    listed = [tuple(map(_words, line.strip("| ").split(" | "))) for line in page.splitlines() if line.startswith("| `")]
    assert listed == expected, "write the rows of docs/monitoring.md anew from deploy/overlays/monitoring/alerts.yaml"


def _row_of_alert(rule: dict[str, Any]) -> tuple[str, str, str, str]:
    texts = rule["annotations"]
    return rule["alert"], rule["labels"]["severity"], texts["summary"], texts["description"]


def _words(text: str) -> list[str]:
    """Return the words of a text. A template of Prometheus counts as the name of its label, and the label `name` as
    `the webhook`.
    """
    named = re.sub(r"\{\{ \$labels\.name \}\}", "the webhook", text)
    return re.findall(r"\w+", re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"\1", named))


def test_panels_do_not_overlap() -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert all(x + 8 <= 24 for x, _ in places)
