"""A Prometheus that reads the metrics of an API server and of replicas, and evaluates the alerts of the overlay.

It reads and evaluates every second, and an alert fires two seconds after its condition begins to hold. Otherwise, rules
are as shipped.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from tests.e2e.apiserver import ApiServer, free_ports, running_program
from tests.e2e.replicas import Replica, until
from tests.yamldata import document

RULES = Path(__file__).parents[2] / "deploy" / "overlays" / "monitoring" / "alerts.yaml"
FOR = "2s"


def missing() -> str:
    if _program():
        return ""
    return "no prometheus: neither on the PATH nor in the folder that CLAIMGATE_VALIDATORS names"


def _program() -> str | None:
    return shutil.which("prometheus", path=os.environ.get("CLAIMGATE_VALIDATORS")) or shutil.which("prometheus")


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str
    targets: Path

    def reads(self, replicas: Iterable[Replica]) -> None:
        """Read the metrics of these replicas. The label `pod` has the name of a replica, as with Prometheus
        Operator.
        """
        listed = [{"targets": [f"127.0.0.1:{one.probes}"], "labels": {"pod": one.log.parent.name}} for one in replicas]
        written = self.targets.with_suffix(".new")
        written.write_text(json.dumps(listed))
        written.rename(self.targets)

    def value(self, query: str) -> float | None:
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, timeout=10).raise_for_status()
        results = answer.json()["data"]["result"]
        return float(results[0]["value"][1]) if results else None

    def firing(self) -> set[str]:
        return {one["labels"]["alertname"] for one in self._alerts() if one["state"] == "firing"}

    def summaries(self, name: str) -> set[str]:
        found = (one for one in self._alerts() if one["labels"]["alertname"] == name and one["state"] == "firing")
        return {one["annotations"]["summary"] for one in found}

    def _alerts(self) -> list[dict[str, dict[str, str]]]:
        answer = httpx.get(f"{self.url}/api/v1/alerts", timeout=10).raise_for_status()
        return list(answer.json()["data"]["alerts"])


@contextmanager
def reading(server: ApiServer, folder: Path) -> Iterator[Prometheus]:
    folder.mkdir()
    groups = document(RULES)["spec"]["groups"]
    for rule in (one for group in groups for one in group["rules"]):
        rule["for"] = FOR
    (folder / "alerts.yaml").write_text(yaml.safe_dump({"groups": groups}))
    (folder / "replicas.json").write_text("[]")
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(_configuration(server, folder)))
    (port,) = free_ports(1)
    made = Prometheus(f"http://127.0.0.1:{port}", folder / "replicas.json")
    command = [
        str(_program()),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running_program(folder / "log", command) as process:

        def is_ready() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            with suppress(httpx.TransportError):
                return httpx.get(f"{made.url}/-/ready").is_success
            return False

        until(is_ready, "Prometheus is ready")
        yield made


def _configuration(server: ApiServer, folder: Path) -> dict[str, object]:
    config = yaml.safe_load(server.kubeconfig.read_text())
    token = config["users"][0]["user"]["token"]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "alerts.yaml")],
        "scrape_configs": [
            {"job_name": "claimgate", "file_sd_configs": [{"files": [str(folder / "replicas.json")]}]},
            {
                "job_name": "apiserver",
                "scheme": "https",
                "authorization": {"credentials": token},
                "tls_config": {"ca_file": str(server.folder / "ca.crt")},
                "static_configs": [{"targets": [server.url.removeprefix("https://")]}],
            },
        ],
    }
