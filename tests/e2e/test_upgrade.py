"""The upgrade from the last version that CHANGELOG names with a commit, while objects are created. It follows the
upgrade notes, and the old version runs with its own code.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.creations import creating
from tests.e2e.installation import (
    cluster_with_sandboxes,
    failure_policies,
    go_on_in,
    has_bundles,
    must_be_allowed_to_enforce,
    note_replicas_on_two_nodes,
)
from tests.e2e.replicas import apply, certificates, rendered, service, service_account, until
from webhook.commands.installation import REMOVED_OBJECTS

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
_COMMIT = re.compile(r"Commit `([0-9a-f]{7,40})`")
EDIT = "pod-resources/whole-number"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with cluster_with_sandboxes(tmp_path_factory.mktemp("upgrade")) as running:
        yield running


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    commit = _COMMIT.findall((ROOT / "CHANGELOG.md").read_text())[0]
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"this clone does not have commit {commit}: fetch the whole history")
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
        tree.extractall(folder, filter="data")
    return folder


def test_an_upgrade_fails_no_request_and_names_edits_and_leftovers(
    server: ApiServer, old: Path, tmp_path: Path
) -> None:
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
