"""claimgate knows the fields of Kubernetes' kinds that the API server publishes. It refuses what the rules about
unknown fields and quantities report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.patch.schema import is_builtin
from webhook.schema import type_of
from webhook.schema.types import Fields, Items, Type

pytestmark = pytest.mark.e2e
_KIND = "x-kubernetes-group-version-kind"
_FORM = {"apiVersion": "text", "kind": "text"}


def _undeclared(schema: Any, of: Type, schemas: Mapping[str, Any], at: str) -> Iterator[str]:
    """Yield the published properties that a type does not have."""
    parts = [schema, *schema.get("allOf", ())]
    named = [schemas[part["$ref"].rpartition("/")[2]] for part in parts if "$ref" in part]
    whole = named[0] if named else schema
    if isinstance(of, Items):
        yield from _undeclared(whole.get("items", {}), of.item, schemas, f"{at}[]")
    if not isinstance(of, Fields):
        return
    for name, inner in whole.get("properties", {}).items():
        if name in of.fields:
            yield from _undeclared(inner, of.fields[name], schemas, f"{at}.{name}")
        elif name not in (*_FORM, "status"):
            yield f"{at}.{name}"
    if of.others is not None and isinstance(whole.get("additionalProperties"), dict):
        yield from _undeclared(whole["additionalProperties"], of.others, schemas, f"{at}.*")


def test_each_field_that_the_api_server_publishes_is_known(cluster) -> None:
    documents = json.loads(cluster.server.kubectl("get", "--raw", "/openapi/v3").stdout)["paths"]
    missing, kinds = [], 0
    for path in documents:
        schemas = json.loads(cluster.server.kubectl("get", "--raw", f"/openapi/v3/{path}").stdout)
        schemas = schemas.get("components", {}).get("schemas", {})
        for schema in schemas.values():
            for each in schema.get(_KIND, ()):
                kind = GroupVersionKind(each["group"], each["version"], each["kind"])
                if len(schema[_KIND]) > 1 or not is_builtin(kind) or type_of(kind) is None:
                    continue
                kinds += 1
                missing += _undeclared(schema, type_of(kind), schemas, kind.kind)
    assert missing == []
    assert kinds > 50


def _pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "a", "image": "x", **spec.pop("container", {})}
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def _claim(storage: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "w", "namespace": "default"},
            "spec": spec}  # fmt: skip


def _object(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "w", "namespace": "default"}, **fields}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(_pod(), id="a Pod"),
        pytest.param(_pod(contianers=[]), id="a misspelt field"),
        pytest.param(_pod(container={"args:": ["run"]}), id="a colon too many"),
        pytest.param(_pod(container={"Args": ["run"]}), id="a capital letter"),
        pytest.param(_pod(container={"limits": {"cpu": 1}}), id="a field in the wrong place"),
        pytest.param(_pod() | {"dpec": {}}, id="a misspelt spec"),
        pytest.param(_pod() | {"status": {"phase": "Pending"}}, id="a status"),
        pytest.param(_pod(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "16gb"}}]), id="a volume of 16gb"),
        pytest.param(_pod(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "16G"}}]), id="a volume of 16G"),
        pytest.param(_claim("1000i"), id="a claim of 1000i"),
        pytest.param(_claim("1 Gi"), id="a claim of 1 Gi"),
        pytest.param(_claim("1e3"), id="a claim of 1e3"),
        pytest.param(_object("ResourceQuota", spec={"hard": {"requests.cpu": "100 m"}}), id="a quota of 100 m"),
        pytest.param(_object("ResourceQuota", spec={"hard": {"requests.cpu": "100m"}}), id="a quota of 100m"),
        pytest.param(_object("ConfigMap", data={"a": 4}), id="a number in a ConfigMap"),
        pytest.param(_object("ConfigMap", data={"a": "4"}), id="a text in a ConfigMap"),
        pytest.param(_object("ConfigMap", labels={"a": "b"}), id="labels outside the metadata"),
        pytest.param(_object("Service", spec={"ports": [{"port": 80, "targetport": 80}]}), id="a port of a Service"),
    ],
)
def test_kubectl_refuses_what_the_rules_report(audit_and_create, obj) -> None:
    reported, created = audit_and_create(obj, "manifest-shape")
    assert reported == (created.returncode != 0), created.stderr
