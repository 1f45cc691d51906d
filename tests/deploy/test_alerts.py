"""Each alert fires for the fault that it names, and not for similar situations, as promtool evaluates it.

tests/e2e/test_prometheus.py provokes faults of a real installation.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.yamldata import document

RULES = Path(__file__).parents[2] / "deploy" / "overlays" / "monitoring" / "alerts.yaml"
PROGRAM = "promtool"


@dataclass(frozen=True)
class Alert:
    """A test of one alert. Series are in the notation of promtool, with one sample for each minute."""

    at: str
    """The times at which the alert must fire, after the first sample."""
    fires: Mapping[str, str]
    silent: Mapping[str, str]
    """A similar situation without the fault"""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the alert that fires, in addition to its severity."""


A, B = '{pod="a"}', '{pod="b"}'
CALLS = "claimgate_admission_webhook_request_total"
TOOK = "claimgate_admission_webhook_admission_duration_seconds_bucket"
CHECKED = "claimgate_validating_admission_policy_check_total"
REJECTED = "apiserver_admission_webhook_rejection_count"
WEBHOOK = 'name="pods.claimgate.dev"'
ALERTS = {
    "ClaimgateAbsent": Alert("6m", {}, {f"claimgate_build_info{A}": "1+0x60"}),
    "ClaimgateOneReplica": Alert(
        "16m",
        {f"claimgate_build_info{A}": "1+0x60"},
        {f"claimgate_build_info{A}": "1+0x60", f"claimgate_build_info{B}": "_x5 1+0x55"},
    ),
    "ClaimgateGoesUnasked": Alert(
        "30m",
        {f"apiserver_admission_webhook_fail_open_count{{{WEBHOOK}}}": "0+1x60"},
        {
            f"apiserver_admission_webhook_fail_open_count{{{WEBHOOK}}}": "7+0x60",
            'apiserver_admission_webhook_fail_open_count{name="other.example"}': "0+1x60",
        },
        {"name": "pods.claimgate.dev"},
    ),
    "ClaimgateOutageRefuses": Alert(
        "10m",
        {f'{REJECTED}{{error_type="calling_webhook_error",{WEBHOOK}}}': "0+1x60"},
        {f'{REJECTED}{{error_type="no_error",{WEBHOOK}}}': "0+1x60"},
        {"name": "pods.claimgate.dev"},
    ),
    "ClaimgateNotReady": Alert(
        "11m",
        {f"claimgate_ready{A}": "0+0x60", f"claimgate_ready{B}": "1+0x60"},
        {f"claimgate_ready{A}": "0 0 0 0 0 1+0x55"},
        {"pod": "a"},
    ),
    "ClaimgateRefusesCalls": Alert(
        "25m",
        {f'{CALLS}{{code="200"}}': "0+90x60", f'{CALLS}{{code="500"}}': "0+10x60"},
        {f'{CALLS}{{code="200"}}': "0+90x60", f'{CALLS}{{code="400"}}': "0+10x60"},
    ),
    "ClaimgateSlow": Alert(
        "30m",
        {f'{TOOK}{{le="1"}}': "0+90x60", f'{TOOK}{{le="2.5"}}': "0+100x60", f'{TOOK}{{le="+Inf"}}': "0+100x60"},
        {f'{TOOK}{{le="1"}}': "0+100x60", f'{TOOK}{{le="2.5"}}': "0+100x60", f'{TOOK}{{le="+Inf"}}': "0+100x60"},
    ),
    "ClaimgatePolicyFails": Alert(
        "35m",
        {f'{CHECKED}{{policy="p",error_type="invalid_error"}}': "0+1x60"},
        {f'{CHECKED}{{policy="p",error_type="no_error"}}': "0+1x60"},
        {"policy": "p"},
    ),
    "ClaimgateLivePolicyBroken": Alert(
        "11m",
        {f"claimgate_live_policies_failing{A}": "2+0x60"},
        {f"claimgate_live_policies_failing{A}": "2 2 2 0+0x57"},
    ),
    "ClaimgateFault": Alert(
        "61m",
        {"claimgate_uncaught_faults_total{pod='a',type='KeyError'}": "_x59 1+0x60"},
        {"claimgate_uncaught_faults_total{pod='a',type='KeyError'}": "1+0x120"},
        {"pod": "a", "type": "KeyError"},
    ),
    "ClaimgateReloadFailed": Alert(
        "11m",
        {'claimgate_last_reload_successful{what="policies"}': "0+0x60"},
        {'claimgate_last_reload_successful{what="policies"}': "1+0x60"},
        {"what": "policies"},
    ),
    "ClaimgateExceptionEnds": Alert(
        "61m",
        {"claimgate_exception_days_left{what='exception',owner='a',expires='2027-01-31',pod='a'}": "14+0x120"},
        {
            "claimgate_exception_days_left{what='exception',owner='a',expires='2027-01-31',pod='a'}": "15+0x120",
            "claimgate_exception_days_left{what='PolicyException',owner='a',expires='2027-01-31',pod='a'}": "3+0x120",
        },
        {"what": "exception", "owner": "a", "expires": "2027-01-31"},
    ),
    "ClaimgateViewStale": Alert(
        "20m",
        {f"claimgate_cluster_view_age_seconds{A}": "0+60x60"},
        {f"claimgate_cluster_view_age_seconds{A}": "120+0x60"},
        {"pod": "a"},
    ),
    "ClaimgateViewFull": Alert(
        "10m",
        {f"claimgate_cluster_view_dropped_total{A}": "0 0 1+0x60"},
        {f"claimgate_cluster_view_dropped_total{A}": "3+0x60"},
        {"pod": "a"},
    ),
    "ClaimgateObjectUnreadable": Alert(
        "1m",
        {f"claimgate_cluster_view_unreadable_objects{A}": "1+0x60"},
        {f"claimgate_cluster_view_unreadable_objects{A}": "0+0x60"},
        {"pod": "a"},
    ),
    "ClaimgateParamsMistaken": Alert(
        "6m", {f"claimgate_params_mistaken{A}": "1+0x60"}, {f"claimgate_params_mistaken{A}": "1 1 0+0x58"}
    ),
    "ClaimgateCertificateEnds": Alert(
        "61m",
        {f"claimgate_certificate_expiry_seconds{A}": "1000000+0x120"},
        {f"claimgate_certificate_expiry_seconds{A}": "2000000+0x120"},
    ),
    "ClaimgateLogLinesLost": Alert(
        "25m",
        {f"claimgate_log_lines_dropped_total{A}": "0+1x60"},
        {f"claimgate_log_lines_dropped_total{A}": "5+0x60"},
        {"pod": "a"},
    ),
}
HEALTHY = {
    **{f"claimgate_build_info{one}": "1+0x120" for one in (A, B)},
    **{f"claimgate_ready{one}": "1+0x120" for one in (A, B)},
    **{f"claimgate_cluster_view_age_seconds{one}": "0 60 120 30 90 0+10x12 0+1x100" for one in (A, B)},
    **{f"claimgate_certificate_expiry_seconds{one}": "7776000+0x120" for one in (A, B)},
    "apiserver_admission_webhook_fail_open_count{name='pods.claimgate.dev'}": "3+0x120",
    f"{REJECTED}{{error_type='no_error',{WEBHOOK}}}": "0+5x120",
    f"{REJECTED}{{error_type='calling_webhook_error',name='other.example'}}": "0+5x120",
    f"{CALLS}{{code='200'}}": "0+500x120",
    f"{CALLS}{{code='400'}}": "0+5x120",
    **{f"{TOOK}{{le='{le}'}}": "0+500x120" for le in ("0.1", "1", "+Inf")},
    **{f"{CHECKED}{{policy='p',error_type='{one}'}}": "0+500x120" for one in ("no_error", "matching_error")},
    **{
        f"claimgate_{name}{A}": "0+0x120"
        for name in (
            "live_policies_failing",
            "cluster_view_dropped_total",
            "cluster_view_unreadable_objects",
            "params_mistaken",
            "log_lines_dropped_total",
        )
    },
    **{f"claimgate_last_reload_successful{{what='{one}'}}": "1+0x120" for one in ("policies", "configuration")},
    "claimgate_exception_days_left{what='exemption',owner='a',expires='2027-01-31'}": "60+0x120",
}
"""Two hours of a busy cluster without a fault of claimgate."""


