"""Watch caches follow an API server."""

import io
import json
import threading

import pytest
from kubernetes.config import kube_config

from tests.cluster.server import CONFIG, CONFIGS, RUNTIME, RUNTIMES, TIMES, config, event, eventually, page, resources
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster import connection
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.freshness import NOT_EVALUATED
from webhook.cluster.interest import Interest
from webhook.cluster.watch import WatchCluster, WatchedCluster
from webhook.errors import ConfigurationError, LookupFailed
from webhook.logs.structured import Log


def test_a_kind_is_listed_page_by_page_and_then_followed(server, started):
    server.answers[CONFIGS] = page(config("a"), more="next")
    server.answers[f"{CONFIGS}?next"] = page(config("b"))
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    assert view.is_synced(CONFIG)
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


def test_the_revision_of_a_kind_changes_with_the_held_objects(server, started):
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    known, before = [], view.revision(CONFIG)
    for sent in (event("ADDED", config("c", "11")), event("MODIFIED", config("c", "12", x="1"))):
        known.append(before)
        server.send(CONFIGS, sent)
        eventually(lambda: view.revision(CONFIG) not in known)
        before = view.revision(CONFIG)
    server.send(CONFIGS, event("MODIFIED", config("c", "13", x="1")), event("DELETED", config("c", "14")))
    eventually(lambda: view.get(CONFIG, "n", "c") is None)
    assert view.revision(CONFIG) not in (*known, before)
    assert view.revision(CONFIG) == view.revision(CONFIG)


def test_the_version_of_a_view_changes_whenever_an_answer_may_change(server, started):
    view = started(CONFIG)
    known = []

    def assert_version_is_new() -> None:
        eventually(lambda: (version := view.version()) is not None and version not in known)
        known.append(view.version())
        assert view.version() == known[-1]

    assert view.wait_until_synced(5)
    assert_version_is_new()
    for sent in (event("ADDED", config("c", "11")), event("MODIFIED", config("c", "12", x="1"))):
        server.send(CONFIGS, sent)
        assert_version_is_new()
    server.send(CONFIGS, event("DELETED", config("c", "13")))
    assert_version_is_new()
    view.watch([])
    assert_version_is_new()


def test_the_version_of_a_view_stays_while_the_listed_objects_answer(server, started):
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    before = view.version()
    server.answers["/api/v1"] = 403, {"message": "forbidden for you"}
    server.send(CONFIGS, event("ERROR", {"code": 410}))
    eventually(lambda: "forbidden" in next(iter(view._reflectors.values())).failure)
    assert view.version() == before is not None


def test_a_view_has_no_version_while_an_object_changes(server, started):
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    before = view.version()
    changing, changed = threading.Event(), threading.Event()

    def change() -> None:
        with view.memory.lock:
            changing.set()
            changed.wait(10)

    thread = threading.Thread(target=change)
    thread.start()
    assert changing.wait(10)
    assert view.version() is None
    changed.set()
    thread.join()
    assert view.version() == before is not None


def test_a_watch_that_is_too_old_lists_again(server, started):
    stream = io.StringIO()
    view = started(CONFIG, log=Log(stream=stream))
    assert view.wait_until_synced(5)
    server.answers[CONFIGS] = page(config("z"), version="99")
    server.send(CONFIGS, event("ERROR", {"code": 410, "message": "too old resource version"}))
    eventually(lambda: view.get(CONFIG, "n", "z"))
    assert view.get(CONFIG, "n", "a") is None
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert (line["message"], line["kind"], line["code"]) == ("watch too old", "ConfigMap", 410)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([b"{not json\n"], id="a broken stream"),
        pytest.param([event("ERROR", {"code": 500, "message": "busy"})], id="an error event"),
        pytest.param([None, None, None], id="watches that end at once"),
        pytest.param([{"type": "ADDED", "object": {}}], id="an event without metadata"),
        pytest.param([b"[]\n"], id="a line that is not an event"),
    ],
)
def test_the_view_keeps_answering_and_recovers(server, started, sent):
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    server.send(CONFIGS, *sent, None, event("ADDED", config("b", "11")))  # None ends the unused watch
    eventually(lambda: view.get(CONFIG, "n", "b"))
    assert view.get(CONFIG, "n", "a") is not None


