"""A cluster with IPv6 only. The API server and the probes call a replica over IPv6. The replica has the arguments of
the Deployment.
"""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.replicas import Replica, Replicas, apply, rendered, until
from tests.e2e.test_rules import pod

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing() or _without_ipv6():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("ipv6"), has_only_ipv6=True) as running:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[-1])))
        yield running


def _without_ipv6() -> str:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return f"no IPv6 on the loopback: {error}"
    return ""


def test_the_api_server_and_probes_reach_a_replica_over_ipv6(server: ApiServer, tmp_path: Path) -> None:
    files = tmp_path / "tls"
    claimgate("certs", "issue", "--dir", str(files), "--service", f"{NAMESPACE}/claimgate", "--name", "::1")
    objects = rendered(server, "base", 443)
    configurations = [one for one in objects if "webhooks" in one]
    apply(server, [one for one in objects if one not in configurations and one["kind"] != "Service"])
    given = (f"--cert={files / 'tls.crt'}", f"--key={files / 'tls.key'}")
    server.kubectl("create", "secret", "tls", "claimgate-certificates", *given, "-n", NAMESPACE)
    replicas = Replicas(server, tmp_path, 0, has_only_ipv6=True)
    replica = replicas.start()
    try:
        replicas.until_ready(replica)
        server.apply(*(_that_calls(replica, files / "ca.crt", one) for one in configurations))
        until(lambda: "gpu-portable/" in _told(server, pod("wrong", {"gpu": "0.5"})), "a wrong Pod is refused", 60)
        assert _limits(server) == {"nvidia.com/gpu": "1"}
        assert not _told(server, pod("plain"))
    finally:
        replicas.end(replica)


def _that_calls(replica: Replica, authority: Path, configuration: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with the address of a replica, because no proxy serves the Service here."""
    bundle = base64.b64encode(authority.read_bytes()).decode()
    for one in configuration["webhooks"]:
        path = one["clientConfig"]["service"]["path"]
        one["clientConfig"] = {"url": f"https://[::1]:{replica.port}{path}", "caBundle": bundle}
    return configuration


def _told(server: ApiServer, value: dict[str, Any]) -> str:
    return server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(value), code=None).stderr


def _limits(server: ApiServer) -> dict[str, str]:
    given = yaml.safe_dump(pod("portable", {"gpu": "1"}))
    made = server.kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", given=given)
    return dict(yaml.safe_load(made.stdout)["spec"]["containers"][0]["resources"]["limits"])
