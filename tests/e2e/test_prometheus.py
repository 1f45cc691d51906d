"""Alerts of a real installation, evaluated by a real Prometheus. Each provoked fault fires only its own alert."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from tests.e2e import apiserver, prometheus
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.installation import CONFIGURATIONS, has_bundles
from tests.e2e.prometheus import Prometheus
from tests.e2e.proxies import FaultyProxy
from tests.e2e.replicas import (
    Replicas,
    apply,
    certificates,
    registration,
    rendered,
    service,
    until,
    with_mounted_configuration,
)
from tests.e2e.test_rules import pod
from tests.live_policies.stored import binding, policy
from webhook.commands.live_registration import STORED_POLICIES

pytestmark = pytest.mark.e2e

IN_A_WEEK = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=7)
EXCEPTION = f"""
exceptions:
- {{rules: [gpu-portable/all], namespaces: [research], owner: ada, reason: old nodes, expires: "{IN_A_WEEK}"}}
"""
FAILS = policy("labelled", "object.metadata.labels['team'] == 'ml'", failurePolicy="Ignore")
CALLED = 'sum(apiserver_admission_webhook_request_total{name=~".*claimgate.dev"})'
MISSPELT = policy("misspelt", "gpu.devises == 1", facts=["gpu"])


class Seen(NamedTuple):
    server: ApiServer
    replicas: Replicas
    prometheus: Prometheus
    configuration: Path
    proxy: FaultyProxy
    lasting: set[str]
    """Alerts that look back over minutes, and still fire after their fault"""

    def until_firing(self, *names: str) -> None:
        """Wait until exactly these alerts fire, in addition to those of `lasting`."""
        expected, end = {*names, *self.lasting}, time.monotonic() + 90
        while (firing := self.prometheus.firing()) != expected:
            assert time.monotonic() < end, f"{firing} fire, not {expected}"
            time.sleep(0.2)

    def create(self, value: dict[str, Any]) -> str:
        """Try to create an object in a dry run, and return what kubectl prints."""
        given = yaml.safe_dump(value)
        return self.server.kubectl("create", "--dry-run=server", "-f", "-", given=given, code=None).stderr


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing() or prometheus.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("prometheus")) as running:
        yield running


def test_each_fault_fires_its_alert(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "claimgate.yaml"
    configuration.write_text("{}\n")
    monkeypatch.setenv("CLAIMGATE_CONFIG", str(configuration))
    url = httpx.URL(server.url)
    proxy = FaultyProxy(url.host, int(url.port or 443))
    try:
        with service(server, tmp_path) as replicas, prometheus.reading(server, tmp_path / "prometheus") as reading:
            replicas.address = f"https://127.0.0.1:{proxy.port}"
            objects = rendered(server, "overlays/live-policies", replicas.port)
            apply(server, [with_mounted_configuration(one) for one in objects])
            server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
            with certificates(server, tmp_path), registration(server, tmp_path):
                until(lambda: has_bundles(server), "both configurations have the bundle")
                replicas.roll()
                seen = Seen(server, replicas, reading, configuration, proxy, set())
                reading.reads(replicas.running)
                _nothing_fires(seen)
                for fault in FAULTS:
                    fault(seen)
    finally:
        proxy.close()


def _nothing_fires(seen: Seen) -> None:
    until(lambda: seen.prometheus.value("count(claimgate_ready == 1)") == 2, "both replicas are read", 60)
    seen.until_firing()  # ClaimgateAbsent fires until Prometheus reads the first replica
    for number in range(20):
        assert not seen.create(pod(f"healthy-{number}", {"nvidia.com/gpu": "1"}))
        assert not seen.prometheus.firing()
    until(lambda: (seen.prometheus.value(CALLED) or 0) >= 20, "the API server is read", 60)
    seen.until_firing()


def _typo_in_the_configuration(seen: Seen) -> None:
    seen.configuration.write_text("level: {}\n")
    seen.until_firing("ClaimgateReloadFailed")
    assert seen.prometheus.summaries("ClaimgateReloadFailed") == {"claimgate cannot apply changed configuration"}
    seen.configuration.write_text("{}\n")
    seen.until_firing()


def _exception_ends(seen: Seen) -> None:
    seen.configuration.write_text(EXCEPTION)
    seen.until_firing("ClaimgateExceptionEnds")
    assert seen.prometheus.summaries("ClaimgateExceptionEnds") == {f"the exception of ada ends on {IN_A_WEEK}"}
    seen.configuration.write_text("{}\n")
    seen.until_firing()


def _typo_in_params(seen: Seen) -> None:
    literal = "--from-literal=kueue.denny=kueue-never/exceeds-max-quota"
    seen.server.kubectl("create", "configmap", "claimgate-site", "-n", NAMESPACE, literal)
    seen.until_firing("ClaimgateParamsMistaken")
    assert "denny" in seen.replicas.running[0].log.read_text()
    seen.server.kubectl("delete", "configmap", "claimgate-site", "-n", NAMESPACE)
    seen.until_firing()


def _policy_that_fails(seen: Seen) -> None:
    apply(seen.server, [_written(FAILS), _written(binding("labelled", "labelled"))])

    def fires() -> bool:
        seen.create(pod("unlabelled"))
        return "ClaimgatePolicyFails" in seen.prometheus.firing()

    until(fires, "ClaimgatePolicyFails fires", 60)
    assert seen.prometheus.summaries("ClaimgatePolicyFails") == {"policy labelled cannot be evaluated"}
    seen.server.kubectl("delete", "validatingpolicies.claimgate.dev,policybindings.claimgate.dev", "--all")
    seen.lasting.add("ClaimgatePolicyFails")
    seen.until_firing()


def _certificate_ends(seen: Seen) -> None:
    replica = seen.replicas.running[0]
    kept = {name: (replica.log.parent / name).read_bytes() for name in ("tls.crt", "tls.key")}
    folder = replica.log.parent / "short"
    claimgate("certs", "issue", "--dir", str(folder), "--service", f"{NAMESPACE}/claimgate", "--days=7")
    for name in kept:
        shutil.copy(folder / name, replica.log.parent / name)
    seen.until_firing("ClaimgateCertificateEnds")
    for name, content in kept.items():
        (replica.log.parent / name).write_bytes(content)
    seen.until_firing()


def _full_log(seen: Seen) -> None:
    seen.replicas.stderr = os.open("/dev/full", os.O_WRONLY)
    seen.replicas.roll()
    seen.prometheus.reads(seen.replicas.running)

    def fires() -> bool:
        seen.create(pod("logged", {"nvidia.com/gpu": "1"}))
        return "ClaimgateLogLinesLost" in seen.prometheus.firing()

    until(fires, "ClaimgateLogLinesLost fires", 60)
    seen.lasting.add("ClaimgateLogLinesLost")
    os.close(seen.replicas.stderr)
    seen.replicas.stderr = None
    seen.replicas.roll()
    seen.prometheus.reads(seen.replicas.running)
    seen.until_firing()


def _start_without_the_api_server(seen: Seen) -> None:
    """Start a replica while no replica can reach the API server. The running replicas stay ready."""
    seen.proxy.mode = "away"
    seen.proxy.cut()
    replica = seen.replicas.start()
    until(replica.listens, "it listens")
    seen.prometheus.reads(seen.replicas.running)
    seen.until_firing("ClaimgateNotReady")
    name = replica.log.parent.name
    assert seen.prometheus.summaries("ClaimgateNotReady") == {f"replica {name} runs but is not ready"}
    seen.proxy.mode = "pass"
    until(lambda: not replica.unready(), "it is ready")
    seen.until_firing()
    seen.replicas.end(replica)
    seen.prometheus.reads(seen.replicas.running)


def _replica_killed(seen: Seen) -> None:
    seen.replicas.running[0].process.kill()
    seen.replicas.running[0].process.wait(10)
    seen.until_firing("ClaimgateOneReplica")


def _both_killed(seen: Seen) -> None:
    """End both replicas. Requests pass with failurePolicy Ignore, and are refused with Fail."""
    for one in list(seen.replicas.running):
        seen.replicas.end(one)
    _create_until(seen, "ClaimgateGoesUnasked")
    seen.until_firing("ClaimgateAbsent")
    _enforces(seen.server)
    _create_until(seen, "ClaimgateOutageRefuses")
    seen.until_firing("ClaimgateAbsent")


def _enforces(server: ApiServer) -> None:
    """Set failurePolicy Fail, except for the webhook for stored policies."""
    for kind in CONFIGURATIONS.split(","):
        names = [one["name"] for one in server.get(kind, "claimgate")["webhooks"]]
        patch = [
            {"op": "replace", "path": f"/webhooks/{at}/failurePolicy", "value": "Fail"}
            for at, name in enumerate(names)
            if name != STORED_POLICIES
        ]
        server.kubectl("patch", kind, "claimgate", "--type=json", "-p", json.dumps(patch))


def _create_until(seen: Seen, name: str) -> None:
    """Create Pods until the alert fires. The alert is about calls of an API server, and continues for minutes."""

    def fires() -> bool:
        seen.create(pod("unanswered", {"nvidia.com/gpu": "1"}))
        return name in seen.prometheus.firing()

    until(fires, f"{name} fires", 60)
    seen.lasting.add(name)


def _policy_broken_meanwhile(seen: Seen) -> None:
    apply(seen.server, [_written(MISSPELT)])
    seen.replicas.roll()
    seen.prometheus.reads(seen.replicas.running)
    seen.until_firing("ClaimgateLivePolicyBroken")
    seen.server.kubectl("delete", "validatingpolicies.claimgate.dev", "--all")
    seen.until_firing()


FAULTS: tuple[Callable[[Seen], None], ...] = (
    _typo_in_the_configuration,
    _exception_ends,
    _typo_in_params,
    _policy_that_fails,
    _certificate_ends,
    _full_log,
    _start_without_the_api_server,
    _replica_killed,
    _both_killed,
    _policy_broken_meanwhile,
)
"""One after the other, in one installation"""


def _written(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {"name": value["metadata"]["name"]}}
