"""A real API server creates each object on which `policies check` tries policies, and each variant of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import trust
from webhook.apimachinery.attributes import JSON, GroupVersionKind, plural_of_kind
from webhook.cluster.known_kinds import is_cluster_scoped
from webhook.suites.valid_objects import ValidObjects, paths_of_fields, valid_objects

pytestmark = pytest.mark.e2e
_PLUGINS = "ServiceAccount,DefaultTolerationSeconds,Priority,RuntimeClass,LimitRanger,DefaultStorageClass"


def _url(kind: GroupVersionKind) -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1"
    where = "" if is_cluster_scoped(kind) else "/namespaces/default"
    return f"{root}{where}/{plural_of_kind(kind.kind)}"


def _objects(objects: ValidObjects) -> dict[str, JSON]:
    names = {path.rpartition(".")[2] for path in paths_of_fields(objects.full)} - {"apiVersion", "kind", "metadata"}
    return {"smallest": objects.smallest, "full": objects.full, **dict(objects.variants(names))}


def test_the_api_server_creates_each_object_and_each_variant(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder: Path = tmp_path_factory.mktemp("valid")
    refused: dict[tuple[str, str], Any] = {}
    tried = 0
    with apiserver.running(folder, f"--disable-admission-plugins={_PLUGINS}") as server:
        token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(verify=trust(server), headers=headers, base_url=server.url, timeout=60) as client:
            for kind, objects in valid_objects().items():
                for name, obj in _objects(objects).items():
                    tried += 1
                    options = {"dryRun": "All", "fieldValidation": "Strict"}
                    answer = client.post(_url(kind), params=options, json=obj)
                    if answer.status_code != 201:
                        refused[kind.kind, name] = answer.json()["message"]
    assert refused == {}
    assert tried > 1000
