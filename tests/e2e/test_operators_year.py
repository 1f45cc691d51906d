"""An operator's year: a Helm release in a namespace of the release's name, under creations without a pause.

The year has site settings, own policies, warn, the report of what enforce would refuse, enforce, break glass, new
certificates, an upgrade after edits, a rollback, and removal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.deploy.helm import helm, tool
from tests.e2e.apiserver import ApiServer
from tests.e2e.charts import PREVIOUS, chart, previous_chart
from tests.e2e.conftest import claimgate
from tests.e2e.creations import PODS, SORTS, Creations, creating
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
from tests.e2e.replicas import Replicas, certificates, registration, service, until
from tests.e2e.test_life import certificates_are_deleted
from tests.e2e.test_rules import pod
from tests.live_policies.stored import binding, policy

pytestmark = pytest.mark.e2e

NAMESPACE = "gpu-gates"
EIGHT = "gpu.devices == null || gpu.devices <= 8"
WITH_NINE = {**SORTS, "nine": (PODS, lambda name: pod(name, {"nvidia.com/gpu": "9"}))}
SITE = ("--set-string", "params.gpu-portable.resource=amd.com/gpu", "--set", "config.levels.groups.storage=warn")
ENFORCED = ("deny", "enforce", "restored", "deleted", "renewed", "upgrade", "rollback")
EDIT = "kueue-never/resource-uncovered"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    tool("helm")
    with cluster_with_sandboxes(tmp_path_factory.mktemp("year")) as running:
        yield running


def test_over_a_year_nothing_is_lost_wrongly_refused_or_left_over(server: ApiServer, tmp_path: Path) -> None:
    with service(server, tmp_path, NAMESPACE) as replicas, creating(server, WITH_NINE) as made, ExitStack() as running:
        before = str(previous_chart(tmp_path / "previous", replicas.port, without=()))
        now = str(chart(tmp_path / "now", replicas.port))
        values = ("--set", "enforcementAction=warn", "--set", "livePolicies=true")
        _helm(server, "install", "claimgate", before, "--create-namespace", *SITE, *values)
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        running.enter_context(certificates(server, tmp_path, NAMESPACE))
        running.enter_context(registration(server, tmp_path, NAMESPACE))
        until(lambda: has_bundles(server), "both configurations have the bundle")
        replicas.roll()
        _apply_own_policy(server)
        go_on_in(made, "warn")
        _report_names_what_enforce_would_refuse(replicas)
        _enforces(server, replicas, made, before)
        _glass_is_broken(server, replicas, made, before)
        certificates_are_deleted(server, replicas, made)
        _upgrades_after_an_edit(server, replicas, made, now)
        _rolls_back(server, replicas, made)
        made.phase = "uninstall"
        running.close()
        _uninstalls(server, replicas)
        go_on_in(made, "gone")
    _is_as_promised(made)


def _apply_own_policy(server: ApiServer) -> None:
    for one in (policy("eight-gpus", EIGHT, facts=["gpu"]), binding("eight-gpus", "eight-gpus")):
        server.apply({**one, "metadata": {"name": one["metadata"]["name"]}})
    until(lambda: _is_registered(server, "eight-gpus"), "the policy is registered")


def _is_registered(server: ApiServer, name: str) -> bool:
    conditions = server.get("validatingpolicies.claimgate.dev", name).get("status", {}).get("conditions", ())
    return {one["type"]: one["status"] for one in conditions}.get("Registered") == "True"


def _report_names_what_enforce_would_refuse(replicas: Replicas) -> None:
    def told() -> str:
        return claimgate("rollout", *(str(one.log) for one in replicas.running), "--since", "7d", code=1)

    until(lambda: "eight-gpus" in told(), "the report names the own policy")
    assert "gpu-portable/all" in told()


def _enforces(server: ApiServer, replicas: Replicas, made: Creations, chart: str) -> None:
    """Deny first, and then enforce when `webhook-config --check` finds nothing."""
    made.phase = "settling"
    _helm(server, "upgrade", "claimgate", chart, "--reuse-values", "--set", "enforcementAction=deny")
    replicas.roll()
    go_on_in(made, "deny")
    note_replicas_on_two_nodes(server, NAMESPACE)
    until(lambda: has_bundles(server), "the registration is as before")
    must_be_allowed_to_enforce(server)
    _helm(server, "upgrade", "claimgate", chart, "--reuse-values", "--set", "enforce=true")
    until(lambda: failure_policies(server) == {"Fail"}, "it is enforced")
    go_on_in(made, "enforce")


def _glass_is_broken(server: ApiServer, replicas: Replicas, made: Creations, chart: str) -> None:
    """Exclude a namespace from claimgate by a label. Later, while no replica answers, delete both configurations."""
    made.phase = "spared"
    server.kubectl("label", "namespace", "default", "claimgate.dev/admission=disabled")
    until(lambda: "created" in made.outcomes("wrong", "spared"), "no webhook call for the namespace")
    server.kubectl("label", "namespace", "default", "claimgate.dev/admission-")
    made.phase = "outage"
    for one in list(replicas.running):
        replicas.end(one)
    until(lambda: any("failed calling webhook" in each for each in made.outcomes("own", "outage")), "GPUs are refused")
    server.kubectl("delete", CONFIGURATIONS, "claimgate")
    go_on_in(made, "outage")  # API servers see the deletion within a second
    go_on_in(made, "broken glass")
    made.phase = "settling"
    replicas.roll()
    told = _helm(server, "upgrade", "claimgate", chart, "--reuse-values")
    assert "no caBundle yet" in told
    until(lambda: has_bundles(server), "both configurations have the bundle again")
    told = _helm(server, "upgrade", "claimgate", chart, "--reuse-values")
    assert "no caBundle yet" not in told
    until(lambda: failure_policies(server) == {"Fail"}, "it is enforced again")
    until(lambda: _is_registered(server, "eight-gpus"), "the policy is registered again")
    go_on_in(made, "settling")  # API servers see the new configurations within a second
    go_on_in(made, "restored")


def _upgrades_after_an_edit(server: ApiServer, replicas: Replicas, made: Creations, chart: str) -> None:
    """A setting that was edited in the cluster stays after an upgrade. The check names the edit, and the value to set
    in the chart.
    """
    change = json.dumps({"data": {"warn": EDIT}})
    server.kubectl("patch", "configmap", "kueue", "-n", NAMESPACE, "-p", change)
    told = claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=1)
    lost = (
        f"an upgrade would lose: ConfigMap {NAMESPACE}/kueue: `warn` was set by kubectl-patch: the next helm upgrade "
    )
    lost += "undoes this: set `params.kueue.warn` of the chart"
    assert [line for line in told.splitlines() if line.startswith("an upgrade would lose")] == [lost]
    made.phase = "upgrade"
    told = _helm(server, "upgrade", "claimgate", chart, "--reuse-values", "--set-string", f"params.kueue.warn={EDIT}")
    assert "no caBundle yet" not in told
    replicas.roll()
    assert server.get("configmap", "kueue", NAMESPACE)["data"]["warn"] == EDIT
    _has_what_the_site_set(server)
    go_on_in(made, "upgrade")


def _rolls_back(server: ApiServer, replicas: Replicas, made: Creations) -> None:
    """Roll back to the last revision of the previous version, which had enforce."""
    revisions = json.loads(_helm(server, "history", "claimgate", "--output", "json"))
    last = max(one["revision"] for one in revisions if one["app_version"] == PREVIOUS)
    made.phase = "rollback"
    _helm(server, "rollback", "claimgate", str(last))
    replicas.roll()
    until(lambda: has_bundles(server), "all webhooks have the bundle")
    assert failure_policies(server) == {"Fail"}
    _has_what_the_site_set(server)
    go_on_in(made, "rollback")


def _has_what_the_site_set(server: ApiServer) -> None:
    assert server.get("configmap", "gpu-portable", NAMESPACE)["data"]["resource"] == "amd.com/gpu"
    kept = server.get("configmap", "claimgate-config", NAMESPACE)["data"]["claimgate.yaml"]
    assert yaml.safe_load(kept) == {"levels": {"groups": {"storage": "warn"}}}
    assert server.get("validatingpolicies.claimgate.dev", "eight-gpus")["spec"]["validations"][0]["expression"] == EIGHT


def _uninstalls(server: ApiServer, replicas: Replicas) -> None:
    """Uninstall. Stored policies are deleted only with their CustomResourceDefinitions."""
    server.kubectl("delete", CONFIGURATIONS, "claimgate")
    _helm(server, "uninstall", "claimgate")
    server.kubectl("delete", "namespace", NAMESPACE)
    for one in list(replicas.running):
        replicas.end(one)
    server.get("validatingpolicies.claimgate.dev", "eight-gpus")
    kinds = ("validatingpolicies", "mutatingpolicies", "policybindings", "policyexceptions")
    server.kubectl("delete", "crd", *(f"{kind}.claimgate.dev" for kind in kinds))
    until(lambda: not left(server), f"nothing is left, but {left(server)}")
    assert not [one for one in webhooks(server) if "claimgate" in one["name"]]


def _helm(server: ApiServer, *arguments: str) -> str:
    return helm(*arguments, "--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig)).stdout


def _is_as_promised(made: Creations) -> None:
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    assert made.count() > 400
    answered = {phase for phase, _, _ in made.seen} - {"outage", "between"}  # the operator's policy matches any Pod
    assert made.outcomes("plain", *answered) == {"created"}
    assert made.outcomes("own", *answered) == {"created as nvidia.com/gpu"}
    # `gpu` is translated to the resource of the site
    assert made.outcomes("portable", "warn", *ENFORCED) == {"created"}
    told = made.outcomes("wrong", *ENFORCED)
    assert all(each.startswith("400: ") and "(gpu-portable/all)" in each for each in told), told
    told = made.outcomes("nine", *ENFORCED)
    assert all("eight-gpus" in each for each in told), told
    free = ("warn", "broken glass", "gone")
    assert made.outcomes("wrong", *free) == {"created"}
    assert made.outcomes("nine", *free) == {"created as nvidia.com/gpu"}
    assert not [
        each for each in made.seen if "failed calling webhook" in each[2] and each[0] not in ("outage", "between")
    ]
    for phase in (*ENFORCED, *free):
        assert made.count(phase) > 20, phase
