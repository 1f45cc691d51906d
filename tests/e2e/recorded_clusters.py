"""Loads recorded clusters into an API server: objects with their owners, states, events and deletions.

Owner references and events get the new uids of the API server. An unknown kind gets a CustomResourceDefinition that
accepts everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import httpx
import yaml

from tests.e2e.apiserver import PATIENCE_S, ApiServer, trust
from webhook.apimachinery.attributes import plural_of_kind

JSON = dict[str, Any]
RECORDED_UNTIL: Final = datetime(2026, 11, 28, 3, 30, tzinfo=UTC)
"""A moment after all events of the recorded clusters"""
_SERVED: Final = frozenset(("", "apps", "batch", "resource.k8s.io", "storage.k8s.io"))
_WRITTEN_BY_SERVER: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_THREADS: Final = 8


def objects_of_folder(folder: Path) -> list[JSON]:
    """Return the objects of a recorded cluster, with owners before the objects that they own."""
    return [each for file in sorted(folder.glob("*.yaml")) for each in yaml.safe_load(file.read_text())["items"]]


class Loader:
    def __init__(self, server: ApiServer) -> None:
        token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"authorization": f"Bearer {token}"}
        self._server = server
        self._client = httpx.Client(
            base_url=server.url, headers=headers, verify=trust(server), timeout=PATIENCE_S, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def define_kinds(self, objects: Iterable[JSON]) -> None:
        kinds = {(*_group_and_version(each), each["kind"]): "namespace" in each["metadata"] for each in objects}
        crds = [_definition(*kind, is_namespaced) for kind, is_namespaced in kinds.items() if kind[0] not in _SERVED]
        self._server.apply(*crds)
        self._server.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={PATIENCE_S}s")

    def load(self, objects: Iterable[JSON]) -> None:
        uids: dict[str, str] = {}
        for recorded in objects:
            created = self._create(_with_new_uids(recorded, uids))
            uids[recorded["metadata"].get("uid", "")] = created["metadata"]["uid"]
            if "deletionTimestamp" in recorded["metadata"]:
                self._ask("DELETE", f"{_path(created)}/{created['metadata']['name']}")

    def load_pods(self, pods: Iterable[JSON]) -> None:
        with ThreadPoolExecutor(_THREADS) as threads:
            for _ in threads.map(self._create, pods):
                pass

    def _create(self, obj: JSON) -> JSON:
        """Create an object, and then write its status, because the API server ignores the status of a new object."""
        sent = {key: value for key, value in obj.items() if key != "status"}
        created: JSON = self._ask("POST", _path(obj), sent)
        if "status" in obj:
            path = f"{_path(obj)}/{obj['metadata']['name']}/status"
            self._ask("PATCH", path, {"status": obj["status"]}, "application/merge-patch+json")
        return created

    def _ask(self, method: str, path: str, body: JSON | None = None, media: str = "application/json") -> Any:
        answer = self._client.request(method, path, json=body, headers={"content-type": media})
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json()


def filling_pods(namespace: str, count: int) -> Iterator[JSON]:
    for number in range(count):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"other-{number // 50}", "controller": True}
        labels = {"app": f"other-{number // 50}", "pod-template-hash": "5d9f8c7b6d"}
        owners = [{**owner, "uid": f"00000000-0000-0000-0000-{number // 50:012}"}]
        container: JSON = {"name": "server", "image": "registry.example.com/server:1", "args": ["--port", "8000"]}
        container["resources"] = {"limits": {"nvidia.com/gpu": "1", "memory": "64Gi"}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"other-{number}",
                "namespace": namespace,
                "labels": labels,
                "ownerReferences": owners,
            },
            "spec": {"nodeName": f"gpu-{number % 500}", "containers": [container]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "Ready")],
                "containerStatuses": [
                    {"name": "server", "image": container["image"], "imageID": "", "ready": True, "restartCount": 0}
                ],
            },
        }


def _with_new_uids(recorded: JSON, uids: dict[str, str]) -> JSON:
    """Return the object with the new uids of its owners. Events get times in the last hours."""
    metadata = {key: value for key, value in recorded["metadata"].items() if key not in _WRITTEN_BY_SERVER}
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = [{**each, "uid": uids[each["uid"]]} for each in metadata["ownerReferences"]]
        metadata["labels"] = {**metadata.get("labels", {}), **_labels_by_controller(metadata["ownerReferences"][0])}
    obj = {**recorded, "metadata": metadata}
    if obj["kind"] == "Event":
        obj["involvedObject"] = {**obj["involvedObject"], "uid": uids[obj["involvedObject"]["uid"]]}
        for field, form in (("lastTimestamp", "seconds"), ("eventTime", "microseconds")):
            if field in obj:
                moment = datetime.now(UTC) + (datetime.fromisoformat(obj[field]) - RECORDED_UNTIL)
                obj[field] = moment.isoformat(timespec=form).replace("+00:00", "Z")
    return obj


def _labels_by_controller(owner: JSON) -> dict[str, str]:
    """Return the labels that Kubernetes, KubeRay and Volcano give to pods of this owner."""
    match owner["apiVersion"].partition("/")[0], owner["kind"]:
        case "batch", "Job":
            return {"batch.kubernetes.io/controller-uid": owner["uid"], "batch.kubernetes.io/job-name": owner["name"]}
        case "ray.io", "RayCluster":
            return {"ray.io/cluster": owner["name"]}
        case "batch.volcano.sh", "Job":
            return {"volcano.sh/job-name": owner["name"]}
    return {}


def _definition(group: str, version: str, kind: str, is_namespaced: bool) -> JSON:
    plural = plural_of_kind(kind)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if is_namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def _group_and_version(obj: JSON) -> tuple[str, str]:
    group, _, version = obj["apiVersion"].rpartition("/")
    return group, version


def _path(obj: JSON) -> str:
    group, version = _group_and_version(obj)
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    namespace = obj["metadata"].get("namespace")
    plural = plural_of_kind(obj["kind"])
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
