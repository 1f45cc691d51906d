"""Watch caches follow an API server."""

import io
import json
import time

import pytest

from tests.cluster.server import ApiServer
from webhook.attributes import GroupVersionKind
from webhook.cluster import connection
from webhook.cluster.connection import connect
from webhook.cluster.interest import Interest
from webhook.cluster.watch import WatchCluster
from webhook.errors import ConfigurationError, LookupFailed
from webhook.logs import Log

CONFIG = GroupVersionKind("", "v1", "ConfigMap")
RUNTIME = GroupVersionKind("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime")
CONFIGS = "/api/v1/configmaps"
RUNTIMES = "/apis/trainer.kubeflow.org/v2/clustertrainingruntimes"


def config(name, version="1", **data):
    metadata = {"name": name, "namespace": "n", "resourceVersion": version, "managedFields": [{}]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def event(kind, value):
    return {"type": kind, "object": value}


def page(*items, version="10", more=None, api="v1"):
    return 200, {"apiVersion": api, "items": list(items), "metadata": {"resourceVersion": version, "continue": more}}


def resources(*rows):
    return 200, {"resources": [{"name": name, "kind": kind, "namespaced": scope} for name, kind, scope in rows]}


@pytest.fixture
def server():
    server = ApiServer()
    server.answers["/api/v1"] = resources(("configmaps/status", "ConfigMap", True), ("configmaps", "ConfigMap", True))
    server.answers[CONFIGS] = page(config("a"))
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def started(server, tmp_path):
    """Starts a view of kinds; ends its threads after the test."""
    views = []

    def start(*kinds, log=None):
        link = connect(server.kubeconfig(tmp_path))
        interests = [each if isinstance(each, Interest) else Interest(each) for each in kinds]
        views.append(WatchCluster(link, interests, log or Log(stream=io.StringIO()), backoff_s=(0.01, 0.05)))
        views[-1].start()
        return views[-1]

    yield start
    for view in views:
        view.close()


def eventually(claim):
    end = time.monotonic() + 5
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_kind_is_listed_page_by_page_and_then_followed(server, started):
    server.answers[CONFIGS] = page(config("a"), more="next")
    server.answers[f"{CONFIGS}?next"] = page(config("b"))
    view = started(CONFIG)
    assert view.wait(5)
    assert view.synced(CONFIG)
    assert view.failures() == {}
    assert [found["metadata"]["name"] for found in view.list(CONFIG, "n")] == ["a", "b"]
    assert view.list(CONFIG, "other") == ()
    assert "managedFields" not in view.get(CONFIG, "n", "a")["metadata"]
    server.send(CONFIGS, event("ADDED", config("c", "11")), event("MODIFIED", config("a", "12", x="1")))
    server.send(CONFIGS, event("DELETED", config("b", "13")), event("BOOKMARK", config("", "20")))
    eventually(lambda: view.get(CONFIG, "n", "b") is None)
    assert view.get(CONFIG, "n", "a")["data"] == {"x": "1"}
    assert [found["metadata"]["name"] for found in view.list(CONFIG, None)] == ["a", "c"]
    server.send(CONFIGS, None, event("ADDED", config("d", "21")))
    eventually(lambda: view.get(CONFIG, "n", "d"))
    watches = [query for path, query, _ in server.asked if query.get("watch")]
    assert [query["resourceVersion"] for query in watches] == ["10", "20"]
    assert all(headers["authorization"] == "Bearer secret" for _, _, headers in server.asked)


def test_a_watch_that_is_too_old_lists_anew(server, started):
    view = started(CONFIG)
    assert view.wait(5)
    server.answers[CONFIGS] = page(config("z"), version="99")
    server.send(CONFIGS, event("ERROR", {"code": 410, "message": "too old resource version"}))
    eventually(lambda: view.get(CONFIG, "n", "z"))
    assert view.get(CONFIG, "n", "a") is None


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([b"{not json\n"], id="a broken stream"),
        pytest.param([event("ERROR", {"code": 500, "message": "busy"})], id="an error event"),
        pytest.param([None, None, None], id="watches that end at once"),
        pytest.param([{"type": "ADDED", "object": {}}], id="an event without metadata"),
        pytest.param([b"[]\n"], id="something else than an event"),
    ],
)
def test_the_view_keeps_answering_and_recovers(server, started, sent):
    view = started(CONFIG)
    assert view.wait(5)
    server.send(CONFIGS, *sent, None, event("ADDED", config("b", "11")))  # None ends the watch nobody reads any more
    eventually(lambda: view.get(CONFIG, "n", "b"))
    assert view.get(CONFIG, "n", "a") is not None