def test_a_kind_in_another_version_is_found_in_the_preferred_version(server, started):
    group = "/apis/trainer.kubeflow.org"
    server.answers[group] = 200, {"preferredVersion": {"version": "v2"}, "versions": [{"version": "v2"}]}
    server.answers[f"{group}/v2"] = resources(("clustertrainingruntimes", "ClusterTrainingRuntime", False))
    item = {"metadata": {"name": "torch", "resourceVersion": "1"}}
    server.answers[RUNTIMES] = page(item, api="trainer.kubeflow.org/v2")
    view = started(RUNTIME)
    assert view.wait_until_synced(5)
    found = view.get(RUNTIME, "ignored", "torch")
    assert (found["apiVersion"], found["kind"]) == ("trainer.kubeflow.org/v2", "ClusterTrainingRuntime")
    assert view.list(RUNTIME, "ignored") == (found,)


def test_a_kind_that_is_not_served_fails_until_it_is(server, started):
    stream = io.StringIO()
    view = started(RUNTIME, log=Log(stream=stream))
    assert view.wait_until_synced(5)
    assert not view.is_synced(RUNTIME)
    with pytest.raises(LookupFailed, match=r"^ClusterTrainingRuntime: not served by the API server; install its"):
        view.get(RUNTIME, "", "torch")
    assert "not served" in view.failures()[RUNTIME]
    server.answers["/apis/trainer.kubeflow.org"] = 200, {"versions": [{"version": "v2"}]}
    server.answers["/apis/trainer.kubeflow.org/v2"] = resources(("clustertrainingruntimes", RUNTIME.kind, False))
    server.answers[RUNTIMES] = page()
    eventually(lambda: view.is_synced(RUNTIME))
    assert view.get(RUNTIME, "", "torch") is None
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["kind is not installed", "kind is installed now"]
    assert {line["kind"] for line in lines} == {"ClusterTrainingRuntime"}
    assert view.failure_count == 0


