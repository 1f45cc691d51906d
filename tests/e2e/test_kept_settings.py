"""Settings of an operator stay after an upgrade with kustomize or Helm. Edits that an upgrade would lose are reported
before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.helm import CHART, helm, tool
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE, claimgate
from tests.e2e.replicas import apply, certificates, rendered, service, until

pytestmark = pytest.mark.e2e

SITE = {
    "gpu-portable.resource": "amd.com/gpu",
    "gpu-portable.vendor.amd": "amd.example/gpu",
    "gpu-limits.off": "pod-resources/whole-number",
    "gpu-limits.tolerations": "nvidia.com/gpu",
    "dra-claims.kubernetes": "1.35",
    "kueue.deny": "kueue-never/exceeds-max-quota",
    "trainer.trainer": "2.2",
}
"""Each documented kind of setting: a resource, a vendor, a level of a rule, a list of taints, releases"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.without_controllers():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("kept")) as running, apiserver.controllers(running):
        yield running


def test_kustomize_does_not_overwrite_the_params_of_the_site(server: ApiServer, tmp_path: Path) -> None:
    with service(server, tmp_path) as replicas:
        base = rendered(server, "base", replicas.port)
        apply(server, base)
        with certificates(server, tmp_path):
            until(lambda: "tls.crt" in server.kubectl("get", "secret", "-A", "-o", "yaml").stdout, "a certificate")
        literals = [f"--from-literal={key}={value}" for key, value in SITE.items()]
        server.kubectl("create", "configmap", "claimgate-site", "-n", NAMESPACE, *literals)
        _edit(server, "kueue", warn="kueue-never/resource-uncovered")
        _edit(server, "gpu-portable", **{"resource": "nvidia.example/gpu", "resource.team-a": "amd.com/gpu"})
        told = claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=1)
        lost = [line for line in told.splitlines() if line.startswith("an upgrade would lose")]
        assert (
            lost
            == [
                (
                    "an upgrade would lose: ConfigMap claimgate-system/kueue: `warn` was set by kubectl-patch: the next kubectl "
                    "apply undoes this: set `kueue.warn` in ConfigMap claimgate-site instead"
                )
            ]
            # claimgate-site also sets the edited key of gpu-portable; an upgrade keeps keys that the base lacks
        )
        apply(server, base)
        assert server.get("configmap", "claimgate-site", NAMESPACE)["data"] == SITE
        assert server.get("configmap", "gpu-portable", NAMESPACE)["data"]["resource"] == "nvidia.com/gpu"
        until(lambda: all("caBundle" in one["clientConfig"] for one in _webhooks(server)), "a bundle")
        replicas.roll()
        until(lambda: _limits(server, "gpu") == {"amd.com/gpu": "1"}, "`gpu` means what the site says")
        _edit(server, "claimgate-site", **{"gpu-portable.resource": "gpu.intel.com/xe"})
        until(lambda: _limits(server, "gpu") == {"gpu.intel.com/xe": "1"}, "a change of the site is taken up")
    server.kubectl("delete", "--wait=false", "-f", "-", given=yaml.safe_dump_all(base[::-1]), code=None)
    until(lambda: server.kubectl("get", "namespace", NAMESPACE, code=None).returncode, "the namespace is gone")


def test_helm_keeps_values_and_edits_are_named(server: ApiServer) -> None:
    tool("helm")
    release = ("claimgate", str(CHART), "--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig))
    values = [word for key, value in SITE.items() for word in ("--set-string", f"params.{key}={value}")]
    values[3] = "params.gpu-portable.vendor\\.amd=amd.example/gpu"
    helm("install", *release, "--create-namespace", *values, "--set", "config.levels.groups.storage=warn")
    _edit(server, "kueue", warn="kueue-never/resource-uncovered")
    told = claimgate("webhook-config", "--check", "--kubeconfig", str(server.kubeconfig), code=1)
    assert [line for line in told.splitlines() if line.startswith("an upgrade would lose")] == [
        (
            "an upgrade would lose: ConfigMap claimgate-system/kueue: `warn` was set by kubectl-patch: the next helm upgrade "
            "undoes this: set `params.kueue.warn` of the chart"
        )
    ]
    helm("upgrade", *release, "--reuse-values")
    for key, value in SITE.items():
        name, _, own = key.partition(".")
        assert server.get("configmap", name, NAMESPACE)["data"][own] == value, key
    kept = server.get("configmap", "claimgate-config", NAMESPACE)["data"]["claimgate.yaml"]
    assert yaml.safe_load(kept) == {"levels": {"groups": {"storage": "warn"}}}


def _edit(server: ApiServer, name: str, **data: str) -> None:
    change = json.dumps({"data": data})
    server.kubectl("patch", "configmap", name, "-n", NAMESPACE, "-p", change)


def _webhooks(server: ApiServer) -> list[dict[str, dict[str, str]]]:
    kinds = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
    return [one for kind in kinds for one in server.get(kind, "claimgate")["webhooks"]]


def _limits(server: ApiServer, name: str) -> dict[str, str]:
    container = {"name": "c", "image": "i", "resources": {"limits": {name: "1"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    made = server.kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", given=yaml.safe_dump(pod))
    return dict(yaml.safe_load(made.stdout)["spec"]["containers"][0]["resources"]["limits"])
