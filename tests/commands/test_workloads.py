"""With one row in the file of `--workloads`, every verb knows a custom kind."""

import json

import pytest

from tests.yamldata import documents
from webhook.cli import run_command_line
from webhook.yamltext import yamlfile

ROW = """\
- group: example.org
  versions: [v1]
  kind: Fleet
  resource: fleets
  templates: mutable
  podSets:
  - {template: "spec.ships[].pod", count: [replicas]}
"""
CONTAINER = {"name": "c", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
FLEET = {
    "apiVersion": "example.org/v1",
    "kind": "Fleet",
    "metadata": {"name": "f", "namespace": "team"},
    "spec": {
        "ships": [{"name": "s", "pod": {"spec": {"containers": [CONTAINER], "resourceClaims": [{"name": "gpu"}]}}}]
    },
}
FOUND = "spec.ships[0].pod.spec.resourceClaims[0]: claim `gpu` must set resourceClaimName or resourceClaimTemplateName"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "rows.yaml").write_text(ROW)
    (tmp_path / "fleet.yaml").write_text(yamlfile.dump(FLEET))
    return ["--workloads", str(tmp_path / "rows.yaml")], str(tmp_path / "fleet.yaml")


def test_replay_and_audit_look_into_the_templates(files, capsys):
    flag, fleet = files
    assert run_command_line(["replay", fleet]) == 0
    capsys.readouterr()
    assert run_command_line(["replay", *flag, fleet, "-o", "json"]) == 1
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["message"].startswith(FOUND)
    assert run_command_line(["audit", *flag, fleet]) == 1
    assert FOUND in capsys.readouterr().out


def test_the_environment_names_the_file_too(files, capsys, monkeypatch):
    flag, fleet = files
    monkeypatch.setenv("CLAIMGATE_WORKLOADS", flag[1])
    assert run_command_line(["replay", fleet]) == 1
    assert FOUND in capsys.readouterr().out


def test_the_webhook_is_registered_for_the_kind(files, capsys):
    flag, _ = files
    assert run_command_line(["webhook-config", *flag]) == 0
    for configuration in documents(capsys.readouterr().out):
        (rule,) = [each for each in configuration["webhooks"][0]["rules"] if each["apiGroups"] == ["example.org"]]
        assert (rule["resources"], rule["apiVersions"]) == (["fleets"], ["v1"])


def test_exported_policies_name_the_kind(files, capsys):
    flag, _ = files
    assert run_command_line(["policies", "export", *flag]) == 0
    rules = [
        rule
        for made in documents(capsys.readouterr().out)
        for rule in made.get("spec", {}).get("matchConstraints", {}).get("resourceRules", ())
        if made["metadata"]["name"].startswith("claims-exactly-one-templates")
    ]
    assert "fleets" in [name for rule in rules if rule["apiGroups"] == ["example.org"] for name in rule["resources"]]


def test_a_row_for_a_known_kind_replaces_it(tmp_path, capsys):
    row = "- {group: batch, versions: [v1], kind: Job, resource: jobs, templates: mutable}\n"
    (tmp_path / "rows.yaml").write_text(row)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    (tmp_path / "job.yaml").write_text(yamlfile.dump({**job, "spec": {"template": FLEET["spec"]["ships"][0]["pod"]}}))
    assert run_command_line(["replay", str(tmp_path / "job.yaml")]) == 1
    assert run_command_line(["replay", str(tmp_path / "job.yaml"), "--workloads", str(tmp_path / "rows.yaml")]) == 0


def test_an_invalid_row_is_reported_before_the_run(tmp_path, capsys):
    (tmp_path / "rows.yaml").write_text(ROW.replace("templates: mutable", "templates: sometimes"))
    assert run_command_line(["audit", str(tmp_path), "--workloads", str(tmp_path / "rows.yaml")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"error: {tmp_path}/rows.yaml:5:3: [0].templates: "
        "expected one of mutable, later, suspended, immutable, found `sometimes`\n"
    )
