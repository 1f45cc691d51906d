"""A real API server accepts policy reports unchanged. Every field of a report is in its CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer

pytestmark = pytest.mark.e2e

REPORTS = Path(__file__).parents[1] / "data" / "reports"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("reports")) as server:
        for crd in sorted((REPORTS / "crds").glob("*.yaml")):
            server.kubectl("create", "-f", str(crd))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        server.kubectl("create", "namespace", "research")
        yield server


@pytest.mark.parametrize(
    ("name", "kind"), [("policyreport", "policyreports.wgpolicyk8s.io"), ("openreports", "reports.openreports.io")]
)
def test_reports_are_accepted_by_the_api_server(name: str, kind: str, server: ApiServer) -> None:
    text = (REPORTS / "golden" / f"audit-{name}.yaml").read_text()
    server.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", given=text)
    shown = server.kubectl("get", kind, "-A", "-o", "jsonpath={range .items[*]}{.summary.fail} {end}").stdout
    assert sorted(shown.split()) == ["1", "4"]
