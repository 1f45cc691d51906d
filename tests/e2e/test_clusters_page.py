"""A real API server accepts the chart with the values of docs/clusters.md. With the site's own authority, it calls the
webhook."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.issue import authority, serving
from tests.deploy.helm import CHART, helm, tool
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.charts import chart
from tests.e2e.conftest import NAMESPACE
from tests.e2e.installation import failure_policies, has_bundles
from tests.e2e.replicas import service, until
from tests.e2e.test_rules import pod
from tests.page_blocks import blocks_of

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
VALUES = [block.text for block in blocks_of(PAGE.read_text()) if block.language == "yaml"]
SECTIONS = ("EKS", "GKE", "AKS", "OpenShift", "kubeadm", "IPv6", "no internet", "own authority", "own collector")
BY_SECTION = dict(zip(SECTIONS, VALUES, strict=True))
BUNDLE = "LS0tLS1CRUdJTi…"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run an API server of a cluster with IPv4 and IPv6 addresses."""
    tool("helm")
    if reason := apiserver.missing():
        pytest.skip(reason)
    ranges = "--service-cluster-ip-range=10.0.0.0/24,fd00::/112"
    with apiserver.running(tmp_path_factory.mktemp("clusters"), ranges) as running:
        yield running


def _authority() -> bytes:
    return authority("own", now=datetime.now(UTC)).certificate


def _objects(section: str, folder: Path, namespace: str) -> list[dict[str, Any]]:
    values = folder / "values.yaml"
    values.write_text(BY_SECTION[section].replace(BUNDLE, base64.b64encode(_authority()).decode()))
    place = ("--namespace", namespace, "--kube-version", "1.36.2", "--skip-tests")
    text = helm("template", "claimgate", str(CHART), "--values", str(values), *place).stdout
    return [one for one in yaml.safe_load_all(text) if one]


@pytest.mark.parametrize("section", SECTIONS)
def test_an_api_server_accepts_the_chart_with_the_values_of_the_page(
    section: str, server: ApiServer, tmp_path: Path
) -> None:
    """The namespace enforces a Pod Security level, so the Pods must meet the level that the notes name."""
    namespace = section.lower().replace(" ", "-")
    objects = _objects(section, tmp_path, namespace)
    server.kubectl("create", "namespace", namespace)
    level = "privileged" if "hostNetwork" in BY_SECTION[section] else "restricted"
    server.kubectl("label", "namespace", namespace, f"pod-security.kubernetes.io/enforce={level}")
    tried = server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(objects))
    assert tried.stderr == ""
    assert tried.stdout.count("created (server dry run)") == len(objects)
    for deployment in (one for one in objects if one["kind"] == "Deployment"):
        template = deployment["spec"]["template"]
        template["spec"].pop("priorityClassName")  # a dry run creates no namespace
        one = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "p", "namespace": namespace}}
        server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(one))


def test_the_values_of_a_section_have_the_effect_that_it_names(server: ApiServer, tmp_path: Path) -> None:
    found = {section: _objects(section, tmp_path, NAMESPACE) for section in SECTIONS}
    kinds = {
        section: {(one["kind"], one["metadata"]["name"]): one for one in objects} for section, objects in found.items()
    }
    stored = server.kubectl(
        "create", "--dry-run=server", "-o", "yaml", "-f", "-", "-n", "default",
        given=yaml.safe_dump(_in_default(kinds["IPv6"]["Service", "claimgate"])),
    )  # fmt: skip
    assert yaml.safe_load(stored.stdout)["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    kept = kinds["OpenShift"]["Deployment", "claimgate"]["spec"]["template"]["spec"]["securityContext"]
    assert not {"fsGroup", "runAsUser", "runAsGroup"} & set(kept)
    (container,) = kinds["EKS"]["Deployment", "claimgate"]["spec"]["template"]["spec"]["containers"]
    assert [one["containerPort"] for one in container["ports"]] == [9443, 9081]


def _in_default(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {**value["metadata"], "namespace": "default"}}


def test_with_an_own_authority_the_api_server_trusts_the_server(server: ApiServer, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    own = authority("own", now=now)
    pair = serving(own, [f"claimgate.{NAMESPACE}.svc"], now=now)
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    values = tmp_path / "values.yaml"
    values.write_text(BY_SECTION["own authority"].replace(BUNDLE, base64.b64encode(own.certificate).decode()))
    with service(server, tmp_path) as replicas:
        server.kubectl("create", "namespace", NAMESPACE)
        files = (f"--cert={tmp_path / 'tls.crt'}", f"--key={tmp_path / 'tls.key'}")
        server.kubectl("create", "secret", "tls", "claimgate-certificates", *files, "-n", NAMESPACE)
        release = ("claimgate", str(chart(tmp_path / "chart", replicas.port)), "--namespace", NAMESPACE)
        helm("install", *release, "--values", str(values), "--set", "enforce=true", *_kubeconfig(server))
        assert has_bundles(server)
        assert failure_policies(server) == {"Fail"}
        replicas.roll()
        portable = yaml.safe_dump(pod("portable", {"gpu": "1"}))
        create = ("create", "--dry-run=server", "-o", "yaml", "-f", "-")
        until(
            lambda: "nvidia.com/gpu" in server.kubectl(*create, given=portable, code=None).stdout,
            "the API server calls claimgate, which translates `gpu`",
            60,
        )
        helm("uninstall", "claimgate", "--namespace", NAMESPACE, *_kubeconfig(server))


def _kubeconfig(server: ApiServer) -> tuple[str, str]:
    return "--kubeconfig", str(server.kubeconfig)
