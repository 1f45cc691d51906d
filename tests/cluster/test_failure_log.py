"""Failures of watches are one log line for each cause, for any number of watches."""

import io
import json
import ssl
from pathlib import Path

import pytest

from tests.cluster.server import CONFIG, RUNTIME, eventually
from webhook.apimachinery.attributes import NAMESPACE, GroupVersionKind
from webhook.cluster.connection import ServerRefused
from webhook.cluster.discovery import KindNotServed
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.freshness import NOT_ANSWERED, NOT_EVALUATED, ServerUnreachable, StreamBroken
from webhook.errors import LookupFailed
from webhook.logs.structured import Log

AWAY = ServerUnreachable("https://h", ConnectionRefusedError(111, "Connection refused"))
SLICES = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")


def _untrusted():
    """Return an error of ssl with the attribute that ssl sets."""
    made = ssl.SSLCertVerificationError(1, "certificate verify failed")
    made.verify_message = "self-signed certificate"
    return made


class Written:
    def __init__(self):
        self._stream = io.StringIO()
        self.failures = FailureLog(Log(stream=self._stream))

    def lines(self):
        found = map(json.loads, self._stream.getvalue().splitlines())
        return [{name: value for name, value in line.items() if name != "time"} for line in found]

    def messages(self):
        return [line["message"] for line in self.lines()]

    def fail(self, watch, error, gvk=CONFIG, *, is_new=True):
        self.failures.note_failure(watch, gvk, error, is_new=is_new)


