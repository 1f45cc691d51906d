"""Any JSON that a real API server accepts, in each field without a schema: no HTTP error, and no lost denial.

Another webhook, before claimgate, keeps the bytes that the API server sends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.e2e.apiserver import trust
from tests.e2e.conftest import Cluster
from tests.e2e.other_webhooks import Other, OtherWebhooks, other_webhooks, registered
from tests.e2e.test_rules import pod, pytorchjob
from tests.fuzz import free_fields
from tests.fuzz.free_fields import DENIED
from webhook.admission.decode import decode_review_bytes

pytestmark = pytest.mark.e2e

NAMESPACE: Final = "stored-json"
BOTH: Final = {"gpu": "1", "nvidia.com/gpu": "2"}
WRONG: Final = {
    "pods": ("/api/v1", pod("x", BOTH)),
    "deployments": (
        "/apis/apps/v1",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("x", BOTH)["spec"]},
            },
        },
    ),
    "pytorchjobs": ("/apis/kubeflow.org/v1", pytorchjob("x", limits=BOTH)),
    "resourceclaims": (
        "/apis/resource.k8s.io/v1",
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": DENIED[-1][2]},
    ),
    "batchsandboxes": (
        "/apis/sandbox.opensandbox.io/v1alpha1",
        {
            "apiVersion": "sandbox.opensandbox.io/v1alpha1",
            "kind": "BatchSandbox",
            "spec": {"replicas": 1, "template": {"spec": pod("x", {"gpu": "all"})["spec"]}},
        },
    ),
}
"""By resource, the path of its API and an object that claimgate denies"""
FREE: Final = ("managedFields", "annotation", "label", "argument", "variable", "parameters", "unknown")
_MARK: Final = "here: {}"
FIXED: Final = {
    "300 levels": b'{"f:x":' * 300 + b"{}" + b"}" * 300,
    "9,000 levels": b'{"f:x":' * 9_000 + b"{}" + b"}" * 9_000,
    "a byte that is not UTF-8": b'{"f:\xff":{}}',
    "half of a surrogate pair": rb'{"f:\ud800":{}}',
}
"""Values for `managedFields`, the field of the first known bypass"""


@pytest.fixture(scope="module")
def others(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherWebhooks]:
    cluster.server.kubectl("create", "namespace", NAMESPACE)
    with other_webhooks(tmp_path_factory.mktemp("others")) as running:
        yield running


@contextmanager
def recording(cluster: Cluster, others: OtherWebhooks) -> Iterator[list[bytes]]:
    """Yield a list that receives the bytes of each review of Pods and sandboxes from now on."""
    first = [
        Other("a-first-pods", lambda _: []),
        Other("a-first-sandboxes", lambda _: [], resource="batchsandboxes", group="sandbox.opensandbox.io"),
    ]
    with registered(cluster.server, others, NAMESPACE, *first):
        others.bodies.clear()
        yield others.bodies


@contextmanager
def client(cluster: Cluster) -> Iterator[httpx.Client]:
    (user,) = yaml.safe_load(cluster.server.kubeconfig.read_text())["users"]
    headers = {"authorization": f"Bearer {user['user']['token']}", "content-type": "application/json"}
    with httpx.Client(
        verify=trust(cluster.server), headers=headers, base_url=cluster.server.url, timeout=60, trust_env=False
    ) as made:
        yield made


def filled(obj: dict[str, Any], held: dict[str, bytes]) -> bytes:
    made = json.loads(json.dumps(obj))
    metadata = {"name": "x", "namespace": NAMESPACE, "annotations": {}, "labels": {}}
    made["metadata"] = metadata
    texts = {"annotation": metadata["annotations"], "label": metadata["labels"]}
    for name in held:
        mark = _MARK.format(name)
        if name == "managedFields":
            owner = {
                "manager": "m",
                "operation": "Update",
                "apiVersion": obj["apiVersion"],
                "time": "2026-01-01T00:00:00Z",
            }
            metadata["managedFields"] = [{**owner, "fieldsType": "FieldsV1", "fieldsV1": mark}]
        elif name in texts:
            texts[name]["example.com/free"] = mark
        elif name == "parameters" and "devices" in made["spec"]:
            made["spec"]["devices"]["config"].append({"opaque": {"driver": "free.example.com", "parameters": mark}})
        elif name == "unknown":
            made["spec"]["unknownField"] = mark
        for container in _containers(made["spec"]):
            if name == "argument":
                container["args"] = ["run", mark]
            elif name == "variable":
                container["env"] = [{"name": "FREE", "value": mark}]
    body = json.dumps(made).encode()
    for name, value in held.items():
        body = body.replace(json.dumps(_MARK.format(name)).encode(), value)
    return body


def _containers(value: Any) -> Iterator[dict[str, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from inner if key == "containers" else _containers(inner)


def denial(client: httpx.Client, resource: str, body: bytes) -> str:
    """Return the API server's message for the creation of an object in a dry run.

    kube-apiserver 1.36.2 panics for a number in parameters that no double can hold, and gives no answer.
    """
    path = f"{WRONG[resource][0]}/namespaces/{NAMESPACE}/{resource}"
    try:
        return str(client.post(path, params={"dryRun": "All"}, content=body).json().get("message", "created"))
    except httpx.RemoteProtocolError:
        return "the API server ended the connection"


@pytest.mark.parametrize("resource", WRONG)
def test_nothing_in_managed_fields_hides_what_is_denied(cluster: Cluster, others: OtherWebhooks, resource: str) -> None:
    with client(cluster) as made:
        plain = denial(made, resource, filled(WRONG[resource][1], {}))
        assert "denied the request" in plain
        for name, stored in FIXED.items():
            assert denial(made, resource, filled(WRONG[resource][1], {"managedFields": stored})) == plain, name
    assert cluster.lines("call refused") == []


def test_the_api_server_sends_objects_that_it_does_not_check(cluster: Cluster, others: OtherWebhooks) -> None:
    """The API server sends the deeply nested JSON and the bytes that are not UTF-8 unchanged. So the reviews in the
    tests above had them.
    """
    with client(cluster) as made, recording(cluster, others) as bodies:
        for stored in FIXED.values():
            denial(made, "pods", filled(WRONG["pods"][1], {"managedFields": stored}))
        whole = b"".join(bodies)
    assert b"\xff" in whole
    assert b'{"f:x":' * 9_000 in whole
    assert [decode_review_bytes(body).name for body in bodies] == ["x"] * len(FIXED)


@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_any_json_in_any_free_field_hides_nothing(cluster: Cluster, others: OtherWebhooks, count: int) -> None:
    random, outcomes = Random(47), Counter[str]()
    with client(cluster) as made, recording(cluster, others) as bodies:
        plain = {resource: denial(made, resource, filled(obj, {})) for resource, (_, obj) in WRONG.items()}
        for number in range(count):
            resource = random.choice([*WRONG])
            held = {name: _any_json(random, name) for name in random.sample(FREE, random.choice((1, 1, 2, 4)))}
            body = filled(WRONG[resource][1], held)
            said = denial(made, resource, body)
            assert "failed calling webhook" not in said, (number, body[:3000], said)
            denied = "denied the request" in said
            if denied and "parameters" not in held:
                assert said == plain[resource], (number, body[:3000])
            # the API server itself refuses JSON that it cannot read, invalid labels and invalid fields
            assert denied or said != "created", (number, body[:3000])
            outcomes["denied" if denied else "refused by the API server"] += 1
        for body in bodies:
            assert decode_review_bytes(body).name == "x"
    assert outcomes["denied"] > count // 4, outcomes
    assert cluster.lines("call refused") == []


def _any_json(random: Random, name: str) -> bytes:
    if name in ("managedFields", "parameters"):
        return b'{"f:x":' + free_fields.value(random) + b"}"
    return free_fields.value(random) if name == "unknown" else free_fields.text(random)


def test_a_stored_object_with_unusual_json_is_reviewed_when_it_changes(cluster: Cluster, others: OtherWebhooks) -> None:
    """The object has a byte that is not UTF-8, or 300 levels. It is updated, deleted and scaled."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    right = json.loads(json.dumps(WRONG["deployments"][1]))
    right["spec"]["template"]["spec"] = pod("x", {"nvidia.com/gpu": "1"})["spec"]
    for name, stored in FIXED.items():
        with client(cluster) as made:
            held = {"managedFields": stored}
            assert made.post(path, content=filled(right, held)).status_code == 201, name
            changed = made.put(f"{path}/x", content=filled(WRONG["deployments"][1], held)).json()
            assert "denied the request" in changed["message"], name
            scaled = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 0}}
            scaled["metadata"] = {"name": "x", "namespace": NAMESPACE}
            assert made.put(f"{path}/x/scale", json=scaled).status_code == 200, name
            assert made.delete(f"{path}/x").status_code == 200, name
    assert cluster.lines("call refused") == []
