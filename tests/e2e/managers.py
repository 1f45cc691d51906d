"""The real managers of Kueue, JobSet and Kubeflow Trainer, beside the API server of tests.

Each manager stands in a folder with the source of its release, because the CRDs and the webhooks come from there
(CONTRIBUTING.md). Webhooks about Pods and about kinds that tests do not create are left out.
"""

from __future__ import annotations

import os
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from certs.issue import authority, serving
from tests.e2e.apiserver import PATIENCE_S, ApiServer, assets, controllers, free_ports, running_program

JSON = dict[str, Any]
_REVIEWED: Final = {"clusterqueues", "cohorts", "resourceflavors", "workloads", "jobs", "jobsets", "trainjobs"}
"""The resources whose webhooks are registered"""


@dataclass(frozen=True, slots=True)
class Manager:
    """One manager, and where its release keeps the CRDs and the webhooks."""

    name: str
    crds: str
    webhooks: str
    configuration: JSON = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return Path(os.environ.get("CLAIMGATE_MANAGERS") or assets() / "managers") / self.name


MANAGERS: Final = (
    Manager(
        "jobset",
        "config/components/crd/bases",
        "config/components/webhook/manifests.yaml",
        {"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "internalCertManagement": {"enable": False}},
    ),
    Manager(
        "trainer",
        "manifests/base/crds",
        "manifests/base/webhook/manifests.yaml",
        {"apiVersion": "config.trainer.kubeflow.org/v1alpha1", "certManagement": {"enable": False}},
    ),
    Manager(
        "kueue",
        "config/components/crd/bases",
        "config/components/webhook/manifests.yaml",
        {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "internalCertManagement": {"enable": False},
            "featureGates": {"VisibilityOnDemand": False},
            "integrations": {
                "frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"],
            },
        },
    ),
)


def without_managers() -> str:
    absent = [each for each in MANAGERS if not os.access(each.folder / "manager", os.X_OK)]
    if absent:
        names, folder = ", ".join(each.name for each in absent), absent[0].folder.parent
        return f"no managers of {names} in {folder}: build them (CONTRIBUTING.md) and set CLAIMGATE_MANAGERS"
    return ""


def define_kinds(server: ApiServer) -> None:
    """Create the CRDs of all managers."""
    files = [file for each in MANAGERS for file in (each.folder / each.crds).glob("*.yaml")]
    crds = [obj for file in files for obj in yaml.safe_load_all(file.read_text())]
    server.apply(*(each for each in crds if each and each["kind"] == "CustomResourceDefinition"))
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={PATIENCE_S}s")


@contextmanager
def running_managers(server: ApiServer) -> Iterator[None]:
    """Run all managers and the controller of Jobs, and register the webhooks of the managers."""
    ca = authority("managers", now=datetime.now(UTC))
    pair = serving(ca, ["127.0.0.1"], now=datetime.now(UTC))
    certificates = server.folder / "k8s-webhook-server" / "serving-certs"
    certificates.mkdir(parents=True)
    (certificates / "tls.crt").write_bytes(pair.certificate)
    (certificates / "tls.key").write_bytes(pair.key)
    with ExitStack() as stack:
        names = "job-controller,garbage-collector-controller,namespace-controller"
        stack.enter_context(controllers(server, names))
        for manager in MANAGERS:
            port, health = free_ports(2)
            file = server.folder / f"{manager.name}.yaml"
            file.write_text(yaml.safe_dump(_configuration(manager, certificates, port, health)))
            command = [str(manager.folder / "manager"), f"--config={file}"]
            # the manager of Trainer looks for its certificate in the folder for temporary files
            environment = {"KUBECONFIG": str(server.kubeconfig), "TMPDIR": str(server.folder)}
            log = server.folder / f"{manager.name}.log"
            process = stack.enter_context(running_program(log, command, environment))
            server.apply(*_webhooks(manager, f"https://127.0.0.1:{port}", ca.certificate))
            _wait_until_listening(port, process, log)
        yield


def _configuration(manager: Manager, certificates: Path, port: int, health: int) -> JSON:
    webhook: JSON = {"port": port, "host": "127.0.0.1"}
    if manager.name != "trainer":
        webhook["certDir"] = str(certificates)
    return {
        "kind": "Configuration",
        "webhook": webhook,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        **manager.configuration,
    }


def _webhooks(manager: Manager, url: str, ca: bytes) -> Iterator[JSON]:
    """Yield the webhooks of a release, with a URL instead of the Service."""
    for obj in yaml.safe_load_all((manager.folder / manager.webhooks).read_text()):
        kept = [
            {**each, "clientConfig": {"url": url + each["clientConfig"]["service"]["path"], "caBundle": _text(ca)}}
            for each in obj["webhooks"]
            if any(_REVIEWED.intersection(rule["resources"]) for rule in each["rules"])
        ]
        yield {**obj, "metadata": {"name": f"{manager.name}-{obj['kind'].lower()}"}, "webhooks": kept}


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _wait_until_listening(port: int, process: Any, log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-3000:]
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(log.read_text()[-3000:])
