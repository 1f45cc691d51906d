"""The report of `webhook-config --check --live` about the stored certificate."""

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
from webhook.server.tls import describe_wrong_period

NOW = datetime.now(UTC)
FATE = "all requests pass"
MEANWHILE = f"a replica that serves it gets no reviews; while all replicas serve it, {FATE}"
SERVICE = ServiceReference(namespace="n", name="claimgate")


@pytest.mark.parametrize(
    ("issued", "told"),
    [
        pytest.param(NOW, "", id="valid"),
        pytest.param(NOW - timedelta(days=100), "it expired at ", id="expired"),
        pytest.param(NOW + timedelta(days=1), "it is not valid before ", id="of a clock that is ahead"),
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
    lines = list(check_certificate(cluster, SERVICE, base64.b64encode(ca.certificate).decode(), FATE))
    assert [line[: len(told)] for line in lines] == ([told, MEANWHILE[: len(told)]] if told else [])


def test_what_to_do_first_about_a_certificate_depends_on_the_direction() -> None:
    """For a certificate that is not valid yet, the message first suggests to correct the clock. For an expired
    certificate, it first suggests a new one.
    """
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    begins, ends = datetime(2026, 7, 26, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert describe_wrong_period(begins, ends, now) == (
        "it expired at 2026-10-24T12:00:00Z, 35 days ago: issue a new certificate; if the Deployment "
        "claimgate-certificates should renew it, read its log; this machine's clock says 2026-11-28T12:00:00Z; if that "
        "time is wrong, correct the clock"
    )
    assert describe_wrong_period(begins, ends, begins - timedelta(hours=30)) == (
        "it is not valid before 2026-07-26T12:00:00Z, in 30 hours, and the clock of this machine says "
        "2026-07-25T06:00:00Z: set this clock right; if it is right, issue a new certificate"
    )
    assert ", 90 minutes ago: issue" in describe_wrong_period(begins, ends, ends + timedelta(minutes=90))
    assert describe_wrong_period(begins, ends, begins) == describe_wrong_period(begins, ends, ends) == ""


def test_a_bundle_of_another_authority_is_named_after_an_expired_certificate(server: ApiServer, tmp_path: Path) -> None:
    ca, other = authority("a", now=NOW), authority("b", now=NOW)
    pair = serving(ca, ["claimgate.n.svc"], now=NOW - timedelta(days=100), days=90)
    data = {"tls.crt": base64.b64encode(pair.certificate).decode()}
    server.answers["/api/v1/namespaces/n/secrets/claimgate-certificates"] = 200, {"data": data}
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    bundle = base64.b64encode(other.certificate).decode()
    expired, untrusted, meanwhile = check_certificate(cluster, SERVICE, bundle, FATE)
    assert expired.startswith("it expired at ")
    assert untrusted == (
        "no authority of the caBundle signed it either: first replace the certificate, then inject the bundle of its "
        "authority with `claimgate certs inject`; the Deployment claimgate-certificates takes the two steps, and its "
        "log says why it did not"
    )
    assert meanwhile == MEANWHILE


def test_the_secret_is_the_one_that_the_server_mounts(server: ApiServer, tmp_path: Path) -> None:
    ca = authority("a", now=NOW)
    bundle = base64.b64encode(ca.certificate).decode()
    volumes = [{"name": "config", "configMap": {"name": "c"}}, {"name": "tls", "secret": {"secretName": "own"}}]
    deployment = {"spec": {"template": {"spec": {"volumes": volumes}}}}
    server.answers["/apis/apps/v1/namespaces/n/deployments/claimgate"] = 200, deployment
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    (line,) = check_certificate(cluster, SERVICE, bundle, FATE)
    assert line.startswith("unknown, because no Secret n/own with tls.crt exists")
    pair = serving(ca, ["claimgate.n.svc"], now=NOW)
    data = {"tls.crt": base64.b64encode(pair.certificate).decode()}
    server.answers["/api/v1/namespaces/n/secrets/own"] = 200, {"data": data}
    assert list(check_certificate(cluster, SERVICE, bundle, FATE)) == []
