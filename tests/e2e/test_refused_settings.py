"""Contradicting and unread settings on a real API server. Helm refuses to store them, and the server refuses them in a
file and reports them in a ConfigMap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.deploy.helm import CHART, helm, tool
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.installation import has_bundles
from tests.e2e.replicas import apply, certificates, rendered, service, until, with_mounted_configuration

pytestmark = pytest.mark.e2e

REFUSED = {
    "a key that the ConfigMap does not have": (
        "params.kueue.denny=kueue-never/exceeds-max-quota",
        "params.kueue.denny: the ConfigMap has no such key; it has advice, audit, deny, kueue, off, warn",
    ),
    "a key of config.params that the ConfigMap does not have": (
        "config.params.kueue.denny=x",
        "config.params.kueue.denny: the ConfigMap has no",
    ),
    "enforce with audit": (
        "enforce=true,enforcementAction=audit",
        "enforce is true and enforcementAction is `audit`: only requests that claimgate cannot answer would be refused",
    ),
    "enforce with warn": ("enforce=true,enforcementAction=warn", "set enforcementAction to deny"),
}
DENNY = "unknown key `denny` of ConfigMap `kueue`: did you mean `deny`?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("refused")) as running:
        yield running


@pytest.mark.parametrize(("values", "told"), REFUSED.values(), ids=REFUSED)
def test_helm_stores_nothing(values: str, told: str, server: ApiServer) -> None:
    tool("helm")
    place = ("--namespace", "refused", "--create-namespace", "--kubeconfig", str(server.kubeconfig))
    done = helm("install", "claimgate", str(CHART), *place, "--set", values, code=1)
    assert told in done.stderr
    assert "claimgate" not in server.kubectl("get", "all,configmaps,secrets", "-n", "refused", "-o", "name").stdout


def test_a_replica_reports_wrong_settings_of_a_config_map_and_refuses_those_of_a_file(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "claimgate.yaml"
    configuration.write_text("{}\n")
    monkeypatch.setenv("CLAIMGATE_CONFIG", str(configuration))
    with service(server, tmp_path) as replicas:
        base = rendered(server, "base", replicas.port)
        apply(server, [with_mounted_configuration(one) for one in base])
        with certificates(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
        replica = replicas.running[0]
        patch = json.dumps({"data": {"denny": "kueue-never/exceeds-max-quota"}})
        server.kubectl("patch", "configmap", "kueue", "-n", NAMESPACE, "-p", patch)
        page = f"http://127.0.0.1:{replica.probes}/readyz?verbose"
        until(lambda: DENNY in httpx.get(page).text, "the page names it", 60)
        until(lambda: DENNY in replica.log.read_text(), "the log names it", 20)
        assert DENNY in claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=1)
        configuration.write_text("params: {kueue: {denny: kueue-never/exceeds-max-quota}}\n")
        until(lambda: "reload failed" in replica.log.read_text(), "the running replica keeps the last good file", 60)
        started = replicas.start()
        assert started.process.wait(60) == 2
        assert "claimgate.yaml:1:18: params.kueue.denny: unknown key" in started.log.read_text()
        replicas.running.remove(started)


def test_configurations_that_fail_closed_need_a_server_that_denies(server: ApiServer, tmp_path: Path) -> None:
    """With kustomize, the two settings are in different objects, one of the overlay `enforce` and one of
    `audit-only`.
    """
    told = claimgate("webhook-config", "--failure-policy=Fail", "--enforcement-action=audit", code=2)
    assert told == ""
    objects = rendered(server, "overlays/audit-only", 443)
    enforcing = [one for one in rendered(server, "overlays/enforce", 443) if "webhooks" in one]
    apply(server, [one for one in objects if "webhooks" not in one] + enforcing)
    told = claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=1)
    assert "enforcement" in told, told
    assert "--enforcement-action" in told, told
    server.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "claimgate")
