"""Each addition of ARCHITECTURE.md is a file or a row, and works without anything else.

tests/report/test_formats.py adds an output format.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_policies import article, param, policies, said
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cli import run_command_line
from webhook.cluster.files import FilesCluster
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.policy.load import Options, load_documents
from webhook.workloads import table
from webhook.yamltext import yamlfile

ROW = "- {group: x.io, versions: [v1], kind: Batch, resource: batches, podSets: [{name: main, template: spec.pod}]}"
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: host-network, annotations: {claimgate.dev/expand: pods}}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations:
  - {expression: "!object.spec.?hostNetwork.orValue(false)", message: "spec.hostNetwork: must not be set"}
"""
BINDING = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: host-network}
spec: {policyName: host-network, validationActions: [Deny]}
"""
CASE = """
cases:
- name: the network of the node is denied
  input: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostNetwork: true, containers: [{name: a, image: a}]}}
  expect: {allowed: false, message: "spec.hostNetwork: must not be set"}
"""


def batch(**spec: JSON) -> JSON:
    containers = [{"name": "a", "image": "a"}]
    return {
        "apiVersion": "x.io/v1",
        "kind": "Batch",
        "metadata": {"name": "b", "namespace": "n"},
        "spec": {"pod": {"spec": {"containers": containers, **spec}}},
    }


def test_a_kind_is_a_row(tmp_path: Path) -> None:
    row = tmp_path / "kinds.yaml"
    row.write_text(ROW)
    kinds = table.load_table([row])
    found = load_documents(yamlfile.load(f"{POLICY}---{BINDING}"), Options(table=kinds))
    sent = attributes_of_object(batch(hostNetwork=True), kinds.row)
    (decision,) = validating_decisions(request_context(found, sent, FilesCluster()), Phase.VALIDATE)
    assert (decision.action, decision.path) == ("deny", "spec.pod.spec.hostNetwork")


def test_a_rule_is_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("policy.yaml", POLICY), ("binding.yaml", BINDING), ("suite.yaml", CASE)):
        (tmp_path / name).write_text(text)
    assert run_command_line(["test", str(tmp_path)]) == 0, capsys.readouterr()
    assert "1 of 1 passed" in capsys.readouterr().out


def test_a_rule_of_checks_is_a_record_and_a_function() -> None:
    (decision,) = said(policies(), article(), param())
    assert (decision.rule, decision.path) == ("shop/price-required", "data.price")


def test_a_fact_is_a_declaration() -> None:
    found = policies("- {expression: shop.shelf, message: no shelf}", "claimgate.dev/facts: shop", checks="shop")
    (decision,) = said(found, article(price="1"), param())
    assert (decision.action, decision.evaluation) == ("admit", "admit")
