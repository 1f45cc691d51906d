"""`claimgate webhook-config --check` on files, and for a role. tests/e2e/test_install.py runs it on clusters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.server import ApiServer
from webhook.cli import run_command_line
from webhook.cluster.connection import connect_to_cluster
from webhook.commands.enforcing import ClusterReader, steps_before_enforcing
from webhook.export.lockout import INFRASTRUCTURE
from webhook.manifests.webhook_configurations import parse_webhook_configuration

BASE = Path(__file__).parents[2] / "deploy" / "base"


def test_the_base_installation_cannot_block_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["webhook-config", "--check", str(BASE)]) == 0
    told = "no request is refused while the webhooks do not answer: each has failurePolicy Ignore\n"
    assert capsys.readouterr().out == told


def test_requests_that_enforce_refuses_without_an_answer_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shipped policies do not make API servers call the webhook for an object that a cluster needs to start."""
    bundle, file = tmp_path / "ca.crt", tmp_path / "enforced.yaml"
    bundle.write_text("-----BEGIN CERTIFICATE-----\n")
    assert run_command_line(["webhook-config", "--failure-policy", "Fail", "--ca-bundle", str(bundle)]) == 0
    file.write_text(capsys.readouterr().out)
    code = run_command_line(["webhook-config", "--check", str(file)])
    out = " ".join(capsys.readouterr().out.split())
    assert code == 0, out
    assert "- CREATE, UPDATE of pods (matchConditions: not-a-mirror-pod, not-bookkeeping, concerns-a-policy)" in out
    assert "workflows.argoproj.io" in out
    assert f"in all namespaces but {', '.join(sorted([*INFRASTRUCTURE, 'claimgate-system']))}" in out
    assert (
        "a cluster needs these requests to start, and no webhook of this check can refuse them: "
        "CREATE of pods, UPDATE of leases in kube-system;" in out
    )
    assert "CREATE of nodes, UPDATE of nodes, DELETE of nodes, UPDATE of nodes/status" in out


def test_failing_closed_without_a_ca_bundle_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["webhook-config", "--failure-policy", "Fail"]) == 0
    file = tmp_path / "enforced.yaml"
    file.write_text(capsys.readouterr().out)
    assert run_command_line(["webhook-config", "--check", str(file)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("no call can succeed, because there is no caBundle") == 1
    assert "10 webhooks of ValidatingWebhookConfiguration claimgate and MutatingWebhookConfiguration claimgate" in out


def test_fail_closed_without_deny_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    enforced, server = tmp_path / "enforced.yaml", tmp_path / "deployment.yaml"
    assert run_command_line(["webhook-config", "--failure-policy", "Fail"]) == 0
    enforced.write_text(capsys.readouterr().out)
    server.write_text((BASE / "deployment.yaml").read_text().replace("- --live\n", "- --enforcement-action=audit\n"))
    told = "Deployment claimgate has --enforcement-action=audit, and failurePolicy is Fail"
    run_command_line(["webhook-config", "--check", str(enforced), str(server)])
    assert told in " ".join(capsys.readouterr().out.split())
    for files in ([enforced, BASE / "deployment.yaml"], [BASE / "webhooks.yaml", server]):
        run_command_line(["webhook-config", "--check", *map(str, files)])
        assert "--enforcement-action" not in capsys.readouterr().out
    monkeypatch.setenv("CLAIMGATE_ENFORCEMENT_ACTION", "warn")
    assert run_command_line(["webhook-config", "--failure-policy", "Fail"]) == 2
    assert "with CLAIMGATE_ENFORCEMENT_ACTION `warn` refuses what claimgate cannot answer" in capsys.readouterr().err


def test_a_missing_or_incomplete_cluster_role_is_one_short_line(server: ApiServer, tmp_path: Path) -> None:
    names = [f"kind{number:02}" for number in range(40)]
    rule = {"apiGroups": ["batch"], "resources": names, "verbs": ["list", "watch"]}
    role = {"metadata": {"name": "claimgate"}, "rules": [rule]}
    api = "/apis/rbac.authorization.k8s.io/v1"
    server.answers[f"{api}/clusterrolebindings"] = 200, {"items": [{"roleRef": {"name": "claimgate"}}]}
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    fix = "apply the output of `claimgate webhook-config --rbac`"
    assert list(steps_before_enforcing(cluster, [], role, 0)) == [f"ClusterRole claimgate: it does not exist: {fix}"]
    applied = {**role, "rules": [{**rule, "resources": names[:33]}]}
    server.answers[f"{api}/clusterroles/claimgate"] = 200, applied
    lacking = "kind33.batch, kind34.batch, kind35.batch, kind36.batch, kind37.batch and 2 more"
    told = f"ClusterRole claimgate: it does not allow to list and watch 7 resources: {lacking}; {fix}"
    assert list(steps_before_enforcing(cluster, [], role, 0)) == [told]


def test_a_server_outside_the_cluster_needs_no_cluster_role(server: ApiServer, tmp_path: Path) -> None:
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    webhook = {"name": "a", "failurePolicy": "Ignore", "clientConfig": {"url": "https://localhost:18443/validate"}}
    kind = "ValidatingWebhookConfiguration"
    stored = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {}, "webhooks": [webhook]}
    role = {"metadata": {"name": "claimgate"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}
    assert list(steps_before_enforcing(cluster, [parse_webhook_configuration(stored)], role, 1)) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--check"], "--check needs either PATH or --live"),
        (["x.yaml"], "only --check reads the configurations of PATH"),
        (["--watch"], "--watch needs --live"),
        (["--watch", "--live", "--rbac"], "neither --check nor --rbac"),
        (["--check", "x.yaml", "--live"], "--check needs either PATH or --live"),
        (["--check", str(BASE / "service.yaml")], "there is no webhook configuration"),
    ],
)
def test_invalid_inputs_of_check_exit_with_2(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["webhook-config", *arguments]) == 2
    assert expected in capsys.readouterr().err
