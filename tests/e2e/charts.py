"""Copies of the chart with a Service on a port of the loopback address: the present version, and a previous version."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import yaml

from tests.deploy.helm import CHART
from tests.yamldata import documents

PREVIOUS = "0.0.9"
ADDED_WEBHOOKS = ("podtemplates.validate.claimgate.dev", "podtemplates.mutate.claimgate.dev")
_REMOVED_OBJECTS = """
apiVersion: batch/v1
kind: Job
metadata: {name: claimgate-first-certificate, namespace: {{ .Release.Namespace }}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: issue, image: "claimgate:{{ .Chart.AppVersion }}"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: claimgate-installed, namespace: {{ .Release.Namespace }}}
immutable: true
data: {version: {{ .Chart.AppVersion | quote }}}
"""


def chart(folder: Path, port: int, original: Path = CHART) -> Path:
    shutil.copytree(original, folder)
    _rewrite(folder / "files" / "service.yaml", port)
    _rewrite(folder / "files" / "webhooks.yaml", port)
    return folder


def previous_chart(folder: Path, port: int, without: tuple[str, ...] = ADDED_WEBHOOKS) -> Path:
    """Write the chart of a previous version, with another image, fewer webhooks, and two objects that the present
    version does not have.
    """
    chart(folder, port)
    about = folder / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^(version|appVersion): .*", rf"\1: {PREVIOUS}", about.read_text()))
    _rewrite(folder / "files" / "webhooks.yaml", port, without=without)
    (folder / "templates" / "removed.yaml").write_text(_REMOVED_OBJECTS)
    return folder


def _rewrite(path: Path, port: int, without: tuple[str, ...] = ()) -> None:
    objects = documents(path)
    for one in objects:
        if one["kind"] == "Service":
            external = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
            one["spec"] = {**external, "selector": one["spec"]["selector"]}
        if "webhooks" in one:
            one["webhooks"] = [webhook for webhook in one["webhooks"] if webhook["name"] not in without]
            for webhook in one["webhooks"]:
                webhook["clientConfig"]["service"]["port"] = port
    path.write_text(yaml.safe_dump_all(objects))
