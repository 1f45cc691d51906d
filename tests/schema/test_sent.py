"""Plain objects of Kubernetes' kinds become what an API server sends. tests/e2e/test_sent.py uses a real one."""

from __future__ import annotations

from typing import Any

from tests.rows import all_rows
from webhook.admission.fixtures import group_version_kind_of_object
from webhook.schema.sent import as_sent_by_api_server

ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def pod(**container: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {}, **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}


def network_policy(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "policy"}, "spec": spec}


SENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a null that Go writes stays": ({**ROLE, "rules": None}, {**ROLE, "rules": None}),
    "an absent field that Go always writes is null": (ROLE, {**ROLE, "rules": None}),
    "a removed null and an added null": ({**ROLE, "aggregationRule": None}, {**ROLE, "rules": None}),
    "a null in place of an object that Go always writes is empty": (
        network_policy({"podSelector": None}),
        network_policy({"podSelector": {}}),
    ),
    "an empty list that Go writes stays": ({**ROLE, "rules": []}, {**ROLE, "rules": []}),
    "other nulls are absent": ({**CONFIG, "data": None, "immutable": None}, CONFIG),
    "other empty maps are absent": ({**CONFIG, "data": {}}, CONFIG),
    "other empty lists are absent": (pod(command=[], env=[]), pod()),
    "an empty object stays": (pod(securityContext={}), pod(securityContext={})),
    "a null among texts is empty": ({**CONFIG, "data": {"a": None}}, {**CONFIG, "data": {"a": ""}}),
    "a null among bytes stays": (
        {**CONFIG, "binaryData": {"a": None, "b": ""}},
        {**CONFIG, "binaryData": {"a": None, "b": ""}},
    ),
    "a null in a list is empty": (pod(args=[None]), pod(args=[""])),
    "a null amount is 0": (
        pod(resources={"limits": {"cpu": None}}),
        pod(resources={"limits": {"cpu": "0"}}),
    ),
    "an amount is a text": (
        pod(resources={"limits": {"nvidia.com/gpu": 1, "cpu": 1.5}}),
        pod(resources={"limits": {"nvidia.com/gpu": "1", "cpu": "1500m"}}),
    ),
    "an amount is canonical": (
        pod(resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}}),
        pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
    ),
    "a number or a text keeps its type": (
        service(ports=[{"port": 1, "targetPort": "a"}], selector=None),
        service(ports=[{"port": 1, "targetPort": "a"}]),
    ),
    "status is not changed": ({**pod(), "status": {"x": None}}, {**pod(), "status": {"x": None}}),
}
REFUSED: dict[str, dict[str, Any]] = {
    "a value of another type": pod(command="x"),
    "a template that is not filled in": pod(command="{{ .Values.command }}"),
    "a text that is not a quantity": pod(resources={"limits": {"cpu": "much"}}),
    "a field that does not exist": pod(comand=["x"]),
    "a kind of a CustomResourceDefinition": {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"labels": None}},
}


@all_rows(("written", "sent"), SENT.values(), ids=SENT)
def test_an_object_is_written_as_go_writes_it(written: dict[str, Any], sent: dict[str, Any]) -> None:
    assert as_sent_by_api_server(written, group_version_kind_of_object(written)) == sent


@all_rows("written", REFUSED.values())
def test_an_object_that_an_api_server_cannot_decode_is_not_encoded(written: dict[str, Any]) -> None:
    assert as_sent_by_api_server(written, group_version_kind_of_object(written)) is None


def test_an_unchanged_object_is_returned_without_a_copy() -> None:
    obj = pod(args=["a"], resources={"limits": {"cpu": "1"}})
    assert as_sent_by_api_server(obj, group_version_kind_of_object(obj)) is obj
