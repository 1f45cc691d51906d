"""Policies by `kubectl apply` in an installation that enforces, under creations without a pause.

The webhooks of these policies also fail closed, once they have a bundle.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.helm import DEPLOY, NAMESPACE, helm, tool
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.charts import chart
from tests.e2e.creations import Creations, creating
from tests.e2e.installation import (
    CONFIGURATIONS,
    SANDBOX,
    failure_policies,
    go_on_in,
    has_bundles,
    must_be_allowed_to_enforce,
    note_replicas_on_two_nodes,
    webhooks,
)
from tests.e2e.replicas import Replicas, apply, certificates, registration, rendered, service, until
from tests.live_policies.stored import binding, policy

pytestmark = pytest.mark.e2e

MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
FORBIDDEN = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forbidden"}}
ENFORCED = ("enforce", "policy", "again", "gone")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    tool("helm")
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("live-enforce")) as running:
        running.kubectl("create", "-f", str(SANDBOX))
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        yield running


def test_kinds_registered_by_stored_policies_fail_closed_too(server: ApiServer, tmp_path: Path) -> None:
    """The chart is installed with both `enforce` and `livePolicies`."""
    with service(server, tmp_path) as replicas, creating(server) as made:
        release = ("claimgate", str(chart(tmp_path / "chart", replicas.port)))
        values = ("--set", "enforce=true", "--set", "livePolicies=true")
        _helm(server, "install", *release, "--create-namespace", *values)
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        with certificates(server, tmp_path), registration(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            note_replicas_on_two_nodes(server)
            must_be_allowed_to_enforce(server)
            _helm(server, "upgrade", *release, *values)
            assert failure_policies(server) == {"Fail"}
            go_on_in(made, "enforce")
            made.phase = "policy"
            _is_registered(server)
            must_be_allowed_to_enforce(server)
            go_on_in(made, "policy")
            made.phase = "again"
            _helm(server, "upgrade", *release, *values)  # which applies the rules of the chart again
            until(lambda: "no-maps" in _refusal(server), "the policy is registered again")
            assert failure_policies(server) == {"Fail"}
            go_on_in(made, "again")
            _refuses_what_nobody_answers(server, replicas, made)
            server.kubectl("delete", "validatingpolicies.claimgate.dev,policybindings.claimgate.dev", "--all")
            until(lambda: not _asks_about_maps(server), "the policy is registered no more")
            go_on_in(made, "gone")
        made.phase = "uninstall"
        _helm(server, "uninstall", "claimgate")
    _is_as_promised(made)


def test_the_overlays_together_register_the_same(server: ApiServer, tmp_path: Path) -> None:
    """The overlay `live-policies` is changed to name `enforce` instead of the base, as deploy/README.md describes."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    both = tmp_path / "deploy" / "overlays" / "live-policies"
    text = (both / "kustomization.yaml").read_text()
    assert text.count("- ../../base\n") == 1
    (both / "kustomization.yaml").write_text(text.replace("- ../../base\n", "- ../enforce\n"))
    with service(server, tmp_path) as replicas:
        apply(server, rendered(server, "overlays/live-policies", replicas.port))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        with certificates(server, tmp_path), registration(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            apply(server, rendered(server, str(both), replicas.port))
            assert failure_policies(server) == {"Fail"}
            _is_registered(server)
        objects = rendered(server, str(both), replicas.port)
        server.kubectl("delete", CONFIGURATIONS, "claimgate")
        kept = [one for one in objects if one["kind"] != "Namespace"]
        server.kubectl("delete", "--ignore-not-found", "-f", "-", given=yaml.safe_dump_all(kept))


def _is_registered(server: ApiServer) -> None:
    """A stored policy about a kind of no shipped policy takes effect. All the time, every webhook fails closed and has
    the bundle.
    """
    maps = policy("no-maps", "object.metadata.name != 'forbidden'", matchConstraints={"resourceRules": [MAPS]})
    bound = binding("no-maps", "no-maps")
    apply(server, [{**one, "metadata": {"name": one["metadata"]["name"]}} for one in (maps, bound)])
    until(lambda: "no-maps" in _refusal(server), "the ConfigMap is refused")
    assert failure_policies(server) == {"Fail"}
    assert all(one["clientConfig"].get("caBundle") for one in webhooks(server))


def _refuses_what_nobody_answers(server: ApiServer, replicas: Replicas, made: Creations) -> None:
    made.phase = "nobody"
    for one in list(replicas.running):
        replicas.end(one)
    until(lambda: "failed calling webhook" in _refusal(server, "allowed"), "the ConfigMap is refused")
    replicas.roll()
    until(lambda: not _refusal(server, "allowed"), "a ConfigMap that the policy allows is taken again")


def _asks_about_maps(server: ApiServer) -> bool:
    return any("configmaps" in rule["resources"] for one in webhooks(server) for rule in one.get("rules", ()))


def _refusal(server: ApiServer, name: str = "forbidden") -> str:
    value = yaml.safe_dump({**FORBIDDEN, "metadata": {"name": name}})
    done = server.kubectl("create", "--dry-run=server", "-f", "-", given=value, code=None)
    return done.stderr if done.returncode else ""


def _helm(server: ApiServer, *arguments: str) -> str:
    return helm(*arguments, "--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig)).stdout


def _is_as_promised(made: Creations) -> None:
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    assert made.outcomes("plain", *ENFORCED) == {"created"}
    assert made.outcomes("own", *ENFORCED) == {"created as nvidia.com/gpu"}
    assert made.outcomes("portable", *ENFORCED) == {"created as nvidia.com/gpu"}
    assert all("(gpu-portable/all)" in each for each in made.outcomes("wrong", *ENFORCED))
    for phase in ENFORCED:
        assert made.count(phase) > 20, phase
