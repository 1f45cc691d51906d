"""`claimgate audit --live --publish` writes one report for each object, and only if the content of the report
changes.
"""

from pathlib import Path

import pytest

from tests.cluster.server import ApiServer
from webhook.cli import run_command_line
from webhook.commands import publishing
from webhook.report import policyreport

POLICIES = ["--only", str(Path(__file__).parents[1] / "data" / "commands" / "policies")]
PODS = "/api/v1/pods"
REPORTS = "/apis/openreports.io/v1alpha1/reports"
GROUP = {"name": "openreports.io", "versions": [{"version": "v1alpha1"}], "preferredVersion": {"version": "v1alpha1"}}


def kind(name, plural, *, namespaced=True):
    return {"name": plural, "kind": name, "namespaced": namespaced, "verbs": ["list"]}


def pod(name, namespace="a", **labels):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "x"}]}}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(publishing, "WRITES_PER_S", 1e6)
    server = ApiServer()
    server.answers["/api/v1"] = 200, {"resources": [kind("Pod", "pods"), kind("Namespace", "namespaces")]}
    server.answers["/apis"] = 200, {"groups": []}
    server.answers["/apis/openreports.io"] = 200, GROUP
    listed = [kind("Report", "reports"), kind("ClusterReport", "clusterreports", namespaced=False)]
    server.answers["/apis/openreports.io/v1alpha1"] = 200, {"resources": listed}
    server.objects |= {REPORTS: [], "/api/v1/namespaces": []}
    server.objects["/apis/openreports.io/v1alpha1/clusterreports"] = []
    server.objects[PODS] = [pod("good"), pod("bad", deny="1"), pod("other", namespace="b", deny="1")]
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def publish(server, tmp_path, capsys):
    def published(*arguments):
        config = str(server.kubeconfig(tmp_path))
        server.written.clear()
        code = run_command_line(["audit", *POLICIES, "--kubeconfig", config, "--publish", "openreports", *arguments])
        return code, [f"{verb} {path.rpartition('/')[2]}" for verb, path, _ in server.written], capsys.readouterr().err

    return published


def reports(server):
    return {each["metadata"]["name"]: each for each in server.objects[REPORTS]}


def test_each_object_has_a_report_that_it_owns(publish, server):
    code, written, told = publish()
    assert (code, sorted(written)) == (1, ["PATCH uid-bad", "PATCH uid-good", "PATCH uid-other"])
    assert "note: reports in the cluster: 3 written, 0 unchanged, 0 removed" in told
    report = reports(server)["uid-bad"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "bad", "uid": "uid-bad"}
    assert report["metadata"]["ownerReferences"] == [owner]
    assert report["metadata"]["namespace"] == report["scope"]["namespace"] == "a"
    assert report["summary"] | {"pass": 0} == {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0}
    first = report["results"][0]
    assert (first["result"], first["properties"]["field"]) == ("fail", "metadata.labels.deny")


def test_an_unchanged_report_is_not_written_again(publish, server):
    publish()
    server.objects[PODS][0] = pod("good", deny="1")
    assert publish()[1] == ["PATCH uid-good"]
    assert publish()[1] == []


def test_an_object_without_findings_loses_its_report(publish, server):
    publish("--fails-only")
    assert set(reports(server)) == {"uid-bad", "uid-other"}
    server.objects[PODS][1] = pod("bad")
    assert publish("--fails-only")[1] == ["DELETE uid-bad"]


def test_an_audit_of_a_part_of_the_cluster_keeps_other_reports(publish, server):
    publish()
    server.objects[PODS] = []
    assert publish("--namespace", "b")[1] == ["DELETE uid-other"]
    assert publish("--selector", "app=x")[1] == []
    shards = [publish("--shard", f"{index}/2")[1] for index in range(2)]
    assert sorted([*shards[0], *shards[1]]) == ["DELETE uid-bad", "DELETE uid-good"]


def test_reports_of_kinds_that_cannot_be_read_stay(publish, server):
    publish()
    del server.objects[PODS]
    server.answers[PODS] = 403, {"message": "pods is forbidden"}
    assert publish()[:2] == (2, [])


def test_reports_stay_if_the_served_kinds_are_unknown(publish, server):
    publish()
    del server.answers["/apis"]
    assert publish()[:2] == (2, [])


