"""The life of a Helm release while objects are created without a pause: from a previous version to the present one and
back, with enforce.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.helm import NAMESPACE, helm, tool
from tests.e2e.apiserver import ApiServer
from tests.e2e.charts import ADDED_WEBHOOKS, PREVIOUS, chart, previous_chart
from tests.e2e.creations import WITH_TEMPLATES, Creations, creating
from tests.e2e.installation import (
    CONFIGURATIONS,
    cluster_with_sandboxes,
    failure_policies,
    go_on_in,
    has_bundles,
    left,
    must_be_allowed_to_enforce,
    note_replicas_on_two_nodes,
    webhooks,
)
from tests.e2e.replicas import Replicas, certificates, service, until

pytestmark = pytest.mark.e2e

ENFORCED = ("enforce", "upgrade", "upgraded", "rollback", "again", "uninstall")
OBJECTS_OF_THE_PREVIOUS = ("job/claimgate-first-certificate", "configmap/claimgate-installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    tool("helm")
    with cluster_with_sandboxes(tmp_path_factory.mktemp("helm-life")) as running:
        yield running


def test_nothing_fails_from_a_previous_release_to_this_one_and_back(server: ApiServer, tmp_path: Path) -> None:
    with service(server, tmp_path) as replicas, creating(server, WITH_TEMPLATES) as made:
        before = str(previous_chart(tmp_path / "previous", replicas.port))
        now = str(chart(tmp_path / "now", replicas.port))
        _helm(server, "install", "claimgate", before, "--create-namespace", "--set", "enforcementAction=warn")
        with certificates(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            go_on_in(made, "warn")
            made.phase = "deny"
            _helm(server, "upgrade", "claimgate", before, "--set", "enforcementAction=deny")
            replicas.roll()
            note_replicas_on_two_nodes(server)
            must_be_allowed_to_enforce(server)
            _helm(server, "upgrade", "claimgate", before, "--set", "enforce=true")  # revision 3
            until(lambda: failure_policies(server) == {"Fail"}, "it is enforced")
            go_on_in(made, "enforce")
            _upgrades(server, replicas, made, now)
            made.phase = "rollback"
            _helm(server, "rollback", "claimgate", "3")
            replicas.roll()
            assert _versions(server) == {PREVIOUS}
            assert failure_policies(server) == {"Fail"}
            assert not set(ADDED_WEBHOOKS) & {one["name"] for one in webhooks(server)}
            go_on_in(made, "rollback")
            made.phase = "again"
            _helm(server, "upgrade", "claimgate", now, "--reuse-values")
            replicas.roll()
            go_on_in(made, "again")
        made.phase = "uninstall"
        server.kubectl("delete", CONFIGURATIONS, "claimgate")
        _helm(server, "uninstall", "claimgate")
        server.kubectl("delete", "namespace", NAMESPACE)
        for one in list(replicas.running):
            replicas.end(one)
        until(lambda: not left(server), f"nothing is left, but {left(server)}")
        go_on_in(made, "gone")
    _is_as_promised(made)


def _upgrades(server: ApiServer, replicas: Replicas, made: Creations, chart: str) -> None:
    """A new webhook fails open until it has a bundle. When the same command runs again, the webhook fails closed."""
    made.phase = "upgrade"
    for one in OBJECTS_OF_THE_PREVIOUS:
        server.kubectl("get", one, "--namespace", NAMESPACE)
    told = _helm(server, "upgrade", "claimgate", chart, "--reuse-values")
    assert all(name in told for name in ADDED_WEBHOOKS)
    assert {one["name"] for one in webhooks(server) if one["failurePolicy"] == "Ignore"} == set(ADDED_WEBHOOKS)
    replicas.roll()
    assert _versions(server).isdisjoint({PREVIOUS})
    for one in OBJECTS_OF_THE_PREVIOUS:
        assert "NotFound" in server.kubectl("get", one, "--namespace", NAMESPACE, code=1).stderr
    must_be_allowed_to_enforce(server)
    go_on_in(made, "upgrade")
    made.phase = "upgraded"
    told = _helm(server, "upgrade", "claimgate", chart, "--reuse-values")
    assert "no caBundle yet" not in told
    assert failure_policies(server) == {"Fail"}
    go_on_in(made, "upgraded")


def _versions(server: ApiServer) -> set[str]:
    deployment = server.get("deployment", "claimgate", NAMESPACE)
    return {one["image"].partition(":")[2] for one in deployment["spec"]["template"]["spec"]["containers"]}


def _helm(server: ApiServer, *arguments: str) -> str:
    return helm(*arguments, "--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig)).stdout


def _is_as_promised(made: Creations) -> None:
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    assert made.count() > 400
    assert made.outcomes("plain") == {"created"}
    assert made.outcomes("own") == {"created as nvidia.com/gpu"}
    assert made.outcomes("template") == {"created as nvidia.com/gpu"}
    asked = ENFORCED[:-1]  # the configurations are deleted during the last phase
    assert made.outcomes("portable", "warn", *asked) == {"created as nvidia.com/gpu"}
    told = made.outcomes("wrong", *asked)
    assert all(each.startswith("400: ") and "(gpu-portable/all)" in each for each in told), told
    assert made.outcomes("wrong", "warn", "gone") == {"created"}
    assert not [each for each in made.seen if "failed calling webhook" in each[2]]
    for phase in (*asked, "warn", "gone"):
        assert made.count(phase) > 20, phase
