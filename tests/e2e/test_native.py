"""An API server accepts exported policies, and answers as claimgate does."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.e2e import apiserver
from tests.e2e.conftest import CRDS, claimgate

pytestmark = pytest.mark.e2e

GOOD = {"name": "gpu", "resourceClaimName": "a"}
BAD = {**GOOD, "resourceClaimTemplateName": "b"}


def template(claim: dict[str, str], **more: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    return {"spec": {"containers": [container], "resourceClaims": [claim], "restartPolicy": "Never", **more}}


def customs(claim: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Return objects of custom kinds with one template, with templates by name, or with a list of templates."""
    replicas = {"Master": {"template": template(GOOD)}, "Worker": {"template": template(claim)}}
    jobs = [{"name": "node", "template": {"spec": {"template": template(claim)}}}]
    runtime = {"template": {"spec": {"replicatedJobs": jobs}}}
    return [
        ("spec.template", made("sandbox.opensandbox.io/v1alpha1", "BatchSandbox", {"replicas": 1, "template": template(claim)})),
        ("spec.pytorchReplicaSpecs.Worker.template", made("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})),
        ("spec.template.spec.replicatedJobs[0].template.spec.template", made("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", runtime)),
    ]  # fmt: skip


def made(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("native")) as server:
        for crd in CRDS:
            server.kubectl("create", "-f", str(crd))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        exported = claimgate("policies", "export")
        created = server.kubectl("create", "--validate=strict", "-f", "-", given=exported, code=None)
        # its params are for a namespace that does not exist, which does not matter here
        assert all("namespaces" in line for line in created.stderr.splitlines()), created.stderr
        yield server


@pytest.mark.parametrize("index", range(3), ids=["one template", "under names", "in a list"])
def test_custom_resources_are_denied(server, index):
    where, obj = customs(BAD)[index]
    assert (
        f"{where}.spec.resourceClaims[0]: claim `gpu` must not set both resourceClaimName `a` and resourceClaimTemplateName `b`"
        in refusal(server, obj)
    )
    server.apply(customs(GOOD)[index][1])
    server.kubectl("label", obj["kind"].lower(), obj["metadata"]["name"], "a=b")


def refusal(server: apiserver.ApiServer, obj: dict[str, Any]) -> str:
    """Return the API server's refusal. A new policy may become active only after the API server has searched for new
    kinds, every 30 s.
    """
    end = time.monotonic() + apiserver.PATIENCE_S
    while time.monotonic() < end:
        done = server.apply(obj, code=None)
        if done.returncode:
            return str(done.stderr)
        server.kubectl("delete", obj["kind"].lower(), obj["metadata"]["name"])
        time.sleep(0.5)
    raise TimeoutError(obj["kind"])
