"""The pages for people and probes: health, readiness, metrics, version, documentation."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.asgi import Running, review_of
from webhook import __version__
from webhook.cluster.freshness import NOT_ANSWERED
from webhook.rules.decisions import Decision, DenialStatus, ValidationAction, Verdict
from webhook.server.counters import Counters
from webhook.server.metrics import Exposition
from webhook.server.server_parts import Readiness

POLICY = {"policy": "p", "policy_binding": "b"}


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def test_healthz() -> None:
    answer = Running().call("GET", "/healthz")
    assert (answer.status_code, answer.text) == (200, "ok")


_UNANSWERED = f"[i]reviews: {NOT_ANSWERED}\n"
_ANSWERED = "[i]reviews: they are answered here\n"
_CAUSES = (
    "[-]cluster failed: Pod: forbidden\n[-]cluster failed: Job: away\n[-]cluster failed: Queue: not served\n"
    f"[!]long: {'word ' * 119}…\n[!]one word: {'x' * 598} …\n{_UNANSWERED}"
    "[+]policies ok\n[+]shutdown ok\nreadyz check failed, with 2 warnings\n"
)
READY = {
    "no checks": (Readiness(), 200, "ok", "[+]shutdown ok\nreadyz check passed\n"),
    "all checks hold": (
        Readiness(checks={"policies": lambda: ""}),
        200,
        "ok",
        "[+]policies ok\n[+]shutdown ok\nreadyz check passed\n",
    ),
    "one check fails": (
        Readiness(checks={"policies": lambda: "", "cluster": lambda: "Pod not synced"}),
        503,
        f"[-]cluster failed: Pod not synced\n{_UNANSWERED}[+]policies ok\n[+]shutdown ok\nreadyz check failed\n",
        f"[-]cluster failed: Pod not synced\n{_UNANSWERED}[+]policies ok\n[+]shutdown ok\nreadyz check failed\n",
    ),
    "a remark is not a failure": (
        Readiness(remarks={"reload": lambda: "broken file", "quiet": lambda: ""}),
        200,
        "ok",
        f"[!]reload: broken file\n{_ANSWERED}[+]shutdown ok\nreadyz check passed, with 1 warning\n",
    ),
    "a check with a remark has one mark": (
        Readiness(
            checks={"policies": lambda: "", "cluster": lambda: ""},
            remarks={"cluster": lambda: "Pod: forbidden\nJob: away"},
            notes={"not installed": lambda: "Queue"},
        ),
        200,
        "ok",
        (
            f"[!]cluster: Pod: forbidden\n[!]cluster: Job: away\n{_ANSWERED}[+]policies ok\n[+]shutdown ok\n"
            "[i]not installed: Queue\nreadyz check passed, with 2 warnings\n"
        ),
    ),
    "each cause is one line, written once, and cut between words": (
        Readiness(
            checks={"policies": lambda: "", "cluster": lambda: "Pod: forbidden\nJob: away"},
            remarks={
                "cluster": lambda: "Pod: forbidden\nQueue: not served",
                "long": lambda: "word " * 200,
                "one word": lambda: "x" * 700,
            },
        ),
        503,
        _CAUSES,
        _CAUSES,
    ),
    "a start that has not ended has not failed": (
        Readiness(checks={"policies": lambda: ""}, phases={"warm-up": lambda: "policies are being compiled"}),
        503,
        f"[-]warm-up: policies are being compiled\n{_UNANSWERED}[+]policies ok\n[+]shutdown ok\nreadyz check failed\n",
        f"[-]warm-up: policies are being compiled\n{_UNANSWERED}[+]policies ok\n[+]shutdown ok\nreadyz check failed\n",
    ),
    "the start is over": (
        Readiness(phases={"warm-up": lambda: ""}),
        200,
        "ok",
        "[+]warm-up ok\n[+]shutdown ok\nreadyz check passed\n",
    ),
    "stopping": (
        Readiness(draining=True),
        503,
        f"[-]shutdown: the process is stopping\n{_UNANSWERED}readyz check failed\n",
        f"[-]shutdown: the process is stopping\n{_UNANSWERED}readyz check failed\n",
    ),
}


@pytest.mark.parametrize(("readiness", "code", "text", "verbose"), READY.values(), ids=READY.keys())
def test_readyz(readiness: Readiness, code: int, text: str, verbose: str) -> None:
    running = Running(readiness=readiness)
    answer = running.call("GET", "/readyz")
    assert (answer.status_code, answer.text) == (code, text)
    answer = running.call("GET", "/readyz?verbose")
    assert (answer.status_code, answer.text) == (code, verbose)


def test_version() -> None:
    version = Running().call("GET", "/version").json()
    assert (version["name"], version["version"], version["kubernetes"]) == ("claimgate", __version__, "1.36")


def test_unknown_paths_and_methods_fail_in_the_form_of_the_api() -> None:
    running = Running()
    answer = running.call("GET", "/nowhere")
    assert (answer.status_code, answer.json()["kind"], answer.json()["reason"]) == (404, "Status", "NotFound")
    answer = running.call("POST", "/healthz")
    assert (answer.status_code, answer.json()["reason"]) == (405, "MethodNotAllowed")
    assert answer.headers["allow"] == "GET"


def test_openapi_has_the_paths_of_the_server_and_its_references_resolve() -> None:
    document = Running().call("GET", "/openapi.json").json()
    assert {"/validate", "/mutate", "/healthz", "/readyz", "/metrics", "/version"} <= document["paths"].keys()
    assert set(document["paths"]["/validate"]["post"]["responses"]) == {
        "200",
        "400",
        "405",
        "408",
        "413",
        "415",
        "429",
        "500",
        "503",
    }
    references = [part.split('"')[0] for part in str(document).replace("'", '"').split("#/components/schemas/")[1:]]
    assert set(references) <= document["components"]["schemas"].keys()


def test_docs_are_served_without_another_host() -> None:
    """The page has no script and loads nothing from another host, so a cluster without internet shows it."""
    running = Running()
    answer = running.call("GET", "/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name in ("POST /validate", "POST /mutate", "GET /readyz", "AdmissionReviewResponse", "/openapi.json"):
        assert name in answer.text
    assert not re.search(r"<script|<link|//", answer.text)
    references = set(re.findall(r'href="#(\w+)"', answer.text))
    assert references <= set(re.findall(r'id="(\w+)"', answer.text))
    assert running.call("GET", "/redoc").status_code == 404


def test_an_error_in_the_application_is_also_answered_with_a_status() -> None:
    running = Running(readiness=Readiness(checks={"broken": lambda: str(1 / 0)}))
    with pytest.raises(ZeroDivisionError):
        running.call("GET", "/readyz")


def test_metrics_count_reviews_as_the_api_server_names_them() -> None:
    decisions = (
        Decision(policy="p", binding="b", evaluation="admit", elapsed_s=0.0004),
        Decision(policy="p", binding="b", evaluation="deny", actions=(ValidationAction.WARN,)),
        Decision(policy="p", binding="b", evaluation="deny", actions=(ValidationAction.AUDIT,)),
        Decision(policy="p", binding="b", evaluation="error", actions=(ValidationAction.DENY,)),
        Decision(policy="p", binding="b", evaluation="unknown", lets_pass=True),
        Decision(policy="m", binding="b", evaluation="admit", kind="mutating", elapsed_s=0.02),
    )
    status = DenialStatus(code=422, reason="Invalid", message="m")
    running = Running(lambda *_: Verdict(allowed=False, decisions=decisions, status=status))
    running.post("/validate", review_of())
    running.post("/mutate", b"{")
    found = samples(running.call("GET", "/metrics").text)

    def value(name: str, **labels: str) -> float:
        return found[f"claimgate_{name}", frozenset(labels.items())]

    request = {"operation": "CREATE", "rejected": "true"}
    assert value("admission_webhook_request_total", type="validating", code="200", **request) == 1
    assert value("admission_webhook_request_total", type="admit", operation="", code="400", rejected="true") == 1
    assert value("admission_webhook_admission_duration_seconds_count", type="validating", **request) == 1
    for error_type, action in [
        ("no_error", "allow"),
        ("no_error", "warn"),
        ("no_error", "audit"),
        ("invalid_error", "deny"),
        ("unknown", "allow"),
    ]:
        name = "validating_admission_policy_check_total"
        assert value(name, **POLICY, error_type=error_type, enforcement_action=action) == 1
    bucket = {"policy": "m", "policy_binding": "b", "error_type": "no_error"}
    assert value("mutating_admission_policy_check_total", **bucket) == 1
    assert value("mutating_admission_policy_check_duration_seconds_bucket", le="0.01", **bucket) == 0
    assert value("mutating_admission_policy_check_duration_seconds_bucket", le="0.1", **bucket) == 1
    assert value("mutating_admission_policy_check_duration_seconds_sum", **bucket) == 0.02
    assert value("policies") == 3
    assert value("build_info", version=__version__) == 1


def test_metrics_are_reused_for_nine_times_the_time_of_making_them() -> None:
    counters, now = Counters(), [1.0]
    exposition = Exposition(counters, {}, version="1", clock=lambda: now[0])

    class Slow(dict):
        """Counts that need 10 ms for each copy."""

        def copy(self) -> Any:
            now[0] += 0.01
            return super().copy()

    counters.reloads = Slow()  # type: ignore[assignment]

    def failures() -> list[float]:
        found = samples(asyncio.run(exposition.text())[0].decode())
        return [value for (name, _), value in found.items() if name == "claimgate_background_failures_total"]

    assert failures() == []
    counters.background["policies",] = 1
    now[0] += 0.08
    assert failures() == []
    now[0] += 0.02
    assert failures() == [1]


def test_a_scrape_during_generation_gets_the_last_metrics() -> None:
    exposition = Exposition(many_checks(100), {}, version="1", clock=lambda: 1.0)

    async def two_scrapes() -> tuple[bytes, bytes]:
        scrapes = [asyncio.create_task(exposition.text()) for _ in range(2)]
        slow, quick = await asyncio.gather(*scrapes)
        return slow[0], quick[0]

    first = asyncio.run(exposition.text())[0]
    exposition._counters.background["policies",] += 1
    slow, quick = asyncio.run(two_scrapes())
    assert (slow != first, quick == first) == (True, True)


def many_checks(policies: int) -> Counters:
    counters = Counters()
    for number in range(policies):
        for error in ("no_error", "invalid_error"):
            counters.validating[f"policy-{number}", "b", error, "deny"].observe(0.01)
    return counters


def test_metrics_count_faults() -> None:
    def fail(*_: object) -> Verdict:
        raise ValueError

    running = Running(fail)
    running.post("/validate", review_of())
    found = samples(running.call("GET", "/metrics").text)
    assert found["claimgate_uncaught_faults_total", frozenset({("type", "ValueError")})] == 1


def test_metrics_count_failures_of_background_tasks_and_lost_log_lines() -> None:
    running = Running()
    running.counters.background["policies",] += 2
    text = running.call("GET", "/metrics").text
    assert samples(text)["claimgate_background_failures_total", frozenset({("task", "policies")})] == 2
    assert "# TYPE claimgate_log_lines_dropped_total counter" in text
