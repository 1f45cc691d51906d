"""Upgrades from released versions while objects are created. They follow the upgrade notes of CHANGELOG, and each old
version runs with its own code.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.helm import helm, tool
from tests.e2e.apiserver import ApiServer
from tests.e2e.charts import chart
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.creations import PODS, SANDBOXES, SORTS, Creations, Sorts, creating
from tests.e2e.installation import (
    CONFIGURATIONS,
    cluster_with_sandboxes,
    failure_policies,
    go_on_in,
    has_bundles,
    must_be_allowed_to_enforce,
    note_replicas_on_two_nodes,
    webhooks,
)
from tests.e2e.replicas import (
    Replicas,
    apply,
    certificates,
    registration,
    rendered,
    service,
    service_account,
    until,
    with_mounted_configuration,
)
from tests.e2e.test_rules import pod
from tests.live_policies.stored import binding, policy
from webhook.commands.installation import REMOVED_OBJECTS

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
_COMMIT = re.compile(r"^## \[([\d.]+)\](?:(?!^## ).)*?^Commit `([0-9a-f]{7,40})`", re.MULTILINE | re.DOTALL)
EDIT = "pod-resources/whole-number"
EIGHT = "gpu.devices == null || gpu.devices <= 8"
RESEARCH = SANDBOXES.replace("/default/", "/research/")
SPARED = SANDBOXES.replace("/default/", "/spared/")
EXCEPTION = {
    "rules": ["gpu-portable/all"],
    "namespaces": ["research"],
    "reason": "moves to another cluster",
    "owner": "ml-platform@example.com",
    "expires": "2099-12-31",
}
CONFIGURATION = {"levels": {"rules": {"pod-resources/request-equals-limit": "warn"}}, "exceptions": [EXCEPTION]}


def _sandbox(name: str, **resources: Any) -> dict[str, Any]:
    spec = pod("x", {})["spec"]
    spec["containers"][0]["resources"] = resources
    kind = {"apiVersion": "sandbox.opensandbox.io/v1alpha1", "kind": "BatchSandbox"}
    return {**kind, "metadata": {"name": name}, "spec": {"replicas": 1, "template": {"spec": spec}}}


SORTS_OF_SITE: Sorts = {
    **SORTS,
    "nine": (PODS, lambda name: pod(name, {"nvidia.com/gpu": "9"})),  # a live policy denies nine GPUs
    "fraction": (SANDBOXES, lambda name: _sandbox(name, limits={"nvidia.com/gpu": "0.5"})),  # params warn
    "differs": (
        SANDBOXES,
        lambda name: _sandbox(name, limits={"nvidia.com/gpu": 2}, requests={"nvidia.com/gpu": 1}),
    ),  # `levels` of claimgate.yaml warn
    "excepted": (RESEARCH, lambda name: _sandbox(name, limits={"gpu": "all"})),
}
"""What the installed version answers to the first sorts, and what the site decided about the others"""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes the tree of a released version, and returns its folder."""
    commits = dict(_COMMIT.findall((ROOT / "CHANGELOG.md").read_text()))

    def tree(version: str) -> Path:
        commit = commits[version]
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            pytest.skip(f"this clone does not have commit {commit}: fetch the whole history")
        folder = tmp_path_factory.mktemp("released")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        return folder

    return tree


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with cluster_with_sandboxes(tmp_path_factory.mktemp("upgrade")) as running:
        yield running


