"""An install by Argo CD or Flux, as docs/gitops.md describes it. A caBundle that claimgate writes later stays, and does
not count as a difference. Argo CD applies client-side by default, and Flux server-side.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.helm import rendered as rendered_chart
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE
from tests.e2e.installation import CONFIGURATIONS, failure_policies, has_bundles
from tests.e2e.replicas import certificates, rendered, until

pytestmark = pytest.mark.e2e

WAYS = {
    "as Argo CD does": (),
    "as Flux does": ("--server-side", "--field-manager=kustomize-controller", "--force-conflicts"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("gitops")) as running:
        running.kubectl("create", "namespace", NAMESPACE)
        yield running


@pytest.mark.parametrize("source", ["kustomize", "helm template"])
@pytest.mark.parametrize("way", WAYS)
def test_the_ca_bundle_is_not_a_difference_and_stays(way: str, source: str, server: ApiServer, tmp_path: Path) -> None:
    objects = rendered(server, "base", 443) if source == "kustomize" else rendered_chart()
    given, flags = yaml.safe_dump_all(objects), WAYS[way]
    server.kubectl("apply", *flags, "-f", "-", given=given)
    try:
        with certificates(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            before = _bundles(server)
            compared = server.kubectl("diff", *flags, "-f", "-", given=given, code=None)
            assert (compared.returncode, compared.stdout) == (0, ""), compared.stdout + compared.stderr
        server.kubectl("apply", *flags, "-f", "-", given=given)
        assert _bundles(server) == before
    finally:
        kept = [one for one in objects if one["kind"] != "Namespace"]
        server.kubectl("delete", "--ignore-not-found", "-f", "-", given=yaml.safe_dump_all(kept))
        server.kubectl("delete", "secret", "claimgate-certificates", "--ignore-not-found", "-n", NAMESPACE)


def test_a_chart_that_reads_no_cluster_fails_closed_at_once(server: ApiServer) -> None:
    given = yaml.safe_dump_all(one for one in rendered_chart("enforce=true") if "webhooks" in one)
    server.kubectl("apply", "-f", "-", given=given)
    assert failure_policies(server) == {"Fail"}
    assert not has_bundles(server)
    server.kubectl("delete", CONFIGURATIONS, "claimgate")


def _bundles(server: ApiServer) -> list[Any]:
    listed = yaml.safe_load(server.kubectl("get", CONFIGURATIONS, "-o", "yaml").stdout)["items"]
    return [one["clientConfig"]["caBundle"] for each in listed for one in each["webhooks"]]
