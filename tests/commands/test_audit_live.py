"""`claimgate audit --live` audits the objects of an API server, and writes the same report as for objects of files."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.server import ApiServer, AsText
from webhook.cli import run_command_line
from webhook.cluster.live_objects import PAGE

POLICIES = ["--only", str(Path(__file__).parents[1] / "data" / "commands" / "policies")]
PODS = "/api/v1/pods"


@pytest.fixture
def server():
    server = ApiServer()
    kinds = [("pods", "Pod", True), ("namespaces", "Namespace", False), ("configmaps", "ConfigMap", True)]
    listed = [{"name": name, "kind": kind, "namespaced": scope, "verbs": ["list"]} for name, kind, scope in kinds]
    server.answers["/api/v1"] = 200, {"resources": listed}
    apps = {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}
    server.answers["/apis"] = 200, {"groups": [apps]}
    deployments = {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["list"]}
    server.answers["/apis/apps/v1"] = 200, {"resources": [deployments]}
    server.objects["/apis/apps/v1/deployments"] = []
    server.objects["/api/v1/namespaces"] = [{"metadata": {"name": name}} for name in ("a", "b")]
    server.objects["/api/v1/configmaps"] = []
    server.objects[PODS] = [pod("good"), pod("bad", deny="1"), pod("other", namespace="b", deny="1")]
    yield server
    server.shutdown()
    server.server_close()


def pod(name, namespace="a", **labels):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]}}


@pytest.fixture
def audit(server, tmp_path, capsys):
    def audited(*arguments):
        config = str(server.kubeconfig(tmp_path))
        code = run_command_line(["audit", *POLICIES, "--kubeconfig", config, *arguments])
        return code, capsys.readouterr()

    return audited


def denied(out):
    return [(each["object"]["name"], each["file"]) for each in json.loads(out)["findings"] if each["result"] == "fail"]


def test_the_objects_of_a_cluster_are_reported_by_their_places(audit):
    code, told = audit()
    assert code == 1
    assert told.out.splitlines()[:3] == [
        "Pod a/bad",
        "  ✖ fail  a/pods/bad  policy denies",
        "    metadata.labels.deny: is not allowed; remove it",
    ]
    assert told.out.splitlines()[-1].startswith("3 objects: 1 without findings, 2 with findings (2 fail)")


def test_a_list_of_a_namespace_has_only_objects_of_this_namespace(audit):
    code, told = audit("--namespace", "b", "-o", "json")
    assert (code, denied(told.out)) == (1, [("other", "b/pods/other")])


def test_every_object_is_in_one_shard(audit, server):
    server.objects[PODS] = [pod(f"p{number}", deny="1") for number in range(40)]
    shards = [Counter(denied(audit("--shard", f"{index}/3", "-o", "json")[1].out)) for index in range(3)]
    assert all(shards)
    assert sum(shards, Counter()) == Counter({(f"p{number}", f"a/pods/p{number}"): 1 for number in range(40)})


def test_a_kind_that_cannot_be_read_is_an_error_and_the_others_are_audited(audit, server):
    del server.objects["/apis/apps/v1/deployments"]
    server.answers["/apis/apps/v1/deployments"] = 403, {"message": "deployments is forbidden"}
    code, told = audit("-o", "json")
    assert code == 2
    assert "error: the cluster: Deployment.apps: /apis/apps/v1/deployments: deployments is forbidden" in told.err
    assert len(denied(told.out)) == 2


@pytest.mark.parametrize("depth", [250, 700, 5_000])
def test_an_object_that_is_too_deep_is_an_error_and_the_others_are_audited(audit, server, depth):
    deep = pod("deep")
    text = json.dumps({**deep, "status": "@"}).replace('"@"', "[" * depth + "]" * depth).encode()
    server.objects[PODS] = [AsText(deep, text), *(pod(f"p{number}", deny="1") for number in range(2 * PAGE))]
    code, told = audit("-o", "json")
    assert len(denied(told.out)) == 2 * PAGE
    assert code == 2
    assert "Pod: a/deep is nested deeper than 200 levels, so it is not audited" in told.out


def test_an_unreachable_server_is_an_error(audit, server):
    del server.answers["/apis"]
    code, told = audit()
    assert code == 2
    assert "error: the cluster: /apis: the server could not find it" in told.err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(["--live", "."], "audit: --live audits the cluster: leave out files and folders", id="files"),
        pytest.param(["--live", "--context", "."], "audit: --live has the whole cluster: leave out", id="context"),
        pytest.param(["-n", "a", "."], "--namespace: needs a cluster: add --live", id="no cluster"),
        pytest.param([], "audit: name files or folders, - for stdin, or --live for a cluster", id="nothing"),
        pytest.param(["--live", "--shard", "3/3"], "--shard: expected the part, from 0,", id="no such shard"),
        pytest.param(["--live", "--shard", "all"], "such as `0/4`, found `all`", id="no shard"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(arguments, error, capsys):
    assert run_command_line(["audit", *arguments]) == 2
    assert error in capsys.readouterr().err