def test_an_upgrade_from_0_1_0_fails_no_request_and_names_edits_and_leftovers(
    server: ApiServer, released: Callable[[str], Path], tmp_path: Path
) -> None:
    old = released("0.1.0")
    with service(server, tmp_path) as replicas, creating(server) as made:
        before, base = (rendered(server, str(tree / "deploy" / "base"), replicas.port) for tree in (old, ROOT))
        removed = {(one.kind, one.name) for one in REMOVED_OBJECTS}
        assert _names(before) - _names(base) == removed, "correct REMOVED_OBJECTS of webhook/commands/installation.py"
        apply(server, before)
        _issue(server, old, tmp_path)
        replicas.code = old
        replicas.roll()
        assert failure_policies(server) == {"Fail"}
        go_on_in(made, "old")
        server.kubectl("patch", "configmap", "gpu-limits", "-n", NAMESPACE, "-p", json.dumps({"data": {"warn": EDIT}}))
        told = _check(server, 1)
        assert "an upgrade would lose: ConfigMap claimgate-system/gpu-limits: `warn` was set by kubectl-patch" in told
        assert "set `gpu-limits.warn` in ConfigMap claimgate-site instead" in told
        site = ("create", "configmap", "claimgate-site", "-n", NAMESPACE)
        server.kubectl(*site, f"--from-literal=gpu-limits.warn={EDIT}")
        assert "an upgrade would lose" not in _check(server, 1)
        replicas.code = None
        made.phase = "upgrade"
        apply(server, base)
        with certificates(server, tmp_path):
            replicas.roll()
            until(lambda: has_bundles(server), "all webhooks have the bundle")
            assert failure_policies(server) == {"Ignore"}
            go_on_in(made, "upgraded")
            note_replicas_on_two_nodes(server)
            _deletes_leftovers(server)
            must_be_allowed_to_enforce(server)
            apply(server, rendered(server, "overlays/enforce", replicas.port))
            until(lambda: failure_policies(server) == {"Fail"}, "it is enforced")
            go_on_in(made, "enforce")
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    answered = ("old", "upgrade", "upgraded", "enforce")
    assert made.outcomes("plain", *answered) == {"created"}
    assert made.outcomes("own", *answered) == {"created as nvidia.com/gpu"}
    # for some seconds, a webhook without a bundle is skipped: the API server refuses `gpu` itself, and allows `all`
    assert made.outcomes("portable", "old", "upgraded", "enforce") == {"created as nvidia.com/gpu"}
    told = made.outcomes("wrong", "old", "upgraded", "enforce")
    assert all(each.startswith("400: ") and "(gpu-portable/all)" in each for each in told), told
    assert not [each for each in made.seen if each[0] in answered and "failed calling webhook" in each[2]]