def test_a_kind_of_another_version_is_found_by_the_preferred_one(server, started):
    group = "/apis/trainer.kubeflow.org"
    server.answers[group] = 200, {"preferredVersion": {"version": "v2"}, "versions": [{"version": "v2"}]}
    server.answers[f"{group}/v2"] = resources(("clustertrainingruntimes", "ClusterTrainingRuntime", False))
    item = {"metadata": {"name": "torch", "resourceVersion": "1"}}
    server.answers[RUNTIMES] = page(item, api="trainer.kubeflow.org/v2")
    view = started(RUNTIME)
    assert view.wait(5)
    found = view.get(RUNTIME, "ignored", "torch")
    assert (found["apiVersion"], found["kind"]) == ("trainer.kubeflow.org/v2", "ClusterTrainingRuntime")
    assert view.list(RUNTIME, "ignored") == (found,)


def test_a_kind_that_is_not_served_fails_until_it_is(server, started):
    stream = io.StringIO()
    view = started(RUNTIME, log=Log(stream=stream))
    assert view.wait(5)
    assert not view.synced(RUNTIME)
    with pytest.raises(LookupFailed, match="ClusterTrainingRuntime is not served by the API server"):
        view.get(RUNTIME, "", "torch")
    assert "not served" in view.failures()[RUNTIME]
    server.answers["/apis/trainer.kubeflow.org"] = 200, {"versions": [{"version": "v2"}]}
    server.answers["/apis/trainer.kubeflow.org/v2"] = resources(("clustertrainingruntimes", RUNTIME.kind, False))
    server.answers[RUNTIMES] = page()
    eventually(lambda: view.synced(RUNTIME))
    assert view.get(RUNTIME, "", "torch") is None
    line = json.loads(stream.getvalue().splitlines()[0])
    assert (line["message"], line["kind"]) == ("watch failed", "ClusterTrainingRuntime")


def test_a_kind_that_is_no_longer_served_fails_again(server, started):
    view = started(CONFIG)
    assert view.wait(5)
    server.answers["/api/v1"] = resources()
    server.send(CONFIGS, event("ERROR", {"code": 410}))
    eventually(lambda: not view.synced(CONFIG))


@pytest.mark.parametrize(
    "path, answer, message",
    [
        ("/api/v1", (403, {"message": "forbidden for you"}), "forbidden for you"),
        (CONFIGS, (500, b"oops"), "HTTP 500"),
        (CONFIGS, (200, b"oops"), "the answer is not JSON"),
        (CONFIGS, (200, {"items": []}), "something else than expected"),
    ],
)
def test_what_the_server_refuses_is_told(server, started, path, answer, message):
    server.answers[path] = answer
    view = started(CONFIG)
    eventually(lambda: message in view.failures().get(CONFIG, ""))
    with pytest.raises(LookupFailed, match=message):
        view.list(CONFIG, "n")


@pytest.mark.parametrize("path", ["/apis/trainer.kubeflow.org", "/apis/trainer.kubeflow.org/v1alpha1"])
def test_a_group_that_may_not_be_read_is_told(server, started, path):
    server.answers[path] = 403, {"message": "forbidden for you"}
    view = started(RUNTIME)
    eventually(lambda: "forbidden" in view.failures().get(RUNTIME, ""))


def test_only_watched_kinds_are_answered_and_they_may_change(server, started):
    view = started()
    assert view.wait(0)
    with pytest.raises(LookupFailed, match="ConfigMap: not watched"):
        view.get(CONFIG, "n", "a")
    assert not view.synced(CONFIG)
    view.watch([Interest(CONFIG)])
    assert view.wait(5)
    view.watch([Interest(CONFIG)])
    assert view.get(CONFIG, "n", "a")
    view.watch([])
    assert not view.synced(CONFIG)


def test_nothing_is_asked_before_the_start(server, tmp_path):
    view = WatchCluster(connect(server.kubeconfig(tmp_path)), [Interest(CONFIG)], Log())
    assert not view.wait(0)
    with pytest.raises(LookupFailed, match="not synced yet"):
        view.get(CONFIG, "n", "a")
    assert server.asked == []


def test_a_server_that_is_away_is_told(started, server):
    server.shutdown()
    server.server_close()
    view = started(CONFIG)
    eventually(lambda: "cannot be reached" in view.failures()[CONFIG])
    assert not view.wait(0)


def test_a_missing_kubeconfig_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigurationError, match="name one with --kubeconfig"):
        connect(tmp_path / "absent")


def test_a_pod_uses_its_service_account(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "_TOKEN", tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigurationError, match="Service host/port is not set"):
        connect()
