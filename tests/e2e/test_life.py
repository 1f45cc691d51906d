"""The whole life of an installation while objects are created: no creation fails, and enforce admits no wrong object.

tests/e2e/replicas.py simulates the parts of a cluster that need nodes.
"""

from __future__ import annotations

import copy
import sys
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.cluster import core
from certs.issue import authority
from certs.store import CA, CA_KEY, SERVING, Secret
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.creations import Creations, creating
from tests.e2e.installation import (
    CONFIGURATIONS,
    cluster_with_sandboxes,
    failure_policies,
    go_on_in,
    has_bundles,
    left,
    must_be_allowed_to_enforce,
    note_replicas_on_two_nodes,
)
from tests.e2e.replicas import Replicas, apply, certificates, rendered, service, until

pytestmark = pytest.mark.e2e

ANSWERED = ("enforce", "upgrade", "rollback")
DISTURBED = ("enforce", "authority", "deleted", "renewed", "params", "restart", "after")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with cluster_with_sandboxes(tmp_path_factory.mktemp("life")) as running:
        yield running


def test_nothing_fails_from_the_install_to_the_end(server: ApiServer, tmp_path: Path) -> None:
    with service(server, tmp_path) as replicas, creating(server) as made:
        go_on_in(made, "install")
        objects = rendered(server, "overlays/warn-only", replicas.port)
        apply(server, objects)  # no server answers from here until a replica is ready
        with certificates(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            go_on_in(made, "warn")
            made.phase = "deny"
            apply(server, rendered(server, "base", replicas.port))
            replicas.roll()
            note_replicas_on_two_nodes(server)
            must_be_allowed_to_enforce(server)
            _enforces(server, replicas, made)
        made.phase = "uninstall"
        server.kubectl("delete", CONFIGURATIONS, "claimgate")
        server.kubectl("delete", "--wait=false", "-f", "-", given=yaml.safe_dump_all(objects[::-1]), code=None)
        for one in list(replicas.running):
            replicas.end(one)
        until(lambda: not left(server), f"nothing is left, but {left(server)}")
        go_on_in(made, "gone")
    _is_as_promised(made)


def test_nothing_fails_while_certificates_params_and_replicas_change(server: ApiServer, tmp_path: Path) -> None:
    """If a replica is killed, only the review that it is answering may fail."""
    with service(server, tmp_path) as replicas, creating(server) as made:
        objects = rendered(server, "overlays/enforce", replicas.port)
        apply(server, rendered(server, "base", replicas.port))
        with certificates(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            apply(server, objects)
            until(lambda: failure_policies(server) == {"Fail"}, "it is enforced")
            go_on_in(made, "enforce")
            _authority_is_replaced(server, replicas, made)
            certificates_are_deleted(server, replicas, made)
            made.phase = "params"
            server.kubectl(
                "patch", "configmap", "gpu-portable", "-n", NAMESPACE, "-p", '{"data":{"resource":"amd.com/gpu"}}'
            )
            until(lambda: "created" in made.outcomes("portable", "params"), "`gpu` means another resource")
            server.kubectl(
                "patch", "configmap", "gpu-portable", "-n", NAMESPACE, "-p", '{"data":{"resource":"nvidia.com/gpu"}}'
            )
            go_on_in(made, "params")
            made.phase = "restart"
            replicas.roll()
            go_on_in(made, "restart")
            made.phase = "kill"
            replicas.kill()
            go_on_in(made, "kill")
            go_on_in(made, "after")
        made.phase = "uninstall"
        server.kubectl("delete", CONFIGURATIONS, "claimgate")
        server.kubectl("delete", "--wait=false", "-f", "-", given=yaml.safe_dump_all(objects[::-1]), code=None)
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    assert made.outcomes("plain", *DISTURBED) == {"created"}
    assert made.outcomes("own", *DISTURBED) == {"created as nvidia.com/gpu"}
    assert made.outcomes("portable", *DISTURBED) == {
        "created",
        "created as nvidia.com/gpu",
    }  # or with amd.com/gpu for a while
    assert made.outcomes("portable", "authority", "deleted", "renewed", "restart", "after") == {
        "created as nvidia.com/gpu"
    }
    assert all("(gpu-portable/all)" in each for each in made.outcomes("wrong", *DISTURBED))
    failed = [each for each in made.seen if each[0] == "kill" and "failed calling webhook" in each[2]]
    assert sum(made.seen[each] for each in failed) <= 1, failed


def _authority_is_replaced(server: ApiServer, replicas: Replicas, made: Creations) -> None:
    """Replace the authority. Replicas trust a new authority first, and it signs when it is an hour old. The test only
    writes the new authority, and claimgate-certificates does the rest.
    """
    made.phase = "authority"
    store = Secret(NAMESPACE, "claimgate-certificates", core(str(server.kubeconfig)))
    before = store.read()
    begun = datetime.now(UTC) - timedelta(hours=1) + timedelta(seconds=4)
    new = authority("claimgate", now=begun)
    store.write({CA: new.certificate + before[CA], CA_KEY: new.key})
    until(lambda: store.read()[SERVING] != before[SERVING], "the new authority has signed")
    replicas.mount_anew()
    until(lambda: _trusts(server, store.read()[CA]), "API servers trust both authorities")
    wanted = store.read()[SERVING].decode().strip()
    until(lambda: all(each == wanted for each in replicas.shown()), "replicas show the new certificate")
    go_on_in(made, "authority")


def certificates_are_deleted(server: ApiServer, replicas: Replicas, made: Creations) -> None:
    """Delete the stored certificates. A new authority signs at once, and replicas show the old certificate until a
    kubelet mounts the new one.
    """
    made.phase = "deleted"
    store = Secret(replicas.namespace, "claimgate-certificates", core(str(server.kubeconfig)))
    before, shown = store.read(), replicas.shown()
    server.kubectl("delete", "secret", "claimgate-certificates", "-n", replicas.namespace)
    until(lambda: store.read().get(SERVING, before[SERVING]) != before[SERVING], "there is a new certificate")
    until(lambda: _trusts(server, store.read()[CA]), "API servers trust both authorities")
    go_on_in(made, "deleted", 80)
    assert replicas.shown() == shown
    made.phase = "renewed"
    replicas.mount_anew()
    wanted = store.read()[SERVING].decode().strip()
    until(lambda: all(each == wanted for each in replicas.shown()), "replicas show the new certificate")
    go_on_in(made, "renewed")


def _trusts(server: ApiServer, bundle: bytes) -> bool:
    found = yaml.safe_load(server.kubectl("get", CONFIGURATIONS, "-o", "yaml").stdout)["items"]
    return {one["clientConfig"]["caBundle"] for each in found for one in each["webhooks"]} == {
        b64encode(bundle).decode()
    }


def _enforces(server: ApiServer, replicas: Replicas, made: Creations) -> None:
    """Set enforce, upgrade to a version with a wider registration, and go back."""
    base, enforced = rendered(server, "base", replicas.port), rendered(server, "overlays/enforce", replicas.port)
    apply(server, enforced)
    until(lambda: failure_policies(server) == {"Fail"}, "it is enforced")
    go_on_in(made, "enforce")
    for phase, first, then in (
        ("upgrade", _newer(base, replicas.port, "Ignore"), _newer(enforced, replicas.port, "Fail")),
        ("rollback", base, enforced),
    ):
        made.phase = phase
        apply(server, first)  # new webhooks must not fail closed before they have a bundle
        replicas.roll()
        must_be_allowed_to_enforce(server)
        apply(server, then)
        go_on_in(made, phase)


def _newer(objects: list[Any], port: int, failure_policy: str) -> list[Any]:
    """Return the objects of a version with more rules: another image, another argument, and webhooks that match any
    Pod.
    """
    newer = [one for one in copy.deepcopy(objects) if "webhooks" not in one]
    for one in newer:
        for container in one["spec"]["template"]["spec"]["containers"] if one["kind"] == "Deployment" else ():
            container["image"] = "registry.example/claimgate:9.0.0"
            container["args"] += ["--timeout=8"] if container["args"][0] == "serve" else []
    where = ["--service", f"{NAMESPACE}/claimgate:{port}", "--failure-policy", failure_policy]
    wider = list(yaml.safe_load_all(claimgate("webhook-config", *where, "--any-pod")))
    return [*newer, *(one for one in wider if one)]


def _is_as_promised(made: Creations) -> None:
    assert made.count() > 400
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    assert made.outcomes("plain") == {"created"}
    assert made.outcomes("own") == {"created as nvidia.com/gpu"}
    assert made.outcomes("portable", "warn", *ANSWERED) == {"created as nvidia.com/gpu"}
    told = made.outcomes("wrong", *ANSWERED)
    assert all(each.startswith("400: ") and "(gpu-portable/all)" in each for each in told), told
    assert made.outcomes("wrong", "install", "warn", "gone") == {"created"}
    for phase in (*ANSWERED, "warn", "gone"):
        assert made.count(phase) > 20, phase
