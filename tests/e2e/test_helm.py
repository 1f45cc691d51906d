"""The chart on a real API server: installed, enforced, rolled back and removed. Its Pods never run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.helm import CHART, NAMESPACE, helm, rendered, tool
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import claimgate
from tests.e2e.test_install import CONFIGURATIONS, GPU, refusal, until
from tests.e2e.test_rules import pod
from tests.live_policies.stored import policy

pytestmark = pytest.mark.e2e

RELEASE = ("claimgate", str(CHART), "--namespace", NAMESPACE)
CLUSTER_WIDE = ("clusterroles", "clusterrolebindings", "priorityclasses", *CONFIGURATIONS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    tool("helm")
    if reason := apiserver.without_controllers():
        pytest.skip(reason)
    flags = ["--enable-aggregator-routing=true"]  # the Service has no endpoints, so calls fail at once
    with apiserver.running(tmp_path_factory.mktemp("helm"), *flags) as running, apiserver.controllers(running):
        yield running


def test_a_release_is_installed_enforced_rolled_back_and_removed(server: ApiServer) -> None:
    told = _helm(server, "install", *RELEASE, "--create-namespace", "--set", "enforce=true")
    assert "claimgate webhook-config --check --live" in told
    assert "pods.validate.claimgate.dev" in told, "a webhook without a bundle must not fail closed"
    _has_everything(server)
    assert _policies(server) == {"Ignore"}
    server.apply(pod("nobody-answers", GPU))
    place = ["--secret", f"{NAMESPACE}/claimgate-certificates", "--service", f"{NAMESPACE}/claimgate"]
    claimgate("certs", "rotate", *place, "--inject", "claimgate", "--kubeconfig", str(server.kubeconfig))
    told = _helm(server, "upgrade", *RELEASE, "--reuse-values")
    assert "API servers refuse a request that claimgate does not answer." in told
    assert _policies(server) == {"Fail"}
    until(lambda: "claimgate.dev" in refusal(server, "enforced"), "a Pod is refused")
    _helm(server, "upgrade", *RELEASE, "--reuse-values", "--set", "enforce=false")
    until(lambda: not refusal(server, "gone-back"), "a Pod is taken again")
    _keeps_applied_policies(server)
    _leaves_nothing(server)


def _keeps_applied_policies(server: ApiServer) -> None:
    """The CustomResourceDefinitions stay in any state of the release, until an administrator deletes them."""
    _helm(server, "upgrade", *RELEASE, "--reuse-values", "--set", "livePolicies=true")
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
    mine = policy("mine")
    server.apply({**mine, "metadata": {"name": "mine"}})
    kept = [server.get("validatingpolicies.claimgate.dev", "mine")]
    _helm(server, "upgrade", *RELEASE, "--reuse-values", "--set", "livePolicies=false")
    kept.append(server.get("validatingpolicies.claimgate.dev", "mine"))
    _helm(server, "upgrade", *RELEASE, "--reuse-values", "--set", "livePolicies=true")
    _helm(server, "rollback", "claimgate", "1", "--namespace", NAMESPACE)  # revision 1 has no bundle
    kept.append(server.get("validatingpolicies.claimgate.dev", "mine"))
    _helm(server, "uninstall", "claimgate", "--namespace", NAMESPACE)
    kept.append(server.get("validatingpolicies.claimgate.dev", "mine"))
    assert all(one["metadata"]["uid"] == kept[0]["metadata"]["uid"] for one in kept), kept
    told = _helm(server, "install", *RELEASE, "--set", "livePolicies=true")
    (command,) = [line.split() for line in told.splitlines() if line.strip().startswith("kubectl delete crd")]
    server.kubectl(*command[1:])
    assert "claimgate" not in server.kubectl("get", "crd", "-o", "name").stdout


def _leaves_nothing(server: ApiServer) -> None:
    _helm(server, "uninstall", "claimgate", "--namespace", NAMESPACE)
    for kind in CLUSTER_WIDE:
        assert "claimgate" not in server.kubectl("get", kind, "-o", "name").stdout, kind
    server.kubectl("delete", "namespace", NAMESPACE)


def _has_everything(server: ApiServer) -> None:
    for one in rendered():
        place = ["--namespace", NAMESPACE] if "namespace" in one["metadata"] else []
        server.kubectl("get", one["kind"], one["metadata"]["name"], *place)


def _policies(server: ApiServer) -> set[str]:
    return {one["failurePolicy"] for kind in CONFIGURATIONS for one in server.get(kind, "claimgate")["webhooks"]}


def _helm(server: ApiServer, *arguments: str) -> str:
    return helm(*arguments, "--kubeconfig", str(server.kubeconfig)).stdout
