"""The blocks of pages that need a cluster, pasted in order, in one shell for each page, against a real API server.

Without nodes, nothing becomes ready. Blocks that wait for Pods are in ELSEWHERE, with the test that does the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.helm import tool
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.page_blocks import PAGES, ROOT, Block, blocks_of

pytestmark = pytest.mark.e2e

ELSEWHERE = {
    "kubectl apply -k deploy/base && kubectl -n claimgate-system rollout status": "tests/e2e/test_upgrade.py",
    "git checkout VERSION -- deploy": "tests/e2e/test_upgrade.py",
    "helm test claimgate": "tests/e2e/test_helm_test.py",
    "kubectl delete crd": "tests/e2e/test_helm_life.py",
    "$ claimgate audit --live": "tests/e2e/test_cluster_audit.py",
    "claimgate serve --traces": "tests/commands/test_traces.py",
    "$ kubectl apply -f ten-mistakes.yaml": "tests/e2e/test_denials.py",
    "$ kubectl get claimgate": "tests/e2e/test_live_policies.py",
    "$ kubectl -n research-a get policyexceptions": "tests/e2e/test_policy_exceptions.py",
    "kubectl -n claimgate-system logs": "tests/commands/test_rollout.py",
    "pipx install --force '.[serve,live,ray]'": "tests/commands/test_ray.py",
}
"""The beginning of a block that needs Pods, other programs or other data, with its test"""
ISSUE = "claimgate certs issue --dir . --service claimgate-system/claimgate"
PREPARED = {
    "docs/certificates.md": f"{ISSUE}; kubectl -n claimgate-system create secret tls claimgate-certificates --cert tls.crt --key tls.key",
    "docs/clusters.md": ISSUE,
    "docs/policy-exceptions.md": "kubectl create namespace research-a",
    "docs/why.md": "kubectl create namespace team; kubectl -n team create job train --image=train:1",
}
"""Commands that create what the reader of a page already has"""
REPORT_FAILURE = (
    'code=$?; case "$code $BASH_COMMAND" in "1 claimgate "* | "3 claimgate "*) ;; '
    '*) echo "exit code $code: $BASH_COMMAND" ;; esac'
)
"""claimgate exits with 1 for findings and with 3 if something is not known."""


KINDS = (
    ("Namespaced", "cert-manager.io", "Certificate"),
    ("Namespaced", "cert-manager.io", "Issuer"),
    ("Namespaced", "monitoring.coreos.com", "PodMonitor"),
    ("Namespaced", "monitoring.coreos.com", "PrometheusRule"),
    ("Namespaced", "kueue.x-k8s.io", "Workload"),
    ("Cluster", "kueue.x-k8s.io", "ClusterQueue"),
    ("Cluster", "kueue.x-k8s.io", "ResourceFlavor"),
)


def cluster_blocks(page: Path) -> list[Block]:
    blocks = [block for block in blocks_of(page.read_text()) if block.marker == "cluster"]
    return [block for block in blocks if not block.text.startswith(tuple(ELSEWHERE))]


RUN = [page for page in PAGES if cluster_blocks(page)]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.without_controllers():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("pages")) as running, apiserver.controllers(running):
        data = ROOT / "tests" / "data"
        for file in data.glob("reports/crds/*.yaml"):
            running.kubectl("create", "-f", str(file))
        for scope, group, kind in KINDS:
            running.apply(_definition(scope, group, kind))
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        yield running


def _definition(scope: str, group: str, kind: str) -> dict[str, object]:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec = {"group": group, "scope": scope, "names": names, "versions": [version]}
    metadata = {"name": f"{plural}.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize("page", RUN, ids=[page.relative_to(ROOT).as_posix() for page in RUN])
def test_the_blocks_for_a_cluster_work_in_one_shell(page: Path, server: ApiServer, tmp_path: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    helm = Path(tool("helm")).parent
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    text = "\n".join(block.text for block in cluster_blocks(page))
    prepared = PREPARED.get(name, ":")
    if name != "deploy/README.md":
        server.kubectl("create", "namespace", "claimgate-system")
    else:
        text, prepared = text.replace("REVISION", "1"), ":"
    path = os.pathsep.join(map(str, (Path(sys.executable).parent, apiserver.assets(), helm, os.environ["PATH"])))
    done = subprocess.run(
        ["bash", "-c", f"{prepared}\ntrap '{REPORT_FAILURE}' ERR\n{text}"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "KUBECONFIG": str(server.kubeconfig), "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert re.findall("exit code .*", done.stdout) == [], done.stdout + done.stderr


def test_every_block_that_is_not_run_here_names_another_test() -> None:
    texts = [block.text for page in PAGES for block in blocks_of(page.read_text()) if block.marker == "cluster"]
    unused = [start for start in ELSEWHERE if not any(text.startswith(start) for text in texts)]
    assert unused == []
    assert [file for file in ELSEWHERE.values() if not (ROOT / file).is_file()] == []
