"""The webhook in a real cluster: HTTP as the API server uses it, certificates, rotation, metrics."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import httpx
import pytest

from tests.e2e.apiserver import PATIENCE_S
from tests.e2e.conftest import NAMESPACE, Cluster, claimgate
from tests.e2e.endpoints import endpoints
from tests.e2e.test_rules import pod

pytestmark = pytest.mark.e2e

BASE = Path(__file__).parents[2] / "deploy" / "base"


def _client(cluster: Cluster) -> httpx.Client:
    trust = ssl.create_default_context(cafile=str(cluster.certificates / "ca.crt"))
    trust.check_hostname = False  # the certificate is for the Service
    return httpx.Client(verify=trust, base_url=f"https://localhost:{cluster.port}")


def test_the_server_is_ready_with_every_kind_that_it_looks_up(cluster: Cluster) -> None:
    with _client(cluster) as client:
        answer = client.get("/readyz?verbose")
    assert answer.status_code == 200
    assert "[+]cluster ok" in answer.text


def test_a_rotated_certificate_is_loaded_without_a_failed_call(cluster: Cluster) -> None:
    place = ["--dir", str(cluster.certificates), "--service", f"{NAMESPACE}/claimgate", "--name", "rotated.example"]
    claimgate("certs", "rotate", *place)
    end = time.monotonic() + PATIENCE_S
    while not cluster.lines("reloaded") and time.monotonic() < end:
        time.sleep(0.1)
    assert [line["what"] for line in cluster.lines("reloaded")] == ["certificate"]
    for number in range(5):
        cluster.server.apply(pod(f"rotated-{number}", {"cpu": "1"}))


def test_reviews_are_counted_and_none_failed(cluster: Cluster) -> None:
    cluster.server.apply(pod("counted", {"gpu": "1"}))
    with _client(cluster) as client:
        text = client.get("/metrics").text
    assert (
        'claimgate_admission_webhook_request_total{code="200",operation="CREATE",rejected="false",type="admit"}' in text
    )
    assert 'policy="gpu-portable-refused"' in text
    assert cluster.lines("internal fault") == []
    assert cluster.lines("call refused") == []


def test_the_api_server_accepts_the_deployment_without_a_warning(cluster: Cluster) -> None:
    label = "pod-security.kubernetes.io/warn=restricted"
    cluster.server.kubectl("label", "namespace", NAMESPACE, label)
    rendered = cluster.server.kubectl("kustomize", str(BASE)).stdout
    done = cluster.server.kubectl("create", "--dry-run=server", "-f", "-", given=rendered, code=None)
    # the test already installed these objects, and all others are new
    exists = [
        'namespaces "claimgate-system"',
        'services "claimgate"',
        'webhookconfigurations.admissionregistration.k8s.io "claimgate"',
    ]
    complaints = [line for line in done.stderr.splitlines() if not any(name in line for name in exists)]
    assert complaints == []
    assert len(done.stdout.splitlines()) == rendered.count("\nkind: ") + rendered.startswith("kind: ") - 4


def test_the_check_allows_enforcing_when_a_dry_run_is_answered_in_time(cluster: Cluster) -> None:
    server, files = cluster.server, cluster.certificates
    pair = [f"--cert={files / 'tls.crt'}", f"--key={files / 'tls.key'}"]
    server.kubectl("create", "secret", "tls", "claimgate-certificates", "--namespace", NAMESPACE, *pair)
    server.kubectl("create", "-f", "-", given=claimgate("webhook-config", "--rbac"))
    account = f"--serviceaccount={NAMESPACE}:claimgate"
    server.kubectl("create", "clusterrolebinding", "claimgate", "--clusterrole=claimgate", account)
    live = ["webhook-config", "--check", "--kubeconfig", str(server.kubeconfig)]
    assert claimgate(*live, code=1).startswith(f"Service {NAMESPACE}/claimgate: 0 replicas ready")
    server.apply(endpoints("a", "b"))  # the Service is an ExternalName, so the API server calls no server
    told = claimgate(*live)
    assert told.startswith("nothing is missing in the objects that you may read")
    assert "replicas: 2 of 2 ready behind Service claimgate-system/claimgate" in told
    assert "failurePolicy as stored: if no replica answered, " in told
    assert "sagemaker.amazonaws.com" not in told, "this API server serves no such kind"
    assert "resources of APIs that this cluster does not serve yet" in told
    assert "claimgate-dry-run" in {name for _, name in cluster.asked_until("claimgate-dry-run")}
    server.kubectl("delete", "endpointslice", "claimgate", "--namespace", NAMESPACE)


def test_certificates_in_a_secret_and_their_injection(cluster: Cluster, tmp_path: Path) -> None:
    where = ["--secret", "default/certificates", "--kubeconfig", str(cluster.server.kubeconfig)]
    claimgate("certs", "show", *where, code=2)
    claimgate("certs", "rotate", *where, "--service", "default/other")
    secret = cluster.server.get("secret", "certificates")
    assert set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert claimgate("certs", "rotate", *where) == "nothing is due\n"
    assert "other.default.svc" in claimgate("certs", "show", *where)
    printed = claimgate("webhook-config", "--name", "other", "--service", "default/other")
    (tmp_path / "other.yaml").write_text(printed)
    cluster.server.kubectl("create", "-f", str(tmp_path / "other.yaml"))
    claimgate("certs", "rotate", *where, "--inject", "other")
    for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        webhooks = cluster.server.get(kind, "other")["webhooks"]
        assert {one["clientConfig"]["caBundle"] for one in webhooks} == {secret["data"]["ca.crt"]}
        cluster.server.kubectl("delete", kind, "other")
    claimgate("certs", "inject", "nowhere", *where, code=2)