OUTAGES = {
    "away": (AWAY, "API server does not answer", "API server answers again"),
    "no credentials": (
        ServerRefused(401, "Unauthorized"),
        "API server refuses the credentials",
        "API server accepts the credentials again",
    ),
    "another authority": (
        ServerUnreachable("https://h", _untrusted()),
        "claimgate does not trust the API server's certificate",
        "claimgate trusts the API server's certificate again",
    ),
    "the store of the API server is away": (
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
        written.failures.note_success("a", CONFIG)  # another watch still works
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
    assert written.messages() == ["API server does not answer", "API server answers again"]


def test_two_different_outages_in_a_row_are_both_logged():
    written = Written()
    written.fail("a", AWAY)
    written.fail("a", ServerRefused(503, "starting"))
    written.failures.note_success("a", CONFIG)
    assert written.messages() == [
        "API server does not answer",
        "API server answers again",
        "API server answers with errors",
        "API server answers without errors again",
    ]


def test_a_stopped_watch_does_not_delay_the_end_of_an_outage():
    written = Written()
    written.fail("a", AWAY)
    written.fail("b", AWAY)
    written.failures.forget("b")
    written.failures.note_success("a", CONFIG)
    assert written.messages() == ["API server does not answer", "API server answers again"]
    assert not written.failures.is_unreachable


def test_kinds_that_become_forbidden_together_are_one_line():
    written = Written()
    for watch, gvk in {"a": CONFIG, "b": RUNTIME, "c": SLICES}.items():
        written.fail(watch, ServerRefused(403, f"{gvk.kind} is forbidden"), gvk)
    assert written.lines() == []
    eventually(written.lines)
    names = ["ClusterTrainingRuntime.trainer.kubeflow.org", "ConfigMap", "ResourceSlice.resource.k8s.io"]
    [line] = written.lines()
    assert (line["message"], line["kinds"], line["error"]) == ("kinds cannot be read", names, "ConfigMap is forbidden")
    written.fail("a", ServerRefused(403, "again"), CONFIG)
    eventually(lambda: len(written.lines()) == 2)


def test_a_kind_that_is_not_found_is_not_called_unreadable_before_it_is_known_to_be_gone(monkeypatch):
    """After a definition is deleted, its objects get 404 some seconds before discovery drops the kind."""
    monkeypatch.setattr("webhook.cluster.failure_log._TOGETHER_S", 0.01)
    written = Written()
    written.failures.note_list(RUNTIME)
    written.fail("a", ServerRefused(404, "HTTP 404"), RUNTIME)
    written.fail("b", ServerRefused(403, "ConfigMap is forbidden"), CONFIG)
    eventually(written.lines)
    written.fail("a", KindNotServed("not served"), RUNTIME)
    assert written.messages() == ["kinds cannot be read", "kind is no longer installed"]
    assert written.lines()[0]["kinds"] == ["ConfigMap"]


@pytest.mark.parametrize("is_back", [True, False], ids=["it is listed again", "it stays away"])
def test_a_kind_that_is_not_found_for_long_is_logged(monkeypatch, is_back):
    monkeypatch.setattr("webhook.cluster.failure_log._GOING_S", 0.2)
    written = Written()
    written.fail("a", ServerRefused(404, "HTTP 404"), RUNTIME)
    if is_back:
        written.failures.note_list(RUNTIME)
    written.fail("b", ServerRefused(403, "ConfigMap is forbidden"), CONFIG)  # after three seconds
    eventually(written.lines)
    eventually(lambda: "ConfigMap" in str(written.lines()))
    assert len(written.lines()) == (1 if is_back else 2)


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
            "fix": "`claimgate webhook-config --check --live` says which ClusterRole or binding is missing",
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
        ("info", "kind is installed now", "ClusterTrainingRuntime"),
    ]


class OfServer(Written):
    """The log of a server with one policy, which looks up runtimes."""

    def __init__(self):
        super().__init__()
        self.failures = FailureLog(Log(stream=self._stream), lambda gvk: ["merged"] if gvk == RUNTIME else [])

    def told(self, message):
        return next(line["reviews"] for line in self.lines() if line["message"] == message)


def test_the_log_of_an_outage_says_what_happens_to_reviews():
    written = OfServer()
    written.fail("a", AWAY)
    assert written.told("API server does not answer") == NOT_ANSWERED
    written = OfServer()
    written.failures.note_success("a", CONFIG)
    written.fail("a", AWAY)
    assert written.told("API server does not answer") == NOT_ANSWERED, "without namespaces it is not ready"
    written = OfServer()
    written.failures.note_success("a", NAMESPACE)
    written.fail("b", AWAY, RUNTIME)
    assert written.told("API server does not answer") == "still answered, from what was read 1 s ago"


def test_the_log_of_a_missing_kind_says_what_happens_to_reviews():
    written = OfServer()
    written.failures.note_success("a", RUNTIME)
    written.fail("a", KindNotServed("not served"), RUNTIME)
    written.failures.note_success("a", RUNTIME)
    gone, back = written.lines()
    runtime = {"group": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "policies": "merged"}
    assert gone == {
        "level": "warning",
        "message": "kind is no longer installed",
        **runtime,
        "reviews": NOT_EVALUATED,
    }
    assert back == {
        "level": "info",
        "message": "kind is installed now",
        **runtime,
        "reviews": "answered; these policies now read objects of the kind",
    }


FORBIDDEN = {
    "namespaces, at a start": ([], [NAMESPACE, CONFIG], NOT_ANSWERED),
    "another kind, at a start": ([NAMESPACE], [CONFIG], NOT_EVALUATED),
    "a kind that was read": ([NAMESPACE, CONFIG], [CONFIG], "a replica that starts now knows no such objects"),
    "namespaces that were read": ([NAMESPACE], [NAMESPACE], "a replica that starts now is not ready"),
}


@pytest.mark.parametrize(("listed", "refused", "told"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_log_of_missing_rights_says_what_happens_to_reviews_and_what_to_do(listed, refused, told):
    written = OfServer()
    for gvk in listed:
        written.failures.note_success(gvk, gvk)
    with written.failures.gather():
        for gvk in refused:
            written.fail(gvk, ServerRefused(403, f"{gvk.kind} is forbidden"), gvk)
    (line,) = written.lines()
    assert line["message"] == "kinds cannot be read"
    assert line["reviews"].endswith(told)
    assert line["fix"].startswith("`claimgate webhook-config --check --live` says ")


def test_the_page_about_monitoring_says_what_happens_to_requests_in_each_fault():
    page = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()
    faults = {begin for _, begin, _ in OUTAGES.values()}
    for message in (*faults, "kinds cannot be read", "kind is no longer installed", "kind is installed now"):
        assert f"`{message}`" in page, f"docs/monitoring.md, What happens to requests during a fault: {message}"


def test_a_log_that_cannot_be_written_does_not_end_a_watch():
    stream = io.StringIO()
    stream.close()
    FailureLog(Log(stream=stream)).note_failure("a", CONFIG, AWAY, is_new=True)
