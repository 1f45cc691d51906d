"""What `webhook-config --check --live` says of the stored certificate."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.issue import authority, serving
from tests.cluster.server import ApiServer
from webhook.cluster.connection import connect_to_cluster
from webhook.commands.enforcing import ClusterReader, check_certificate
from webhook.manifests.webhook_configurations import ServiceReference

NOW = datetime.now(UTC)
SERVICE = ServiceReference(namespace="n", name="claimgate")


@pytest.mark.parametrize(
    ("issued", "told"),
    [
        pytest.param(NOW, "", id="valid"),
        pytest.param(NOW - timedelta(days=100), "the certificate is valid from ", id="expired"),
        pytest.param(NOW + timedelta(days=1), "the certificate is valid from ", id="of a clock that is ahead"),
    ],
)
def test_a_certificate_that_is_not_valid_now_is_named(
    issued: datetime, told: str, server: ApiServer, tmp_path: Path
) -> None:
    ca = authority("a", now=NOW)
    pair = serving(ca, ["claimgate.n.svc"], now=issued, days=90)
    data = {"tls.crt": base64.b64encode(pair.certificate).decode()}
    server.answers["/api/v1/namespaces/n/secrets/claimgate-certificates"] = 200, {"data": data}
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    lines = list(check_certificate(cluster, SERVICE, base64.b64encode(ca.certificate).decode()))
    assert [line[: len(told)] for line in lines] == ([told] if told else [])
    assert all("compare the clocks of this machine and of the nodes" in line for line in lines)


def test_the_secret_is_the_one_that_the_server_mounts(server: ApiServer, tmp_path: Path) -> None:
    """`certificates.secretName` of the chart gives it another name."""
    ca = authority("a", now=NOW)
    bundle = base64.b64encode(ca.certificate).decode()
    volumes = [{"name": "config", "configMap": {"name": "c"}}, {"name": "tls", "secret": {"secretName": "own"}}]
    deployment = {"spec": {"template": {"spec": {"volumes": volumes}}}}
    server.answers["/apis/apps/v1/namespaces/n/deployments/claimgate"] = 200, deployment
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    (line,) = check_certificate(cluster, SERVICE, bundle)
    assert line.startswith("unknown, because no Secret n/own with tls.crt exists")
    pair = serving(ca, ["claimgate.n.svc"], now=NOW)
    data = {"tls.crt": base64.b64encode(pair.certificate).decode()}
    server.answers["/api/v1/namespaces/n/secrets/own"] = 200, {"data": data}
    assert list(check_certificate(cluster, SERVICE, bundle)) == []
