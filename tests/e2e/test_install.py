"""Installs, enforces, rolls back, upgrades and removes claimgate in a cluster.

The API server runs no Pods, so the server never answers, as in a faulty installation. The certificates process runs with
the arguments of its Pod.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import claimgate
from tests.e2e.endpoints import endpoints
from tests.e2e.test_rules import pod
from tests.yamldata import documents

pytestmark = pytest.mark.e2e

DEPLOY = Path(__file__).parents[2] / "deploy"
CONFIGURATIONS = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
NAMESPACE = "claimgate-system"
ATTEMPTS = 300
GPU = {"nvidia.com/gpu": "1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.without_controllers():
        pytest.skip(reason)
    # with this flag, calls of a Service without endpoints are refused at once, as with kube-proxy
    flags = ["--enable-aggregator-routing=true"]
    with apiserver.running(tmp_path_factory.mktemp("install"), *flags) as running, apiserver.controllers(running):
        yield running


def test_a_cluster_works_with_an_installation_that_never_answers(server: ApiServer) -> None:
    _apply(server, "base")
    server.apply(pod("before-any-bundle", GPU))
    with _certificates(server):
        until(lambda: all(_bundles(server)), "both configurations have the bundle")
        bundle = _secret(server)["ca.crt"]
        assert _bundles(server) == [bundle, bundle]
        server.apply(pod("nobody-answers", GPU))
        _is_checked_before_it_enforces(server)
        _enforces_and_goes_back(server)
        _upgrades(server)
        _injects_what_is_applied_anew(server, bundle)
    _leaves_nothing_that_blocks(server)


def _is_checked_before_it_enforces(server: ApiServer) -> None:
    live = ["webhook-config", "--check", "--kubeconfig", str(server.kubeconfig)]
    why, told = claimgate(*live, code=1).splitlines()
    assert "there are no Pods" in why
    fate = "all requests pass unchecked (failurePolicy: Ignore)"
    assert told == f"Service {NAMESPACE}/claimgate: 0 replicas ready, 2 expected; meanwhile {fate}"
    server.kubectl("delete", "clusterrole", "claimgate")
    assert "ClusterRole claimgate: it does not exist: apply the output" in claimgate(*live, code=1)
    _apply(server, "base")
    for node in ("a", "b"):
        server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    server.apply(endpoints("a", "a"))
    (told,) = claimgate(*live, code=1).splitlines()
    assert "all replicas run on one node" in told
    server.kubectl("apply", "-f", "-", given=yaml.safe_dump(endpoints("a", "b")))
    (told,) = claimgate(*live, code=1).splitlines()  # no server listens at this address
    assert told.startswith("answer to a dry run: none, because `gpu` is still in the Pod")
    server.kubectl("delete", "endpointslice", "claimgate", "--namespace", NAMESPACE)


def _enforces_and_goes_back(server: ApiServer) -> None:
    _apply(server, "overlays/enforce")
    until(lambda: "claimgate.dev" in refusal(server, "enforced"), "a Pod is refused")
    assert "no endpoints available for service" in refusal(server, "enforced")
    server.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other-kinds-are-not-asked-about"}})
    # the webhook matches Deployments, but not in these two namespaces
    for namespace in ("kube-system", NAMESPACE):
        server.kubectl("create", "deployment", "needed-to-start", "--image=i", "--namespace", namespace)
    _apply(server, "base")
    until(lambda: not refusal(server, "gone-back"), "a Pod is taken again")


def _upgrades(server: ApiServer) -> None:
    """A newer version can be applied over the installation, because no changed field is immutable."""
    rendered = server.kubectl("kustomize", str(DEPLOY / "base")).stdout
    newer = rendered.replace("image: claimgate:", "image: registry.example/claimgate:9.")
    assert newer.count("registry.example") == 2
    server.kubectl("apply", "-f", "-", given=newer)


def _injects_what_is_applied_anew(server: ApiServer, bundle: str) -> None:
    server.kubectl("delete", CONFIGURATIONS[0], "claimgate")
    _apply(server, "base")
    until(lambda: _bundles(server) == [bundle, bundle], "the new configuration has the bundle")


def _leaves_nothing_that_blocks(server: ApiServer) -> None:
    _apply(server, "overlays/enforce")
    assert refusal(server, "enforced-again")
    server.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    until(lambda: not refusal(server, "after-the-namespace"), "nothing asks a server that is gone")
    for kind in CONFIGURATIONS:
        until(lambda kind=kind: not server.kubectl("get", kind, "-o", "name").stdout, f"no {kind} is left")  # type: ignore[misc]


@contextmanager
def _certificates(server: ApiServer) -> Iterator[None]:
    """Run the process of the Deployment claimgate-certificates, with a shorter interval."""
    (deployment,) = [one for one in documents(DEPLOY / "base" / "certificates.yaml") if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    arguments = [one for one in container["args"] if not one.startswith("--every")]
    command = [sys.executable, "-m", "webhook", *arguments, "--every=1", f"--kubeconfig={server.kubeconfig}"]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(30) == 0


def _apply(server: ApiServer, folder: str) -> None:
    server.kubectl("apply", "-k", str(DEPLOY / folder))


def _bundles(server: ApiServer) -> list[str]:
    webhooks = [server.get(kind, "claimgate")["webhooks"] for kind in CONFIGURATIONS]
    bundles = [{one["clientConfig"].get("caBundle", "") for one in each} for each in webhooks]
    return ["" if "" in found or len(found) > 1 else found.pop() for found in bundles]


def _secret(server: ApiServer) -> dict[str, str]:
    data: dict[str, str] = server.get("secret", "claimgate-certificates", NAMESPACE)["data"]
    assert b"BEGIN CERTIFICATE" in base64.b64decode(data["ca.crt"])
    return data


def refusal(server: ApiServer, name: str) -> str:
    done = server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(pod(name, GPU)), code=None)
    return done.stderr if done.returncode else ""


def until(holds: Callable[[], object], what: str) -> None:
    for _ in range(ATTEMPTS):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(f"not after {ATTEMPTS} looks: {what}")
