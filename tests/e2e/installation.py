"""Observes an installation while objects are created without a pause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.creations import Creations
from tests.e2e.endpoints import endpoints
from tests.e2e.replicas import COUNT, until
from webhook.commands.live_registration import STORED_POLICIES

SANDBOX = Path(__file__).parents[1] / "data" / "crds" / "sandbox.opensandbox.io_batchsandboxes.yaml"
CONFIGURATIONS = "validatingwebhookconfiguration,mutatingwebhookconfiguration"


@contextmanager
def cluster_with_sandboxes(folder: Path) -> Iterator[ApiServer]:
    """Run a cluster with controllers and the kind BatchSandbox. Skip the test if no cluster can run."""
    if reason := apiserver.without_controllers():
        pytest.skip(reason)
    with apiserver.running(folder) as running, apiserver.controllers(running):
        running.kubectl("create", "-f", str(SANDBOX))
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        yield running


def go_on_in(made: Creations, phase: str, count: int = 40) -> None:
    """Wait for this number of new requests in this phase."""
    made.phase = phase
    before = made.count(phase)
    until(lambda: made.count(phase) > before + count, f"objects are created in {phase}")


def webhooks(server: ApiServer) -> list[Any]:
    found = yaml.safe_load(server.kubectl("get", CONFIGURATIONS, "-o", "yaml").stdout)["items"]
    return [one for each in found for one in each["webhooks"]]


def has_bundles(server: ApiServer) -> bool:
    found = yaml.safe_load(server.kubectl("get", CONFIGURATIONS, "-o", "yaml").stdout)["items"]
    return len(found) == COUNT and all(
        one["clientConfig"].get("caBundle") for each in found for one in each["webhooks"]
    )


def failure_policies(server: ApiServer) -> set[str]:
    """Return the failure policies of all webhooks, except the webhook for stored policies. `{"Fail"}` means enforce."""
    return {one["failurePolicy"] for one in webhooks(server) if one["name"] != STORED_POLICIES}


def note_replicas_on_two_nodes(server: ApiServer, namespace: str = NAMESPACE) -> None:
    for node in ("a", "b"):
        server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    server.apply(endpoints("a", "b", namespace=namespace))


def must_be_allowed_to_enforce(server: ApiServer) -> None:
    until(lambda: has_bundles(server), "all webhooks have the bundle")
    told = claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig))
    assert told.startswith("nothing is missing in the objects that you may read")


def left(server: ApiServer) -> list[str]:
    """Return the names of objects with claimgate in the name. Events are left out."""
    kinds = server.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
    kinds = [one for one in kinds if not one.startswith(("events", "componentstatuses"))]
    listed = server.kubectl("get", ",".join(kinds), "-A", "-o", "name", code=None).stdout
    return [line for line in listed.splitlines() if "claimgate" in line]
