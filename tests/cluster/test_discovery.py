"""Watches share one discovery of the kinds that the API server serves."""

import threading

import pytest

from tests.cluster.server import CONFIG, RUNTIME
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.connection import ServerRefused
from webhook.cluster.discovery import Discovery, KindNotServed
from webhook.cluster.freshness import DEFAULT_TIMES
from webhook.errors import LookupFailed

SECRET = GroupVersionKind("", "v1", "Secret")
CORE = {
    "resources": [{"name": f"{kind.lower()}s", "kind": kind, "namespaced": True} for kind in ("ConfigMap", "Secret")]
}


class Asked:
    """A connection that records the paths, and answers only after `may_answer` is set."""

    def __init__(self, **documents):
        self.documents = documents
        self.paths = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def get(self, path, _):
        self.paths.append(path)
        assert self.may_answer.wait(5)
        answer = self.documents.get(path.rpartition("/")[2], ServerRefused(404, "HTTP 404"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_document_is_requested_once_for_all_watches():
    connection = Asked(v1=CORE)
    discovery = Discovery(connection, 60.0)
    assert [discovery.find_resource(kind).plural for kind in (CONFIG, SECRET, CONFIG)] == [
        "configmaps",
        "secrets",
        "configmaps",
    ]
    for _ in range(3):
        with pytest.raises(KindNotServed):
            discovery.find_resource(RUNTIME)
    group = "/apis/trainer.kubeflow.org"
    assert connection.paths == ["/api/v1", f"{group}/v1alpha1", group]


def test_watches_that_ask_at_the_same_time_wait_for_one_answer():
    connection = Asked(v1=CORE)
    connection.may_answer.clear()
    discovery = Discovery(connection, 60.0)
    plurals = []
    threads = [threading.Thread(target=lambda: plurals.append(discovery.find_resource(CONFIG).plural)) for _ in "abcd"]
    for each in threads:
        each.start()
    connection.may_answer.set()
    for each in threads:
        each.join(5)
    assert (plurals, connection.paths) == (["configmaps"] * 4, ["/api/v1"])


def test_a_failure_is_reported_to_all_watches_and_a_later_question_is_a_new_request():
    connection = Asked(v1=LookupFailed("away"))
    discovery = Discovery(connection, 60.0)
    with pytest.raises(LookupFailed, match="away"):
        discovery.find_resource(CONFIG)
    connection.documents["v1"] = CORE
    assert discovery.find_resource(CONFIG).plural == "configmaps"
    assert connection.paths == ["/api/v1", "/api/v1"]


def test_the_watches_of_a_view_share_discovery(server, started):
    """The API server has three kinds of one group, and serves only one of them."""
    view = started(CONFIG, SECRET, GroupVersionKind("", "v1", "Service"), times=DEFAULT_TIMES)
    assert view.wait_until_synced(5)
    assert [path for path, _, _ in server.asked].count("/api/v1") == 1
    assert [view.is_synced(kind) for kind in (CONFIG, SECRET)] == [True, False]
