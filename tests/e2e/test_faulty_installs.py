"""Broken installations. Without enforce, requests pass. With enforce, each refusal names the cause and the fix.

The test writes the status of a Pod that does not start, as a kubelet does.
"""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.issue import authority
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.replicas import Replicas, apply, certificates, rendered, service, until
from tests.e2e.test_rules import pod

pytestmark = pytest.mark.e2e

TROUBLESHOOTING = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
CONFIGURATIONS = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
GPU = {"nvidia.com/gpu": "1"}
Fault = Callable[[ApiServer, Replicas], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("faulty")) as running:
        yield running


def _no_image(server: ApiServer, _: Replicas) -> None:
    _pod_that_waits(server, "ErrImagePull")


def _no_secret(server: ApiServer, _: Replicas) -> None:
    server.kubectl("delete", "secret", "claimgate-certificates", "--namespace", NAMESPACE)
    _pod_that_waits(server, "ContainerCreating")


def _wrong_bundle(server: ApiServer, replicas: Replicas) -> None:
    replicas.roll()
    other = base64.b64encode(authority("another", now=datetime.now(UTC)).certificate).decode()
    _inject(server, other)


def _no_rights(server: ApiServer, replicas: Replicas) -> None:
    server.kubectl("delete", "clusterrolebinding", "claimgate")
    replica = replicas.start()
    until(lambda: replica.listens() and "namespaces is forbidden" in replica.unready(), "it says why it is not ready")


def _down(server: ApiServer, replicas: Replicas) -> None:
    replicas.roll()
    for one in list(replicas.running):
        replicas.end(one, signal.SIGKILL)
    _pod_that_waits(server, "CrashLoopBackOff")


FAULTS: dict[str, tuple[Fault, str, str]] = {
    # the fault; the message that a user gets; the fix that `webhook-config --check --live` names
    "no image": (
        _no_image,
        "no answer",
        "cannot pull image `claimgate:0.2.0` (ErrImagePull): apply again with an image",
    ),
    "no Secret": (_no_secret, "no answer", "the Deployment claimgate-certificates creates it, and its log says why"),
    "wrong bundle": (_wrong_bundle, "certificate signed by unknown authority", "inject the bundle"),
    "no RBAC": (
        _no_rights,
        "no answer",
        "no ClusterRoleBinding gives it to the server's ServiceAccount: apply deploy/base",
    ),
    "webhook down": (_down, "no answer", "logs --previous"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_installation_is_harmless_before_enforce_and_explained_after(
    fault: str, server: ApiServer, tmp_path: Path
) -> None:
    breaks, told, way_out = FAULTS[fault]
    name = fault.lower().replace(" ", "-")
    with service(server, tmp_path) as replicas:
        base = rendered(server, "base", replicas.port)
        apply(server, base)
        try:
            with certificates(server, tmp_path):
                until(lambda: all("caBundle" in one["clientConfig"] for one in _webhooks(server)), "a bundle")
            breaks(server, replicas)
            server.apply(pod(f"{name}-before", GPU))
            server.kubectl("create", "deployment", f"{name}-before", "--image=i")
            apply(server, [one for one in rendered(server, "overlays/enforce", replicas.port) if "webhooks" in one])
            until(lambda: "claimgate.dev" in _refusal(server, name), "a Pod is refused")
            message = _refusal(server, name)
            assert 'failed calling webhook "' in message
            assert any(each in message for each in ANSWERS.get(told, (told,))), message
            checked = claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=1)
            assert way_out in checked
            apply(server, [one for one in base if "webhooks" in one])  # without enforce, requests pass again
            until(lambda: not _refusal(server, name), "a Pod is taken again")
        finally:
            _remove(server, base)


ANSWERS = {"no answer": ("connection refused", "connection reset", "EOF", "no endpoints available for service")}


@pytest.mark.parametrize("message", [*ANSWERS["no answer"], "certificate signed by unknown authority"])
def test_each_message_of_enforce_is_in_the_troubleshooting_page(message: str) -> None:
    assert message in TROUBLESHOOTING


def _pod_that_waits(server: ApiServer, reason: str) -> None:
    template = server.get("deployment", "claimgate", NAMESPACE)["spec"]["template"]
    metadata = {"name": "claimgate-0", "namespace": NAMESPACE, "labels": template["metadata"]["labels"]}
    server.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    image = template["spec"]["containers"][0]["image"]
    state = {"name": "claimgate", "image": image, "imageID": "", "ready": False, "restartCount": 0}
    status = {"status": {"containerStatuses": [{**state, "state": {"waiting": {"reason": reason}}}]}}
    where = ("pod", "claimgate-0", "--namespace", NAMESPACE, "--subresource=status", "--type=merge")
    server.kubectl("patch", *where, "-p", json.dumps(status))


def _webhooks(server: ApiServer) -> list[Any]:
    return [one for kind in CONFIGURATIONS for one in server.get(kind, "claimgate")["webhooks"]]


def _inject(server: ApiServer, bundle: str) -> None:
    for kind in CONFIGURATIONS:
        count = len(server.get(kind, "claimgate")["webhooks"])
        patch = [
            {"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": bundle}
            for number in range(count)
        ]
        server.kubectl("patch", kind, "claimgate", "--type=json", "-p", json.dumps(patch))


def _refusal(server: ApiServer, name: str) -> str:
    asked = yaml.safe_dump(pod(name, GPU))
    return server.kubectl("create", "--dry-run=server", "-f", "-", given=asked, code=None).stderr


def _remove(server: ApiServer, objects: list[Any]) -> None:
    """Delete the installation, except its namespace. Without the namespace controller, the deletion of a namespace
    never ends.
    """
    kept = [one for one in objects if one["kind"] != "Namespace"]
    server.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--namespace", NAMESPACE)
    server.kubectl("delete", "--ignore-not-found", "-f", "-", given=yaml.safe_dump_all(kept))
    server.kubectl("delete", "secret", "claimgate-certificates", "--ignore-not-found", "--namespace", NAMESPACE)