def test_an_upgrade_from_0_2_0_keeps_what_the_site_decided(
    server: ApiServer, released: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site enforces, and has the overlay `live-policies`, the ConfigMap `claimgate-site` and a claimgate.yaml."""
    old = released("0.2.0")
    configuration = _decides(server, tmp_path, monkeypatch)
    with (
        service(server, tmp_path) as replicas,
        creating(server, SORTS_OF_SITE) as made,
        ExitStack() as before,
        ExitStack() as after,
    ):

        def overlay(tree: Path, *, enforces: bool) -> list[Any]:
            folder = _with_live_policies(tree, tmp_path / f"{tree.name}-{enforces}", enforces=enforces)
            return [with_mounted_configuration(one) for one in rendered(server, str(folder), replicas.port)]

        replicas.code = old
        apply(server, overlay(old, enforces=False))
        mounted = f"--from-file={configuration}"
        server.kubectl("create", "configmap", "claimgate-config", "-n", NAMESPACE, mounted)
        server.kubectl(
            "create", "configmap", "claimgate-site", "-n", NAMESPACE, f"--from-literal=gpu-limits.warn={EDIT}"
        )
        before.enter_context(certificates(server, tmp_path, code=old))
        before.enter_context(registration(server, tmp_path, code=old))
        _is_ready(server, replicas)
        note_replicas_on_two_nodes(server)
        apply(server, overlay(old, enforces=True))
        _has_own_policy(server)
        go_on_in(made, "old")
        claimgate("config", "check", str(configuration))  # step 1
        made.phase = "definitions"
        definitions = ROOT / "deploy" / "overlays" / "live-policies" / "definitions.yaml"
        server.kubectl("apply", "-f", str(definitions))  # step 2
        go_on_in(made, "definitions")
        made.phase = "upgrade"
        apply(server, overlay(ROOT, enforces=False))  # step 3
        before.close()
        _replace_programs(server, tmp_path, replicas, after)
        go_on_in(made, "upgraded")
        must_be_allowed_to_enforce(server)
        made.phase = "upgrade"
        apply(server, overlay(ROOT, enforces=True))
        _has_own_policy(server)
        assert failure_policies(server) == {"Fail"}
        go_on_in(made, "enforce")
        assert server.get("configmap", "claimgate-site", NAMESPACE)["data"] == {"gpu-limits.warn": EDIT}
    _is_as_before(made, "old", "definitions", "upgraded", "enforce")


def _replace_programs(server: ApiServer, folder: Path, replicas: Replicas, after: ExitStack) -> None:
    """Run the programs of this version in the place of the old ones."""
    after.enter_context(certificates(server, folder))
    after.enter_context(registration(server, folder))
    replicas.code = None
    _is_ready(server, replicas)
    _has_own_policy(server)


def test_a_helm_upgrade_from_0_2_0_keeps_what_the_site_decided(
    server: ApiServer, released: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("helm")
    old = released("0.2.0")
    _decides(server, tmp_path, monkeypatch)
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({**VALUES, "config": CONFIGURATION}))
    with (
        service(server, tmp_path) as replicas,
        creating(server, {**SORTS_OF_SITE, "spared": (SPARED, SORTS["wrong"][1])}) as made,
        ExitStack() as before,
        ExitStack() as after,
    ):
        first = str(chart(tmp_path / "first", replicas.port, old / "deploy" / "chart"))
        now = str(chart(tmp_path / "now", replicas.port))
        replicas.code = old
        _helm(server, "install", first, "--create-namespace", "--values", str(values))
        before.enter_context(certificates(server, tmp_path, code=old))
        before.enter_context(registration(server, tmp_path, code=old))
        _is_ready(server, replicas)
        note_replicas_on_two_nodes(server)
        _helm(server, "upgrade", first, "--reuse-values", "--set", "enforce=true")  # revision 2
        _has_own_policy(server)
        assert failure_policies(server) == {"Fail"}
        go_on_in(made, "old")
        told = _helm(server, "upgrade", now, "--reuse-values", code=1)
        assert "--reset-then-reuse-values" in told
        made.phase = "upgrade"
        _helm(server, "upgrade", now, "--reset-then-reuse-values")
        before.close()
        _replace_programs(server, tmp_path, replicas, after)
        go_on_in(made, "upgraded")
        must_be_allowed_to_enforce(server)
        made.phase = "upgrade"
        told = _helm(server, "upgrade", now, "--reset-then-reuse-values")
        assert "no caBundle yet" not in told
        _has_own_policy(server)
        assert failure_policies(server) == {"Fail"}
        go_on_in(made, "enforce")
        _has_values(server)
        made.phase = "upgrade"
        _helm(server, "rollback", "2")
        replicas.code = old
        _is_ready(server, replicas)
        _has_own_policy(server)
        go_on_in(made, "rollback")
        _has_values(server)
    _is_as_before(made, "old", "upgraded", "enforce", "rollback")
    assert made.outcomes("spared") == {"created"}


VALUES = {
    "livePolicies": True,
    "params": {"gpu-limits": {"warn": EDIT}},
    "webhooks": {"excludedNamespaces": ["spared"], "annotations": {"admissions.enforcer/disabled": "true"}},
    "commonLabels": {"team": "platform"},
    "podDisruptionBudget": {"enabled": False},
}


def _has_values(server: ApiServer) -> None:
    assert server.get("configmap", "gpu-limits", NAMESPACE)["data"]["warn"] == EDIT
    kept = server.get("configmap", "claimgate-config", NAMESPACE)
    assert yaml.safe_load(kept["data"]["claimgate.yaml"]) == CONFIGURATION
    assert kept["metadata"]["labels"]["team"] == "platform"
    for one in yaml.safe_load(server.kubectl("get", CONFIGURATIONS, "-o", "yaml").stdout)["items"]:
        assert one["metadata"]["annotations"]["admissions.enforcer/disabled"] == "true"
    spared = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["spared"]}
    assert all(spared in one["namespaceSelector"]["matchExpressions"] for one in webhooks(server))
    accounts = server.kubectl("get", "serviceaccounts", "-n", NAMESPACE, "-o", "name").stdout
    for name in ("claimgate", "claimgate-certificates", "claimgate-registration"):
        assert f"serviceaccount/{name}\n" in accounts
    assert not server.kubectl("get", "poddisruptionbudgets", "-n", NAMESPACE, "-o", "name").stdout


def _helm(server: ApiServer, verb: str, *arguments: str, code: int = 0) -> str:
    place = ("--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig))
    done = helm(verb, "claimgate", *arguments, *place, code=code)
    return done.stdout + done.stderr


def _decides(server: ApiServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the namespaces of the site, and write its claimgate.yaml, which replicas of every version read."""
    for name in ("research", "spared"):
        server.kubectl("create", "namespace", name)
    path = folder / "claimgate.yaml"
    path.write_text(yaml.safe_dump(CONFIGURATION))
    monkeypatch.setenv("CLAIMGATE_CONFIG", str(path))
    return path


def _with_live_policies(tree: Path, folder: Path, *, enforces: bool) -> Path:
    """Copy deploy/, and return the overlay `live-policies`. To enforce, it names `enforce` instead of the base."""
    shutil.copytree(tree / "deploy", folder)
    overlay = folder / "overlays" / "live-policies"
    path = overlay / "kustomization.yaml"
    text = path.read_text()
    assert text.count("- ../../base\n") == 1
    path.write_text(text.replace("- ../../base\n", "- ../enforce\n") if enforces else text)
    return overlay


def _is_ready(server: ApiServer, replicas: Replicas) -> None:
    until(lambda: has_bundles(server), "all webhooks have the bundle")
    replicas.roll()


def _has_own_policy(server: ApiServer) -> None:
    """Apply the live policy if it does not exist, and wait until API servers call claimgate for it."""
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
    if server.kubectl("get", "validatingpolicies.claimgate.dev", "eight-gpus", code=None).returncode:
        for one in (policy("eight-gpus", EIGHT, facts=["gpu"]), binding("eight-gpus", "eight-gpus")):
            server.apply({**one, "metadata": {"name": one["metadata"]["name"]}})
    nine = yaml.safe_dump(pod("nine", {"nvidia.com/gpu": "9"}))

    def answer() -> str:
        return server.kubectl("create", "--dry-run=server", "-f", "-", given=nine, code=None).stderr

    until(lambda: "eight-gpus" in answer(), "the live policy denies nine GPUs")
    until(lambda: has_bundles(server), "all webhooks have the bundle")


def _is_as_before(made: Creations, *answered: str) -> None:
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    phases = (*answered, "upgrade", "between")
    assert made.outcomes("plain", *phases) == {"created"}
    assert made.outcomes("own", *phases) == {"created as nvidia.com/gpu"}
    assert made.outcomes("portable", *answered) == {"created as nvidia.com/gpu"}
    for sort in ("fraction", "differs"):
        assert made.outcomes(sort, *answered, "upgrade") == {"created as nvidia.com/gpu"}, sort
    assert made.outcomes("excepted", *answered, "upgrade") == {"created"}
    for sort, told in (("wrong", "(gpu-portable/all)"), ("nine", "eight-gpus")):
        outcomes = made.outcomes(sort, *answered)
        assert all(told in each for each in outcomes), outcomes
    assert not [each for each in made.seen if "failed calling webhook" in each[2]]
    for phase in answered:
        assert made.count(phase) > 20, phase


def _deletes_leftovers(server: ApiServer) -> None:
    """Run the commands that the check prints for leftovers. Then the check finds nothing."""
    lines = [line for line in _check(server, 1).splitlines() if line.startswith("left over: ")]
    assert len(lines) == len(REMOVED_OBJECTS)
    for line in lines:
        server.kubectl(*line.split("`")[1].split()[1:])


def _issue(server: ApiServer, old: Path, folder: Path) -> None:
    job = server.get("job", "claimgate-certificates", NAMESPACE)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    account = f"--kubeconfig={service_account(server, 'claimgate-certificates', folder)}"
    subprocess.run([sys.executable, "-m", "webhook", *container["args"], account], cwd=old, check=True)


def _names(objects: list[Any]) -> set[tuple[str, str]]:
    return {(one["kind"], one["metadata"]["name"]) for one in objects}


def _check(server: ApiServer, code: int) -> str:
    return claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=code)
