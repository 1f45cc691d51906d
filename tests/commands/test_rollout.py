"""`claimgate rollout` lists requests that would be refused with enforce. It reads metrics, the server's log and an
audit log.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.literals import pod, policies, request, shipped_policies, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cli import run_command_line
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.evaluation.review_options import ReviewOptions
from webhook.server.counters import Counters
from webhook.server.metrics import Exposition
from webhook.server.review_log import log_fields_of_review
from webhook.settings.values import EnforcementAction

Capture = pytest.CaptureFixture[str]
CLUSTER = ClusterWithAssumedNamespaces(FilesCluster(()))
NOW = datetime.now(UTC)
METRIC = 'claimgate_broken_rules_total{rule="a",enforcement_action="would_deny"} '


def asked(name: str, **resources: str) -> Attributes:
    obj = pod(containers=[{"name": "c", "image": "i", "resources": {"limits": resources}}])
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}]
    return request({**obj, "metadata": {**obj["metadata"], "name": name, "ownerReferences": owner}})


def answered(attributes: Attributes, phase: Phase, most: EnforcementAction) -> Any:
    options = ReviewOptions(enforcement_action=most)
    return answer_request(
        attributes, shipped_policies("gpu-portable", "gpu-limits"), CLUSTER, phase=phase, options=options
    )


def log_lines(attributes: Attributes, most: EnforcementAction, days: int) -> list[str]:
    head = {"time": (NOW - timedelta(days=days)).isoformat(), "message": "review"}
    return [
        json.dumps({**head, **log_fields_of_review(attributes, each, answered(attributes, each, most), 0.1)})
        for each in Phase
    ]


@pytest.mark.parametrize("most", ["warn", "audit"])
def test_a_log_says_what_enforce_would_refuse(most: EnforcementAction, tmp_path: Path, capsys: Capture) -> None:
    requests = [(asked(name, gpu="all"), days) for name, days in (("old", 9), ("first", 3), ("newest", 1))]
    requests.append((asked("good", **{"nvidia.com/gpu": "1"}), 0))
    written = [each for attributes, days in requests for each in log_lines(attributes, most, days)]
    file = tmp_path / "server.log"
    file.write_text("\n".join([*written, "no JSON", '{"message": "ready"}']))
    assert run_command_line(["rollout", str(file), "--since", "7d"]) == 1
    out = capsys.readouterr().out
    assert "       2  gpu-portable/all\n" in out
    assert "namespaces: team 2\n" in out
    assert "owners: ReplicaSet/web 2\n" in out
    assert "CREATE Pod team/newest" in out
    assert "`levels: {rules: {gpu-portable/all: warn}}` in claimgate.yaml" in out
    assert "first" not in out
    assert run_command_line(["rollout", str(file), "--since", "7d", "-o", "json"]) == 1
    (named,) = [json.loads(capsys.readouterr().out)["wouldDeny"]]
    assert {rule: each["requests"] for rule, each in named.items()} == {"gpu-portable/all": 2}


def test_denying_and_warning_rules_are_separate_policies(tmp_path: Path, capsys: Capture) -> None:
    """An installation in mode audit records such requests in its log, in audit annotations and in metrics."""
    attributes, counters = asked("all", gpu="all"), Counters()
    warning = policies(validating("false", name="own-warning", actions=["Warn"]))
    for listed, withheld in ((warning, {"would_warn"}), (shipped_policies("gpu-portable"), {"would_deny"})):
        options = ReviewOptions(enforcement_action="audit")
        verdict = answer_request(attributes, listed, CLUSTER, phase=Phase.VALIDATE, options=options)
        counters.reviewed(attributes, Phase.VALIDATE, verdict, 0.1)
        fields = log_fields_of_review(attributes, Phase.VALIDATE, verdict, 0.1)
        assert {key for key in fields if key.startswith("would_")} == withheld
        assert {key.replace("-", "_") for key in verdict.audit_annotations if key.startswith("would-")} == withheld
    actions = {(rule, action): count for (rule, _, action), count in counters.rules.items()}
    assert actions == {("gpu-portable/all", "would_deny"): 1, ("own-warning", "would_warn"): 1}
    file = tmp_path / "metrics"
    file.write_bytes(asyncio.run(Exposition(counters, {}, version="1").text())[0])
    assert run_command_line(["rollout", str(file)]) == 1
    out = capsys.readouterr().out
    assert "would be refused, by the metrics of servers since their start:\n       1  gpu-portable/all" in out


EVENT = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "stage": "ResponseComplete",
    "stageTimestamp": NOW.isoformat(),
    "verb": "create",
    "user": {"username": "alice"},
    "objectRef": {"resource": "pods", "namespace": "team", "name": "p"},
    "annotations": {
        "pods.mutate.claimgate.dev/would-deny": "gpu-portable/all",
        "pods.validate.claimgate.dev/would-deny": "gpu-portable/all, own-policy",
        "other.example.org/would-deny": "x",
    },
}


def test_an_audit_log_counts_a_request_once(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "audit.log"
    file.write_text("\n".join(json.dumps(each) for each in (EVENT, {**EVENT, "stage": "RequestReceived"})))
    assert run_command_line(["rollout", str(file)]) == 1
    out = capsys.readouterr().out
    assert "       1  gpu-portable/all\n" in out
    assert "owners: alice 1\n" in out
    assert "`validationActions: [Warn]` in its binding" in out


def test_a_file_without_records_is_not_a_success(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "other.log"
    file.write_text("hello\n")
    assert run_command_line(["rollout", str(file)]) == 2
    assert "nothing of claimgate was found" in capsys.readouterr().err
    assert run_command_line(["rollout", str(file), "--since", "soon"]) == 2
    assert "expected a number with s, m, h, d or w" in capsys.readouterr().err
    file.write_text("\n".join(log_lines(asked("good", cpu="1"), "warn", 1)))
    assert run_command_line(["rollout", str(file)]) == 0
    assert "no request in these files would be refused or get a warning" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        pytest.param("# a comment\nkey: value\n", 2, "", id="a comment of another file is no metric"),
        pytest.param(METRIC + "+Inf\n", 2, "", id="a count that is not finite is not understood"),
        pytest.param(METRIC + "3 1700000000000\n", 1, "       3  a", id="a timestamp may follow the count"),
        pytest.param(
            METRIC + "0\n", 0, "no request in these files would be refused", id="a count of zero refuses nothing"
        ),
    ],
)
def test_a_metric_with_an_unreadable_number_is_reported(
    text: str, code: int, said: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "metrics"
    file.write_text(text)
    assert run_command_line(["rollout", str(file)]) == code
    assert said in capsys.readouterr().out


def test_a_line_without_a_time_is_reported_with_since(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "server.log"
    file.write_text('{"message": "review", "time": 5, "would_deny": ["b"]}\n')
    assert run_command_line(["rollout", str(file), "--since", "7d"]) == 0
    assert "not counted, because the time cannot be read: 1 line\n" in capsys.readouterr().out
    assert run_command_line(["rollout", str(file)]) == 1
    assert "not counted" not in capsys.readouterr().out
