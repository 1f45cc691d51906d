"""claimgate converts claims, templates and slices between versions as a real API server does, in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dra_variants import claim, template
from tests.e2e import apiserver
from webhook.apimachinery.attributes import GroupVersionKind, GroupVersionResource
from webhook.deadline import Deadline
from webhook.evaluation.conversions import convert_to_version
from webhook.policy.matching import Match

pytestmark = pytest.mark.e2e

GROUP = "resource.k8s.io"
REQUESTS = [
    {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount"}},
    {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu"}]},
    {
        "name": "d",
        "exactly": {
            "deviceClassName": "gpu",
            "allocationMode": "All",
            "selectors": [{"cel": {"expression": "true"}}],
            "tolerations": [{"operator": "Exists"}],
        },
    },
]
SLICE = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-1",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {"name": "g", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}},
            {"name": "h"},
        ],
    },
}
OBJECTS = {
    "resourceclaims": claim({"devices": {"requests": REQUESTS}}),
    "resourceclaimtemplates": template({"spec": {"devices": {"requests": REQUESTS}}}),
    "resourceslices": SLICE,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("versions"), "--runtime-config=api/all=true") as running:
        yield running


@pytest.mark.parametrize("plural", OBJECTS)
def test_an_object_is_converted_as_the_api_server_converts_it(server: apiserver.ApiServer, plural: str) -> None:
    sent = OBJECTS[plural]
    server.apply(sent)
    shown = {
        version: get(server, plural, version, sent["metadata"]["name"]) for version in ("v1", "v1beta2", "v1beta1")
    }
    for wanted, other in (("v1beta1", "v1"), ("v1", "v1beta1"), ("v1beta1", "v1beta2"), ("v1beta2", "v1beta1")):
        resource = GroupVersionResource(GROUP, wanted, plural)
        match = Match(resource, GroupVersionKind(GROUP, wanted, sent["kind"]), "fields")
        assert convert_to_version(shown[other], match, Deadline()) == shown[wanted], (wanted, other)


def get(server: apiserver.ApiServer, plural: str, version: str, name: str) -> Any:
    """Return an object in a version of the API, without managedFields."""
    where = "" if plural == "resourceslices" else "namespaces/default/"
    found = json.loads(server.kubectl("get", "--raw", f"/apis/{GROUP}/{version}/{where}{plural}/{name}").stdout)
    found["metadata"].pop("managedFields", None)
    return found