def test_reports_stay_while_an_aggregated_server_is_away(publish, server):
    apps = {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}
    server.answers["/apis"] = 200, {"groups": [apps]}
    server.answers["/apis/apps/v1"] = 200, {"resources": [kind("Deployment", "deployments")]}
    template = {"metadata": {"labels": {"deny": "1"}}, "spec": pod("x")["spec"]}
    metadata = {"name": "d", "namespace": "a", "uid": "uid-d"}
    server.objects["/apis/apps/v1/deployments"] = [{"metadata": metadata, "spec": {"template": template}}]
    publish()
    assert "uid-d" in reports(server)
    server.answers["/apis/apps/v1"] = 503, {"message": "the service is away"}
    assert publish()[1] == []


def test_reports_of_other_tools_stay(publish, server):
    server.objects[REPORTS] = [
        {"metadata": {"name": "claimgate", "namespace": "a", "labels": {"app.kubernetes.io/managed-by": "claimgate"}}},
        {"metadata": {"name": "theirs", "namespace": "a", "labels": {"app.kubernetes.io/managed-by": "kyverno"}}},
    ]
    publish()
    assert {"claimgate", "theirs"} < set(reports(server))


def test_without_the_kinds_of_reports_nothing_is_audited(publish, server):
    del server.answers["/apis/openreports.io/v1alpha1"]
    code, written, told = publish()
    assert (code, written) == (2, [])
    assert "--publish: Report.openreports.io: not served by the API server" in told


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (403, "reports.openreports.io is forbidden: namespace a is being terminated"),
        (413, "Request entity too large: limit is 3145728"),
        (422, "the object is invalid"),
        (500, "etcdserver: request is too large"),
    ],
)
def test_a_refused_report_does_not_stop_other_reports(publish, server, code, message):
    server.refused_writes["uid-bad"] = code, {"message": message}
    exit_code, written, told = publish()
    assert (exit_code, sorted(written)) == (2, ["PATCH uid-bad", "PATCH uid-good", "PATCH uid-other"])
    assert set(reports(server)) == {"uid-good", "uid-other"}
    assert "error: the cluster: --publish: /apis/openreports.io/v1alpha1/namespaces/a/reports/uid-bad: " in told
    assert message in told
    assert "note: reports in the cluster: 2 written, 0 unchanged, 0 removed, 1 refused" in told
    server.refused_writes.clear()
    assert publish()[1] == ["PATCH uid-bad"]  # the next run writes the refused report, and does not change the others


def test_a_refused_removal_does_not_stop_other_removals(publish, server):
    publish()
    server.objects[PODS] = []
    server.refused_writes["uid-bad"] = 403, {"message": "no"}
    exit_code, written, told = publish()
    assert (exit_code, sorted(written)) == (2, ["DELETE uid-bad", "DELETE uid-good", "DELETE uid-other"])
    assert "0 written, 0 unchanged, 2 removed, 1 refused" in told


def test_refused_report_writes_are_counted_and_the_first_are_named(publish, server):
    server.objects[REPORTS] = []
    server.objects[PODS] = [pod(f"pod-{number:02}") for number in range(15)]
    server.refuses_writes = True
    code, written, told = publish()
    assert (code, len(written)) == (2, 15)
    assert told.count("error: the cluster: --publish: ") == 11
    assert "5 further reports not written or removed" in told
    assert "15 refused" in told
    assert "reports.openreports.io is forbidden" in told


def test_a_silent_server_is_not_awaited_again_and_again(publish, server):
    server.objects[PODS] = [pod(f"pod-{number:02}") for number in range(9)]
    server.is_silent_to_writes = True
    code, written, told = publish()
    assert (code, len(written)) == (2, 5)
    assert "the API server does not answer: 4 reports not tried" in told
    assert "5 unanswered, 4 not tried" in told


def test_of_very_many_results_the_worst_are_written(publish, server, monkeypatch):
    monkeypatch.setattr(policyreport, "MOST_RESULTS", 1)
    publish()
    report = reports(server)["uid-bad"]
    assert [each["result"] for each in report["results"]] == ["fail"]
    assert report["summary"]["pass"] == 1
    assert report["metadata"]["annotations"]["claimgate.dev/results-left-out"] == "1"
