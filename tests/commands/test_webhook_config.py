"""`claimgate webhook-config` prints webhook configurations for its flags. Their rules include everything that the
policies match.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.yamldata import document, documents
from webhook import assembly
from webhook.cli import run_command_line
from webhook.export.lockout import INFRASTRUCTURE
from webhook.settings.shared import Settings
from webhook.workloads import table
from webhook.yamltext.yamlfile import dump

Capture = pytest.CaptureFixture[str]
OPTED_OUT = {"key": "claimgate.dev/admission", "operator": "NotIn", "values": ["disabled"]}
PEM = "-----BEGIN CERTIFICATE-----\n"
ONE = """\
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata:
  name: one
  annotations: {annotations}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [apps], apiVersions: [v1], operations: [{operation}], resources: [deployments]}}]
  {rest}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}Binding
metadata: {{name: one}}
spec: {{policyName: one{actions}}}
"""


def validating(annotations: str = "{}", operation: str = "CREATE") -> str:
    rest = 'validations: [{expression: "true"}]'
    kind, actions = "ValidatingAdmissionPolicy", ", validationActions: [Deny]"
    return ONE.format(kind=kind, annotations=annotations, operation=operation, rest=rest, actions=actions)


def printed(capsys: Capture, *flags: str) -> dict[str, dict[str, Any]]:
    """Return the first webhook of each printed configuration, by the kind of the configuration."""
    assert run_command_line(["webhook-config", *flags]) == 0
    found = {}
    for manifest in documents(capsys.readouterr().out):
        assert manifest["apiVersion"] == "admissionregistration.k8s.io/v1"
        found[manifest["kind"]] = manifest["webhooks"][0]
    return found


def test_both_configurations_have_common_fields(capsys: Capture) -> None:
    found = printed(capsys)
    assert list(found) == ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]
    for webhook in found.values():
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert (webhook["matchPolicy"], webhook["sideEffects"]) == ("Equivalent", "None")
        assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Ignore", 5)
        assert webhook["namespaceSelector"]["matchExpressions"] == [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": [*INFRASTRUCTURE, "claimgate-system"],
            },
            OPTED_OUT,
        ]
        assert len(webhook["name"].split(".")) >= 3
    validating, mutating = found.values()
    assert "reinvocationPolicy" not in validating
    assert mutating["reinvocationPolicy"] == "IfNeeded"
    assert validating["clientConfig"]["service"]["path"] == "/validate"
    assert mutating["clientConfig"]["service"]["path"] == "/mutate"


def test_the_service_and_the_exclusion_are_those_of_the_own_namespace(capsys: Capture) -> None:
    for webhook in printed(capsys, "--own-namespace", "gates").values():
        assert webhook["clientConfig"]["service"]["namespace"] == "gates"
        assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == [*INFRASTRUCTURE, "gates"]
    assert run_command_line(["webhook-config", "--own-namespace", "Gates!"]) == 2
    assert "--own-namespace: `Gates!` is not the name of a namespace" in capsys.readouterr().err


def _covered(rules: list[dict[str, Any]], group: str, version: str, resource: str, operation: str) -> bool:
    return any(
        {group, "*"} & set(rule["apiGroups"])
        and {version, "*"} & set(rule["apiVersions"])
        and {resource, "*"} & set(rule["resources"])
        and {operation, "*"} & set(rule["operations"])
        for rule in rules
    )


def test_every_kind_with_pod_templates_is_covered_in_both_phases(capsys: Capture) -> None:
    assert run_command_line(["webhook-config"]) == 0
    for manifest in documents(capsys.readouterr().out):
        webhook = {"rules": [rule for each in manifest["webhooks"] for rule in each["rules"]]}
        assert _covered(webhook["rules"], "", "v1", "pods", "CREATE")
        for row in table.load_table().rows:
            for version in row.versions:
                assert _covered(webhook["rules"], row.group, version, row.resource, "CREATE"), row
        for rule in webhook["rules"]:
            assert not {"*"} & set(rule["apiGroups"] + rule["resources"])
            # Volcano refuses the deletion of some queues
            assert "DELETE" not in rule["operations"] or rule["resources"] == ["queues"]


def test_kinds_that_no_policy_matches_are_not_registered(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(validating(operation="DELETE"))
    found = printed(capsys, "--only", str(tmp_path / "one.yaml"))
    assert list(found) == ["ValidatingWebhookConfiguration"]
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "resources": ["deployments"],
        "operations": ["DELETE"],
        "scope": "*",
    }
    assert found["ValidatingWebhookConfiguration"]["rules"] == [rule]


@pytest.mark.parametrize(
    ("phase", "kinds"),
    [
        ("validate", ["ValidatingWebhookConfiguration"]),
        ("mutate", ["MutatingWebhookConfiguration"]),
        ("both", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]),
    ],
)
def test_a_validating_policy_is_registered_in_its_phases(
    phase: str, kinds: list[str], capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "one.yaml").write_text(validating(f"{{claimgate.dev/phase: {phase}}}"))
    assert list(printed(capsys, "--only", str(tmp_path))) == kinds


FLAGS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "another service": (
        ["--service", "gate/door:8443"],
        {"clientConfig": {"service": {"namespace": "gate", "name": "door", "port": 8443, "path": "/validate"}}},
    ),
    "the namespace of the service is excluded": (
        ["--service", "gate/door", "--exclude-namespace", "infra"],
        {
            "namespaceSelector": {
                "matchExpressions": [
                    {
                        "key": "kubernetes.io/metadata.name",
                        "operator": "NotIn",
                        "values": [*INFRASTRUCTURE, "gate", "infra"],
                    },
                    OPTED_OUT,
                ]
            }
        },
    ),
    "an address": (
        ["--url", "https://gate.example:1/x/"],
        {"clientConfig": {"url": "https://gate.example:1/x/validate"}},
    ),
    "ignore": (["--failure-policy", "Ignore"], {"failurePolicy": "Ignore"}),
    "objects may opt out": (["--object-opt-out"], {"objectSelector": {"matchExpressions": [OPTED_OUT]}}),
    "timeout": (["--timeout", "3"], {"timeoutSeconds": 3}),
}


@pytest.mark.parametrize(("flags", "expected"), FLAGS.values(), ids=FLAGS.keys())
def test_flags(flags: list[str], expected: dict[str, Any], capsys: Capture) -> None:
    webhook = printed(capsys, *flags)["ValidatingWebhookConfiguration"]
    assert {key: webhook[key] for key in expected} == expected


def test_users_cannot_exclude_an_object_by_its_label(capsys: Capture) -> None:
    """Users write the labels of their own objects. The row `objects may opt out` above shows that this test can
    fail.
    """
    for webhook in printed(capsys).values():
        assert "objectSelector" not in webhook
        conditions = [each["expression"] for each in webhook.get("matchConditions", ())]
        assert not any("claimgate.dev/admission" in each for each in conditions)


def test_the_ca_bundle_is_written(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(PEM)
    for webhook in printed(capsys, "--ca-bundle", str(tmp_path / "ca.crt")).values():
        assert base64.b64decode(webhook["clientConfig"]["caBundle"]).decode() == PEM


def test_exempt_users_are_in_every_webhook_until_their_last_day(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "claimgate.yaml"
    rows = [f"{{users: [u], owner: us, reason: r, expires: '{year}-01-31'}}" for year in (2020, 2999)]
    file.write_text(f"exemptions: [{', '.join(rows)}]")
    assert run_command_line(["webhook-config", "--config", str(file)]) == 0
    printed = capsys.readouterr()
    for manifest in documents(printed.out):
        for webhook in manifest["webhooks"]:
            names = [each["name"] for each in webhook["matchConditions"] if "exempt" in each["name"]]
            assert names == ["not-exempt-1-until-2999-01-31"], webhook["name"]
    assert f"warning: {file}:1:14: exemptions[0]: expired on 2020-01-31 and has no effect" in printed.err


UNBOUND = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: v}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "true"}
"""
REFUSED = {
    "plain http": (["--url", "http://x"], "--url: expected https://HOST"),
    "an address with a query": (["--url", "https://x/?a=b"], "--url: expected https://HOST"),
    "an address with a user": (["--url", "https://u@x/"], "--url: expected https://HOST"),
    "a service without a namespace": (["--service", "door"], "--service: expected NAMESPACE/NAME[:PORT], found `door`"),
    "an invalid port": (["--service", "a/b:c"], "--service: expected NAMESPACE/NAME[:PORT]"),
    "no bundle": (["--ca-bundle", "nowhere"], "--ca-bundle: nowhere: no such file"),
    "an invalid bundle": (["--ca-bundle", "text"], "--ca-bundle: text does not contain a PEM certificate"),
    "a timeout that the API refuses": (["--timeout", "31"], "--timeout"),
    "a port that the API refuses": (
        ["--service", "a/b:99999"],
        "--service: expected NAMESPACE/NAME[:PORT], found `a/b:99999`",
    ),
    "a name that the API refuses": (["--name", "A_b"], "--name: `A_b` is not a valid name"),
    "a namespace that cannot exist": (
        ["--exclude-namespace", "a b"],
        "--exclude-namespace: `a b` is not a valid name",
    ),
    "a folder without policies": (["--only", "empty"], "empty: no policy found"),
    "policies without a binding": (["--only", "unbound.yaml"], "the loaded policies match nothing"),
}


