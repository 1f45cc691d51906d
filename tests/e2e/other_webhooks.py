"""Mutating webhooks of other projects, simulated by a small HTTPS server that changes objects and records calls.

As for Istio, Kueue and Volcano, each has its own configuration, and names give the order of calls.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from certs.issue import authority, serving
from tests.e2e.apiserver import ApiServer
from tests.e2e.replicas import until
from webhook.deadline import Deadline
from webhook.yamltext.jsontext import decode_any_json

Patch = Callable[[dict[str, Any]], list[dict[str, Any]]]


def sidecar(resource: str, count: str = "1") -> Patch:
    """Return a mutation that adds a container with devices, unless the Pod has it. An injector of sidecars does
    this.
    """
    added = {"name": "sidecar", "image": "i", "resources": {"limits": {resource: count}}}

    def patch(pod: dict[str, Any]) -> list[dict[str, Any]]:
        if any(one["name"] == "sidecar" for one in pod["spec"]["containers"]):
            return []
        return [{"op": "add", "path": "/spec/containers/-", "value": added}]

    return patch


def suspend_in_queue(queue: str) -> Patch:
    """Return a mutation that suspends a Job in a queue, as Kueue does with a default LocalQueue."""

    def patch(job: dict[str, Any]) -> list[dict[str, Any]]:
        labels = {**job["metadata"].get("labels", {}), "kueue.x-k8s.io/queue-name": queue}
        return [
            {"op": "add", "path": "/metadata/labels", "value": labels},
            {"op": "add", "path": "/spec/suspend", "value": True},
        ]

    return patch


def schedule_by(name: str) -> Patch:
    """Return a mutation that sets schedulerName, as Volcano does."""
    return lambda _: [{"op": "add", "path": "/spec/schedulerName", "value": name}]


@dataclass(frozen=True, slots=True)
class Other:
    name: str
    patch: Patch
    reinvocation: str = "Never"
    resource: str = "pods"
    group: str = ""


@dataclass(slots=True)
class OtherWebhooks:
    """An HTTPS server for webhooks. It keeps the objects received by each configuration in order, and the bytes of each
    call.
    """

    port: int
    bundle: str
    patches: dict[str, Patch] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def objects(self, configuration: str) -> list[dict[str, Any]]:
        return [value for name, value in self.seen if name == configuration]


@contextmanager
def other_webhooks(folder: Path) -> Iterator[OtherWebhooks]:
    now = datetime.now(UTC)
    ca = authority("others", now=now)
    pair = serving(ca, ["localhost"], now=now)
    (folder / "others.crt").write_bytes(pair.certificate)
    (folder / "others.key").write_bytes(pair.key)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["content-length"]))
            request = decode_any_json(sent, Deadline())["request"]
            others.bodies.append(sent)
            name = self.path.partition("?")[0].strip("/")
            others.seen.append((name, request["object"]))
            patch = others.patches[name](request["object"])
            response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
            if patch:
                response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
            answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "others.crt", folder / "others.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        others = OtherWebhooks(server.server_port, base64.b64encode(ca.certificate).decode())
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield others
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def registered(server: ApiServer, others: OtherWebhooks, namespace: str, *configurations: Other) -> Iterator[None]:
    for one in configurations:
        others.patches[one.name] = one.patch
        server.apply(_configuration(one, others, namespace))
    names = [one.name for one in configurations]
    try:
        _wait_until_called(server, others, namespace, configurations)
        others.seen.clear()
        yield
    finally:
        server.kubectl("delete", "mutatingwebhookconfiguration", *names)


def _wait_until_called(
    server: ApiServer, others: OtherWebhooks, namespace: str, configurations: tuple[Other, ...]
) -> None:
    container = {"name": "c", "image": "i"}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    probes = {
        "pods": {"apiVersion": "v1", "kind": "Pod", **pod},
        "jobs": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod}},
        "batchsandboxes": {
            "apiVersion": "sandbox.opensandbox.io/v1alpha1",
            "kind": "BatchSandbox",
            "spec": {"replicas": 1, "template": pod},
        },
    }

    def all_are() -> bool:
        for resource in {one.resource for one in configurations}:
            probe = {**probes[resource], "metadata": {"generateName": "probe-", "namespace": namespace}}
            # the test checks the result, so an error is ignored here
            server.kubectl("create", "--dry-run=server", "-f", "-", given=json.dumps(probe), code=None)
        return {one.name for one in configurations} <= {name for name, _ in others.seen}

    until(all_are, "all other webhooks are called")


def _configuration(one: Other, others: OtherWebhooks, namespace: str) -> dict[str, Any]:
    webhook = {
        "name": f"{one.name}.example.com",
        "clientConfig": {"url": f"https://localhost:{others.port}/{one.name}", "caBundle": others.bundle},
        "rules": [
            {"apiGroups": [one.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [one.resource]}
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "reinvocationPolicy": one.reinvocation,
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": one.name}, "webhooks": [webhook]}
