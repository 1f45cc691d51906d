"""The objects of the cluster that hostile workloads refer to, without policies."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.bench.bounds.reviews import JSON, NAMESPACE
from tests.bench.bounds.server import ROOT

TEMPLATES, DEVICES = 100, 64


def _object(kind: str, name: str, **rest: JSON) -> JSON:
    metadata = {"name": name, **({} if kind in {"DeviceClass", "ResourceSlice"} else {"namespace": NAMESPACE})}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, **rest}


def _template(i: int) -> JSON:
    selector = {"cel": {"expression": 'device.attributes["gpu.nvidia.com"].productName == "A100"'}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1, "selectors": [selector]}}
    return _object("ResourceClaimTemplate", f"template-{i}", spec={"spec": {"devices": {"requests": [request]}}})


def _slice() -> JSON:
    devices = [{"name": f"gpu-{i}", "attributes": {"productName": {"string": "A100"}}} for i in range(DEVICES)]
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "node-1", "pool": pool, "devices": devices}
    return _object("ResourceSlice", "node-1", spec=spec)


def write(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    selector = {"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}
    objects = [_object("DeviceClass", "gpu.nvidia.com", spec={"selectors": [selector]}), _slice()]
    objects += [_template(i) for i in range(TEMPLATES)]
    (folder / "devices.yaml").write_text(yaml.safe_dump_all(objects))
    return [folder, ROOT / "deploy" / "samples" / "context"]