def test_a_kind_of_kubernetes_that_is_not_served_has_no_definition_to_install(started):
    view = started(GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice"))
    assert view.wait_until_synced(5)
    (reason,) = view.failures().values()
    assert reason == "not served by the API server; this release of Kubernetes lacks or disables the kind"


def test_a_kind_that_is_no_longer_served_fails_again(server, started):
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    server.answers["/api/v1"] = resources()
    server.send(CONFIGS, event("ERROR", {"code": 410}))
    eventually(lambda: not view.is_synced(CONFIG))
    told = f"ConfigMap: no longer installed; reviews are {NOT_EVALUATED}"
    eventually(lambda: WatchedCluster(view).describe_failures() == told)
    assert view.describe_missing_kinds() == ""


@pytest.mark.parametrize(
    "path, answer, message",
    [
        ("/api/v1", (403, {"message": "forbidden for you"}), "forbidden for you"),
        (CONFIGS, (500, b"oops"), "HTTP 500"),
        (CONFIGS, (200, b"oops"), "the answer is not JSON"),
        (CONFIGS, (200, {"items": []}), "an answer that cannot be read"),
    ],
)
def test_errors_of_the_server_are_reported(server, started, path, answer, message):
    server.answers[path] = answer
    view = started(CONFIG)
    eventually(lambda: message in view.failures().get(CONFIG, ""))
    with pytest.raises(LookupFailed, match=message):
        view.list(CONFIG, "n")


@pytest.mark.parametrize("path", ["/apis/trainer.kubeflow.org", "/apis/trainer.kubeflow.org/v1alpha1"])
def test_a_group_that_may_not_be_read_is_reported(server, started, path):
    server.answers[path] = 403, {"message": "forbidden for you"}
    view = started(RUNTIME)
    eventually(lambda: "forbidden" in view.failures().get(RUNTIME, ""))


def test_only_watched_kinds_are_answered_and_they_may_change(server, started):
    view = started()
    assert view.wait_until_synced(0)
    with pytest.raises(LookupFailed, match="ConfigMap: not watched"):
        view.get(CONFIG, "n", "a")
    assert not view.is_synced(CONFIG)
    view.watch([Interest(CONFIG)])
    assert view.wait_until_synced(5)
    view.watch([Interest(CONFIG)])
    assert view.get(CONFIG, "n", "a")
    view.watch([])
    assert not view.is_synced(CONFIG)


def test_the_api_server_is_not_called_before_the_start(server, tmp_path):
    view = WatchCluster(connect_to_cluster(server.kubeconfig(tmp_path)), [Interest(CONFIG)], Log())
    assert not view.wait_until_synced(0)
    with pytest.raises(LookupFailed, match="not synced yet"):
        view.get(CONFIG, "n", "a")
    assert server.asked == []


def test_a_watch_that_is_refused_later_is_reported_at_once(server, started):
    view = started(RUNTIME, CONFIG)
    assert view.wait_until_synced(5)
    watched = WatchedCluster(view)
    assert view.describe_missing_kinds() == "ClusterTrainingRuntime"
    eventually(lambda: watched.describe_failures() == "")
    server.refused_watches[CONFIGS] = server.answers[CONFIGS] = 401, {"message": "Unauthorized"}
    server.send(CONFIGS, None)
    told = f"the API server at 127.0.0.1:{server.server_port} refuses the token of claimgate: Unauthorized"
    meanwhile = "reviews are still answered, from what was read 1 s ago"
    eventually(lambda: watched.describe_failures() == f"{told}; {meanwhile}")
    assert view.get(CONFIG, "n", "a")["metadata"]["name"] == "a"
    assert watched.why_not_ready() == ""


def test_an_unreachable_server_is_reported_once(started, server):
    server.shutdown()
    server.server_close()
    stream = io.StringIO()
    view = started(CONFIG, RUNTIME, log=Log(stream=stream))
    told = f"the API server at 127.0.0.1:{server.server_port} does not answer: connection refused"
    eventually(lambda: set(view.failures().values()) == {told})
    assert WatchedCluster(view).describe_failures() == told
    assert not view.wait_until_synced(0)
    eventually(lambda: view.failure_count > 10)
    [line] = stream.getvalue().splitlines()
    assert (json.loads(line)["message"], json.loads(line)["error"]) == ("API server does not answer", told)


@pytest.mark.parametrize(
    ("code", "message"), [(403, "kinds cannot be read"), (500, "API server answers with errors")], ids=["403", "500"]
)
def test_a_kind_without_watch_permission_is_listed_less_and_less_often(server, tmp_path, code: int, message: str):
    server.refused_watches[CONFIGS] = code, {"message": "cannot watch resource configmaps"}
    stream = io.StringIO()
    view = WatchCluster(
        connect_to_cluster(server.kubeconfig(tmp_path)), [Interest(CONFIG)], Log(stream=stream), backoff_s=(0.01, 10.0)
    )
    view.start()
    eventually(lambda: view.failure_count > 3)
    waits = [each._wait_s for each in view._reflectors.values()]
    eventually(stream.getvalue)
    view.close()
    assert waits[0] >= 0.04
    assert view.get(CONFIG, "n", "a")
    [line] = map(json.loads, stream.getvalue().splitlines())
    assert line["message"] == message


def test_a_lost_right_is_logged_once_for_watch_and_list(started, server, monkeypatch):
    monkeypatch.setattr("webhook.cluster.failure_log._TOGETHER_S", 0.01)
    stream = io.StringIO()
    view = started(CONFIG, log=Log(stream=stream))
    assert view.wait_until_synced(5)
    server.refused_watches[CONFIGS] = 403, {"message": "cannot watch resource configmaps"}
    server.send(CONFIGS, None)
    eventually(stream.getvalue)
    server.answers[CONFIGS] = 403, {"message": "cannot list resource configmaps"}
    eventually(lambda: "cannot list" in WatchedCluster(view).describe_failures())
    count = len(server.asked)
    eventually(lambda: len(server.asked) > count + 20)
    [line] = map(json.loads, stream.getvalue().splitlines())
    assert line["message"] == "kinds cannot be read"


def test_a_lasting_failure_is_logged_once(started, server):
    stream = io.StringIO()
    view = started(RUNTIME, log=Log(stream=stream))
    eventually(lambda: len(server.asked) > 10)
    assert len(stream.getvalue().splitlines()) == 1
    server.answers["/apis/trainer.kubeflow.org"] = 403, {"message": "forbidden for you"}
    eventually(lambda: "forbidden" in view.failures()[RUNTIME])
    eventually(lambda: len(stream.getvalue().splitlines()) == 2)


UNUSABLE = {
    "no file": (None, "no such file; name one with --kubeconfig"),
    "an empty file": (b"", "file is empty; name one with"),
    "another object": (b"kind: Pod", "Expected key current-context in .*; name one with"),
    "broken YAML": (b"a: [", "expected YAML with clusters, users, contexts and current-context; name one with"),
    "a text": (b"hello", "expected YAML with clusters"),
    "bytes": (b"\x86\x00", "expected YAML with clusters"),
}


@pytest.mark.parametrize(("content", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_file_that_is_not_a_kubeconfig_is_a_configuration_error(content, message, tmp_path):
    file = tmp_path / "config"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"^kubeconfig {file}: .*{message}"):
        connect_to_cluster(file)


def test_a_folder_is_not_a_kubeconfig(tmp_path):
    with pytest.raises(
        ConfigurationError, match=f"^kubeconfig {tmp_path}: is a directory; name one with --kubeconfig$"
    ):
        connect_to_cluster(tmp_path)


def test_without_a_kubeconfig_the_searched_places_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "absent"))
    with pytest.raises(ConfigurationError, match=r"^no cluster is configured by KUBECONFIG, ~/\.kube/config or the"):
        connect_to_cluster()


