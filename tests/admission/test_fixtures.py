"""Fixtures may be reviews, bare requests or plain objects. Each form becomes the same attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from webhook.admission.fixtures import attributes_of_fixture, attributes_of_object
from webhook.apimachinery.attributes import GroupVersionKind, GroupVersionResource, Operation, plural_of_kind
from webhook.errors import CallError

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}
REQUEST = {
    "uid": "U",
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "namespace": "ns",
    "operation": "CREATE",
    "object": POD,
}


@dataclass(frozen=True)
class Known:
    resource: str
    namespaced: bool


def test_review_request_and_object_give_the_same_attributes() -> None:
    whole = attributes_of_fixture({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": REQUEST})
    bare = attributes_of_fixture(REQUEST)
    plain = attributes_of_fixture(POD)
    assert whole == bare
    for name in ("kind", "resource", "request_kind", "request_resource", "operation", "name", "namespace"):
        assert getattr(plain, name) == getattr(bare, name)
    assert plain.object["spec"]["restartPolicy"] == "Always"  # a plain object gets the defaults of an API server


def test_a_plain_object_has_a_stable_uid() -> None:
    other = {**POD, "metadata": {"name": "q"}}
    assert attributes_of_fixture(POD).uid == attributes_of_fixture(POD).uid != attributes_of_fixture(other).uid


def test_a_hand_written_request_is_completed_from_its_object() -> None:
    read = attributes_of_fixture({"operation": "DELETE", "oldObject": POD})
    assert (read.kind, read.resource) == (GroupVersionKind("", "v1", "Pod"), GroupVersionResource("", "v1", "pods"))
    assert (read.uid, read.namespace, read.name, read.object) == (attributes_of_fixture(POD).uid, "ns", "p", None)


def test_an_incomplete_request_is_refused() -> None:
    with pytest.raises(CallError, match=r"request\.uid: expected a string, found none"):
        attributes_of_fixture({"operation": "CREATE", "object": {}})


def test_a_patch_of_hive_is_no_object() -> None:
    patch = {"apiVersion": "v1", "kind": "Namespace", "name": "n", "patch": '{"spec": {}}', "patchType": "merge"}
    with pytest.raises(CallError, match="metadata: expected an object, found a patch of Hive"):
        attributes_of_fixture(patch)
    assert attributes_of_fixture({**patch, "metadata": {"name": "n"}}).name == "n"


SCOPES: dict[str, tuple[dict[str, Any], str]] = {
    "the namespace of the object": (POD, "ns"),
    "without a namespace, it is default": ({"apiVersion": "v1", "kind": "Pod"}, "default"),
    "a Namespace is in itself": ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, "n"),
    "a device class has no namespace": ({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}, ""),
    "a cluster runtime has no namespace": (
        {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime"},
        "",
    ),
    "metadata null": ({"apiVersion": "v1", "kind": "Pod", "metadata": None}, "default"),
}


@pytest.mark.parametrize(("value", "namespace"), SCOPES.values(), ids=SCOPES.keys())
def test_namespace_of_a_plain_object(value: dict[str, Any], namespace: str) -> None:
    assert attributes_of_object(value).namespace == namespace


@pytest.mark.parametrize(
    "kind",
    [{"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}],
    ids=["a kind of Kubernetes", "a custom kind"],
)
def test_an_object_names_its_namespace_as_an_api_server_writes_it(kind: dict[str, str]) -> None:
    written = {**kind, "metadata": {"name": "a"}}
    assert attributes_of_object(written, namespace="team").object["metadata"] == {"name": "a", "namespace": "team"}
    assert attributes_of_object(written, fills_defaults=False).object["metadata"] == {"name": "a"}
    assert written["metadata"] == {"name": "a"}
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"}}
    assert attributes_of_object(device_class).object["metadata"] == {"name": "a"}


def test_the_table_wins_over_the_plural_rule() -> None:
    rows = {("x.io", "Corps"): Known("corps", namespaced=False)}
    read = attributes_of_object({"apiVersion": "x.io/v1", "kind": "Corps"}, lambda group, kind: rows.get((group, kind)))
    assert (read.resource.resource, read.namespace) == ("corps", "")


@pytest.mark.parametrize(
    ("operation", "has_object", "has_old", "options"),
    [
        (Operation.CREATE, True, False, "CreateOptions"),
        (Operation.UPDATE, True, True, "UpdateOptions"),
        (Operation.DELETE, False, True, "DeleteOptions"),
        (Operation.CONNECT, True, False, None),
    ],
)
def test_operations_carry_what_the_api_server_sends(
    operation: Operation, has_object: bool, has_old: bool, options: str | None
) -> None:
    read = attributes_of_fixture(POD, operation=operation)
    assert (read.object is not None, read.old_object is not None) == (has_object, has_old)
    assert read.options == (options and {"apiVersion": "meta.k8s.io/v1", "kind": options})


def test_an_update_keeps_the_given_old_object() -> None:
    old = {**POD, "metadata": {"name": "old"}}
    given = attributes_of_object(POD, operation=Operation.UPDATE, old_object=old).old_object
    assert given["metadata"]["name"] == "old"


@pytest.mark.parametrize(
    ("kind", "resource"),
    [("Pod", "pods"), ("NetworkPolicy", "networkpolicies"), ("Ingress", "ingresses"), ("Endpoints", "endpoints")],
)
def test_plurals(kind: str, resource: str) -> None:
    assert plural_of_kind(kind) == resource


@pytest.mark.parametrize(
    "value", [None, [], "x", {"kind": "Pod"}, {"apiVersion": "v1"}, {"apiVersion": 1, "kind": "P"}]
)
def test_other_fixtures_are_refused(value: Any) -> None:
    with pytest.raises(CallError, match="expected an AdmissionReview, a request"):
        attributes_of_fixture(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("just a text", "or an object, found `just a text`", id="a text"),
        pytest.param(None, "or an object, found `null`", id="nothing"),
        pytest.param({"apiVersion": 1, "kind": "Pod"}, "apiVersion: expected a string, found `1`;", id="a number"),
        pytest.param({"apiVersion": "v1", "kind": None}, "kind: expected a string, found none;", id="null"),
        pytest.param({"apiVersion": "v1", "kind": ""}, 'kind: expected a string, found `""`;', id="an empty text"),
    ],
)
def test_an_input_that_is_not_an_object_is_shown_in_the_error(value: object, message: str) -> None:
    with pytest.raises(CallError) as caught:
        attributes_of_fixture(value)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "spec", [{"(length(containers))": 1}, {"containers": [{"(name == 'a')": True}]}, {"([0])": {"a": 1}}]
)
def test_an_assertion_is_not_an_object(spec):
    with pytest.raises(CallError, match="is an assertion"):
        attributes_of_object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})