@pytest.mark.parametrize(("flags", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_names_of_a_certificate_are_refused(
    flags: list[str], message: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").mkdir()
    (tmp_path / "unbound.yaml").write_text(UNBOUND)
    assert run_command_line(["webhook-config", *flags]) == 2
    assert message in capsys.readouterr().err


def test_rules_come_from_the_loaded_set_only() -> None:
    assert assembly.assemble_policies_and_context(Settings()).policies.policies


@pytest.mark.parametrize(
    ("reference", "narrowed"),
    [
        pytest.param({"name": "limits"}, {"resourceNames": ["limits"]}, id="a name"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}}, {}, id="a selector"),
    ],
)
def test_the_role_has_what_policies_look_up_under_its_own_name(
    tmp_path: Path, capsys: Capture, reference: Any, narrowed: Any
) -> None:
    rows = "- {group: example.org, versions: [v1], kind: Fish, resource: fish, templates: mutable}\n"
    (tmp_path / "rows.yaml").write_text(rows)
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p", "annotations": {"claimgate.dev/facts": "podSets"}},
        "spec": {
            "paramKind": {"apiVersion": "example.org/v1", "kind": "Fish"},
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "podSets.size() > 0"}],
        },
    }  # fmt: skip
    chosen = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": {"parameterNotFoundAction": "Allow", **reference}},
    }  # fmt: skip
    (tmp_path / "p.yaml").write_text(f"{dump(policy)}---\n{dump(chosen)}")
    named = ["--only", str(tmp_path / "p.yaml"), "--workloads", str(tmp_path / "rows.yaml"), "--name", "own"]
    assert run_command_line(["webhook-config", "--rbac", *named]) == 0
    role = document(capsys.readouterr().out)
    assert (role["kind"], role["metadata"]) == ("ClusterRole", {"name": "own"})
    verbs = ["get", "list", "watch"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": verbs},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": verbs,
            "resourceNames": ["claimgate-site", "trainer"],
        },
        {
            "apiGroups": ["apps"],
            "resources": ["deployments"],
            "verbs": verbs,
            "resourceNames": ["kubeflow-trainer-controller-manager"],
        },
        {"apiGroups": ["example.org"], "resources": ["fish"], "verbs": verbs, **narrowed},
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["clustertrainingruntimes", "trainingruntimes"],
            "verbs": verbs,
        },
    ]


def test_webhooks_that_are_left_out_are_named(capsys: Capture) -> None:
    assert run_command_line(["webhook-config"]) == 0
    assert (
        "without a device, a claim or a queue, so these rules do not check such objects: kueue-not-now/"
        in capsys.readouterr().err
    )
    assert run_command_line(["webhook-config", "--any-pod"]) == 0
    assert capsys.readouterr().err == ""
