"""Spans of OpenTelemetry. A server sends one span for each review to a collector in the process of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.commands.test_serve import served
from tests.server.asgi import review_of

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "sk-of-nobody-else"
WRONG = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "of-alice", "annotations": {"key": SECRET}},
    "spec": {"containers": [{"name": "c", "image": SECRET, "resources": {"limits": {"gpu": "all"}}}]},
}


@dataclass
class Collector:
    port: int
    code: int = 200
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)

    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]


@contextmanager
def collecting(code: int = 200) -> Iterator[Collector]:
    """Run an OTLP collector on the loopback address until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(code)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(server.server_port, code)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def attributes(span: Any) -> dict[str, Any]:
    kinds = {one.key: one.value for one in span.attributes}
    return {
        key: [each.string_value for each in value.array_value.values]
        if value.HasField("array_value")
        else getattr(value, value.WhichOneof("value"))
        for key, value in kinds.items()
    }


def test_each_review_has_a_span_below_that_of_the_api_server(tmp_path: Path) -> None:
    with collecting() as collector:
        to = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}"}
        with served(tmp_path, "--traces", **to) as server, server.client() as client:
            server.wait("ready")
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            answer = client.post("/mutate", json=review_of(object=WRONG), headers=headers).json()
            assert answer["response"]["status"]["code"] == 400
            large = {**WRONG, "metadata": {"name": "large", "annotations": {"note": "x" * 200_000}}}
            client.post("/mutate", json=review_of(object=large))
            assert client.post("/validate", content=b"{").status_code == 415
            assert client.get("/readyz").is_success
    (resource,) = {
        of_resource.resource.SerializeToString() for each in collector.requests for of_resource in each.resource_spans
    }
    assert b"claimgate" in resource
    denied, by_worker, refused = collector.spans()
    assert (denied.trace_id.hex(), denied.parent_span_id.hex()) == (TRACE, PARENT)
    assert by_worker.trace_id.hex() != TRACE
    told = attributes(denied)
    assert denied.name == "mutate review"
    assert told["claimgate.rules"] == ["gpu-portable/all"]
    assert (told["claimgate.review.allowed"], told["claimgate.review.code"]) == (False, 400)
    assert told["http.response.status_code"] == 200
    assert attributes(by_worker)["claimgate.review.lane"] == "worker"
    assert attributes(refused) == {"http.response.status_code": 415}
    sent = b"".join(each.SerializeToString() for each in collector.requests)
    assert SECRET.encode() not in sent
    assert b"of-alice" not in sent


@pytest.mark.parametrize("code", [0, 503])
def test_a_collector_that_is_down_or_refuses_does_no_harm(code: int, tmp_path: Path) -> None:
    with collecting(code or 200) as collector:
        port = collector.port if code else 1
        to = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        with served(tmp_path, "--traces", **to) as server, server.client() as client:
            for _ in range(20):
                assert client.post("/mutate", json=review_of(object=WRONG)).is_success
            for _ in range(100):
                if 'claimgate_spans_total{outcome="failed"}' in client.get("/metrics").text:
                    break
                server.process.poll()
                threading.Event().wait(0.1)
            else:
                raise AssertionError(client.get("/metrics").text)
        assert server.process.returncode == 0


def test_without_the_flag_nothing_is_sent_or_imported(tmp_path: Path) -> None:
    with collecting() as collector:
        to = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}"}
        with served(tmp_path, **to) as server, server.client() as client:
            client.post("/mutate", json=review_of(object=WRONG))
            maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert collector.requests == []
    assert "protobuf" not in maps
