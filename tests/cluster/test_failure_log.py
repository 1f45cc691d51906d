"""Failures of watches are one log line for each cause, for any number of watches."""

import io
import json

import pytest

from tests.cluster.server import CONFIG, RUNTIME, eventually
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.connection import ServerRefused
from webhook.cluster.discovery import KindNotServed
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.freshness import ServerUnreachable, StreamBroken
from webhook.errors import LookupFailed
from webhook.logs.structured import Log

AWAY = ServerUnreachable("https://h", ConnectionRefusedError(111, "Connection refused"))
SLICES = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")


class Written:
    """A log of failures, and the lines that it wrote."""

    def __init__(self):
        self._stream = io.StringIO()
        self.failures = FailureLog(Log(stream=self._stream))

    def lines(self):
        """Return each line without its time."""
        found = map(json.loads, self._stream.getvalue().splitlines())
        return [{name: value for name, value in line.items() if name != "time"} for line in found]

    def messages(self):
        return [line["message"] for line in self.lines()]

    def fail(self, watch, error, gvk=CONFIG, *, is_new=True):
        self.failures.note_failure(watch, gvk, error, is_new=is_new)


OUTAGES = {
    "away": (AWAY, "API server unreachable", "API server reachable again"),
    "no credentials": (
        ServerRefused(401, "Unauthorized"),
        "API server refuses the credentials",
        "API server accepts the credentials again",
    ),
    "its store is away": (
        ServerRefused(500, "etcdserver: request timed out"),
        "API server answers with errors",
        "API server answers without errors again",
    ),
}


@pytest.mark.parametrize(("error", "begin", "end"), OUTAGES.values(), ids=OUTAGES)
def test_an_outage_and_its_end_are_one_log_line_each(error, begin, end):
    written = Written()
    written.failures.note_success("a", CONFIG)
    for _ in range(3):
        for watch in ("a", "b", "c"):
            written.fail(watch, error)
        written.failures.note_success("a", CONFIG)  # one connection that still works
    written.failures.note_success("b", CONFIG)
    assert written.messages() == [begin]
    written.failures.note_success("c", CONFIG)
    assert written.messages() == [begin, end]
    assert written.lines()[0]["error"] == str(error)
    written.fail("a", error)
    assert written.messages() == [begin, end, begin]


def test_streams_that_break_are_no_warning_and_an_outage_that_follows_is_one():
    written = Written()
    for watch in ("a", "b", "c"):
        written.fail(watch, StreamBroken(ConnectionResetError(104, "Connection reset by peer")))
    assert written.lines() == [], "the next try says whether anything is wrong"
    written.failures.note_success("a", CONFIG)
    for watch in ("b", "c"):
        written.fail(watch, AWAY)
    for watch in ("b", "c"):
        written.failures.note_success(watch, CONFIG)
    assert written.messages() == ["API server unreachable", "API server reachable again"]


def test_two_different_outages_in_a_row_are_both_logged():
    written = Written()
    written.fail("a", AWAY)
    written.fail("a", ServerRefused(503, "starting"))
    written.failures.note_success("a", CONFIG)
    assert written.messages() == [
        "API server unreachable",
        "API server reachable again",
        "API server answers with errors",
        "API server answers without errors again",
    ]


def test_a_stopped_watch_does_not_delay_the_end_of_an_outage():
    written = Written()
    written.fail("a", AWAY)
    written.fail("b", AWAY)
    written.failures.forget("b")
    written.failures.note_success("a", CONFIG)
    assert written.messages() == ["API server unreachable", "API server reachable again"]
    assert not written.failures.is_unreachable


def test_kinds_that_become_forbidden_together_are_one_line():
    written = Written()
    for watch, gvk in {"a": CONFIG, "b": RUNTIME, "c": SLICES}.items():
        written.fail(watch, ServerRefused(403, f"{gvk.kind} is forbidden"), gvk)
    assert written.lines() == []
    eventually(written.lines)
    names = ["ClusterTrainingRuntime.trainer.kubeflow.org", "ConfigMap", "ResourceSlice.resource.k8s.io"]
    line = {"level": "warning", "message": "kinds cannot be read", "kinds": names, "error": "ConfigMap is forbidden"}
    assert written.lines() == [line]
    written.fail("a", ServerRefused(403, "again"), CONFIG)
    eventually(lambda: len(written.lines()) == 2)


def test_unreadable_kinds_at_start_are_logged_once_for_each_cause():
    written = Written()
    with written.failures.gather():
        written.fail("a", KindNotServed("not served"), RUNTIME)
        written.fail("b", KindNotServed("not served"), SLICES)
        written.fail("c", ServerRefused(403, "configmaps is forbidden"))
        written.fail("d", LookupFailed("no JSON"))
        written.fail("e", LookupFailed("no JSON"), SLICES)
        written.failures.note_success("e", SLICES)
        assert written.lines() == []
    names = ["ClusterTrainingRuntime.trainer.kubeflow.org", "ResourceSlice.resource.k8s.io"]
    assert written.lines() == [
        {"level": "info", "message": "kinds are not installed", "kinds": names},
        {
            "level": "warning",
            "message": "kinds cannot be read",
            "kinds": ["ConfigMap"],
            "error": "configmaps is forbidden",
        },
        {"level": "warning", "message": "watch failed", "group": "", "kind": "ConfigMap", "error": "no JSON"},
    ]


def test_a_removed_kind_and_a_new_kind_are_logged():
    written = Written()
    for watch in ("a", "b"):
        written.fail(watch, KindNotServed("not served"), RUNTIME)
    written.fail("a", KindNotServed("not served"), RUNTIME, is_new=False)
    for watch in ("a", "b"):
        written.failures.note_success(watch, RUNTIME)
    assert [(line["level"], line["message"], line["kind"]) for line in written.lines()] == [
        ("info", "kind is not installed", "ClusterTrainingRuntime"),
        ("info", "kind appeared", "ClusterTrainingRuntime"),
    ]


def test_a_log_that_cannot_be_written_does_not_end_a_watch():
    stream = io.StringIO()
    stream.close()
    FailureLog(Log(stream=stream)).note_failure("a", CONFIG, AWAY, is_new=True)