def test_a_pod_uses_its_service_account(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "_TOKEN", tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigurationError, match="Service host/port is not set"):
        connect_to_cluster()


class Failing:
    """A connection that fails in unexpected ways."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def get(self, path, query):
        raise self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), RuntimeError("what"), OSError(5, "disk")])
def test_a_watch_continues_after_every_exception(error):
    stream = io.StringIO()
    view = WatchCluster(
        Failing(error, LookupFailed("again")), [Interest(CONFIG)], Log(stream=stream), (0.01, 0.02), times=TIMES
    )
    view.start()
    eventually(lambda: view.failures()[CONFIG] == "again")
    eventually(lambda: view.failure_count > 3)
    assert "an answer that cannot be read" in json.loads(stream.getvalue().splitlines()[0])["error"]
    failed = view.failure_count
    view.watch([])
    assert view.failure_count >= failed
    view.close()


def test_a_watch_continues_if_the_log_cannot_be_written():
    stream = io.StringIO()
    stream.close()
    view = WatchCluster(
        Failing(LookupFailed("again")), [Interest(CONFIG)], Log(stream=stream), (0.01, 0.02), times=TIMES
    )
    view.start()
    eventually(lambda: view.failure_count > 3)
    view.close()


def test_an_event_in_pieces_is_read_and_an_endless_event_is_not(server, started, monkeypatch):
    view = started(CONFIG)
    assert view.wait_until_synced(5)
    text = json.dumps(event("ADDED", config("b", "11"))).encode()
    server.send(CONFIGS, text[:20], text[20:50], text[50:] + b"\n\n")
    eventually(lambda: view.get(CONFIG, "n", "b"))
    monkeypatch.setattr(connection, "LARGEST", 100)
    server.send(CONFIGS, b"x" * 200, None, event("ADDED", config("c", "12")))
    eventually(lambda: view.failure_count)
    eventually(lambda: view.get(CONFIG, "n", "c"))


def test_an_interrupted_list_is_requested_again(server, started):
    server.answers[CONFIGS] = 200, b'{"apiVersion":"v1","items":[{"metadata":{"name":"a","namespace":"n"}},{"meta'
    view = started(CONFIG)
    eventually(lambda: "the list is cut off" in view.failures().get(CONFIG, ""))
    server.answers[CONFIGS] = page(config("a"))
    eventually(lambda: view.is_synced(CONFIG))