def _rules() -> dict[str, dict[str, dict[str, str]]]:
    (group,) = document(RULES)["spec"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_every_alert_has_a_test_row() -> None:
    assert list(ALERTS) == list(_rules()), "add a row to ALERTS: what fires it, and what resembles the fault"


def _with_labels(text: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels[found[1]], text)


def _trials(name: str, alert: Alert, rule: Mapping[str, Mapping[str, str]]) -> list[dict[str, object]]:
    fired = {
        "exp_labels": {**alert.labels, **rule["labels"]},
        "exp_annotations": {key: _with_labels(text, alert.labels) for key, text in rule["annotations"].items()},
    }
    return [
        {
            "name": f"{name}: {what}",
            "interval": "1m",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "alert_rule_test": [{"alertname": name, "eval_time": alert.at, "exp_alerts": expected}],
        }
        for what, series, expected in (("fires", alert.fires, [fired]), ("silent", alert.silent, []))
    ]


def _healthy() -> dict[str, object]:
    series = [{"series": key, "values": values} for key, values in HEALTHY.items()]
    silent: list[dict[str, object]] = [
        {"alertname": name, "eval_time": at, "exp_alerts": []} for name in ALERTS for at in ("20m", "65m", "2h")
    ]
    return {"name": "a healthy cluster", "interval": "1m", "input_series": series, "alert_rule_test": silent}


def test_the_healthy_cluster_has_the_metrics_of_every_alert() -> None:
    named = {
        word for rule in _rules().values() for word in re.findall(r"\b(?:claimgate|apiserver)_\w+", str(rule["expr"]))
    }
    # a server without an error has no such series
    faults = {"claimgate_policy_faults_total", "claimgate_uncaught_faults_total"}
    assert {key.partition("{")[0] for key in HEALTHY} == named - faults


def promtool(folder: Path, *arguments: str) -> str:
    """Run promtool, which must succeed. Skip the test if there is no promtool."""
    program = shutil.which(PROGRAM, path=os.environ.get("CLAIMGATE_VALIDATORS")) or shutil.which(PROGRAM)
    if program is None:
        pytest.skip(f"no {PROGRAM}: neither on the PATH nor in the folder that CLAIMGATE_VALIDATORS names")
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
def test_prometheus_reads_every_rule(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": document(RULES)["spec"]["groups"]}))
    assert f"{len(ALERTS)} rules" in promtool(tmp_path, "check", "rules", "--lint-fatal", "rules.yaml")


@pytest.mark.nightly
def test_alerts_fire_only_for_their_own_fault(tmp_path: Path) -> None:
    rules = _rules()
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": document(RULES)["spec"]["groups"]}))
    trials = [trial for name, alert in ALERTS.items() for trial in _trials(name, alert, rules[name])]
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [*trials, _healthy()]}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests))
    promtool(tmp_path, "test", "rules", "tests.yaml")
