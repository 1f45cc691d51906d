"""A cluster accepts policy reports and exported policies as the commands write them, without changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.cli import run_command_line

ROOT = Path(__file__).parents[2]
REPORT_CRDS = ROOT / "tests" / "data" / "reports" / "crds"
pytestmark = pytest.mark.e2e


def test_policy_reports_are_stored_as_written(cluster, tmp_path):
    kubectl = cluster.server.kubectl
    kubectl("apply", "-f", str(REPORT_CRDS))
    kubectl("wait", "--for=condition=Established", "--timeout=240s", "-f", str(REPORT_CRDS))
    report = tmp_path / "report.yaml"
    run_command_line(["audit", str(ROOT / "deploy" / "samples" / "manifests"), "-o", f"policyreport={report}"])
    for line in report.read_text().splitlines():
        if line.startswith("  namespace: "):
            kubectl("create", "namespace", line.split()[1], code=None)
    kubectl("create", "--validate=strict", "-f", str(report))
    found = kubectl("get", "policyreports", "-A", "-o", "jsonpath={.items[*].metadata.name}").stdout.split()
    assert set(found) == {"claimgate"}


def test_exported_policies_are_accepted(cluster, capsys):
    run_command_line(["policies", "export"])
    exported = capsys.readouterr().out
    assert "ValidatingAdmissionPolicy" in exported
    cluster.server.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", given=exported)
