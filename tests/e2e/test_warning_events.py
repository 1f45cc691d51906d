"""An Event about a warning, on a real API server with real controllers: `kubectl describe` of the top owner shows it once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer, controllers
from tests.e2e.installation import has_bundles
from tests.e2e.replicas import apply, certificates, rendered, service, until
from tests.e2e.test_rules import pod, template

pytestmark = pytest.mark.e2e

MISSPELT = {"nvidia.com/gpux": "1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing() or apiserver.without_controllers():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("events")) as running:
        yield running


def _events(server: ApiServer) -> list[Any]:
    listed = yaml.safe_load(server.kubectl("get", "events.events.k8s.io", "-n", "default", "-o", "yaml").stdout)[
        "items"
    ]
    return [each for each in listed if each["reason"] == "PolicyWarning"]


def _is_warned_of(server: ApiServer, obj: Any) -> bool:
    tried = server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(obj))
    return "gpu-requests/unknown-device" in tried.stderr


def test_the_top_owner_has_one_event_of_a_warning(server: ApiServer, tmp_path: Path) -> None:
    labels = {"app": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, **template(MISSPELT)},
        },
    }
    with service(server, tmp_path) as replicas:
        apply(server, rendered(server, "overlays/events", replicas.port))
        with certificates(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            until(lambda: _is_warned_of(server, pod("single", MISSPELT)), "a Pod is warned of")
            server.apply(pod("single", MISSPELT))
            with controllers(server, "deployment-controller,replicaset-controller"):
                server.apply(deployment)
                pods = ("get", "pods", "-l", "app=web", "-o", "name")
                until(lambda: server.kubectl(*pods).stdout.count("\n") == 2, "the Deployment has its Pods")
            until(lambda: len(_events(server)) == 2, "an Event of the Deployment and one of the Pod")
            settled = [one.log.read_text() for one in replicas.running]
    assert not any("event cannot be written" in log for log in settled)
    assert {each["regarding"]["kind"] for each in _events(server)} == {"Deployment", "Pod"}
    shown = server.kubectl("describe", "deployment", "web").stdout
    assert "PolicyWarning" in shown
    assert "spec.template.spec.containers[0].resources.limits" in shown
    assert "claimgate explain gpu-requests/unknown-device" in shown
    assert "gpu-requests/unknown-device" in server.kubectl("describe", "pod", "single").stdout
