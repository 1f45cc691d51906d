"""With any value at any place, a review has an answer, and no rule about pods fails with a CEL error.

Every place of a large pod template gets values of every type, in a kind with and without a schema. A cluster refuses most
of these values by schemas, which audited files do not have.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.literals import TABLE, shipped_policies
from tests.rows import all_rows
from tests.thorough import some
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery import paths
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces

DOOR = LocalAnswerer(policies=shipped_policies(), cluster=ClusterWithAssumedNamespaces(FilesCluster()))
SHAPES: tuple[Any, ...] = (None, "x", "", 1, -1.5, True, [], {}, [None], ["x"], [{}], {"a": 1}, "${X}")
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "runtimeClassName": "nvidia",
        "resourceClaims": [
            {"name": "gpu", "resourceClaimTemplateName": "one"},
            {"name": "nic", "resourceClaimName": "n"},
        ],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "initContainers": [{"name": "i", "image": "x", "resources": {"limits": {"gpu": 1}}}],
        "containers": [
            {
                "name": "main",
                "image": "nvcr.io/nvidia/pytorch:25.01-py3",
                "command": ["torchrun", "--nproc_per_node=2"],
                "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
                "resources": {
                    "claims": [{"name": "gpu", "request": "r"}],
                    "limits": {"nvidia.com/gpu": 2, "cpu": "4", "gpu": "1"},
                    "requests": {"nvidia.com/gpu": 2, "hugepages-2Mi": "2Mi"},
                },
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    },
}
KINDS = {
    "BatchSandbox": ("sandbox.opensandbox.io/v1alpha1", {"replicas": 1}),
    "Deployment": ("apps/v1", {"replicas": 1, "selector": {}}),
    "Pod": ("v1", None),
}


def places(value: Any, path: paths.FieldPath = ()) -> Iterator[paths.FieldPath]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


CLAIM = {
    "devices": {
        "requests": [
            {
                "name": "a",
                "exactly": {
                    "deviceClassName": "gpu.nvidia.com",
                    "allocationMode": "ExactCount",
                    "count": 1,
                    "adminAccess": True,
                    "selectors": [{"cel": {"expression": "true"}}],
                    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
                    "capacity": {"requests": {"memory": "1Gi"}},
                },
            },
            {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "x"}]},
        ],
        "constraints": [{"requests": ["a"], "matchAttribute": "a.b/c"}],
        "config": [
            {
                "requests": ["a"],
                "opaque": {
                    "driver": "gpu.nvidia.com",
                    "parameters": {
                        "apiVersion": "resource.nvidia.com/v1beta1",
                        "kind": "GpuConfig",
                        "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
                    },
                },
            }
        ],
    }
}
FLAT = {"devices": {"requests": [{"name": "a", "deviceClassName": "x", "count": 2, "selectors": [{"cel": {}}]}]}}
OBJECTS = {
    "ResourceClaim": ("v1", CLAIM),
    "ResourceClaimTemplate": ("v1", {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM}),
    "ResourceClaim v1beta1": ("v1beta1", FLAT),
    "DeviceClass": ("v1", {"selectors": [{"cel": {"expression": "true"}}], "config": [{"opaque": {"driver": "d"}}]}),
    "DeviceTaintRule": ("v1beta2", {"deviceSelector": {"pool": "b"}, "taint": {"key": "a/b", "effect": "NoExecute"}}),
}


def changed(value: Any, path: paths.FieldPath, shape: Any) -> Any:
    made = copy.deepcopy(value)
    parent = paths.get(made, path[:-1]) if path[:-1] else made
    parent[path[-1]] = copy.deepcopy(shape)
    return made


def errors(obj: Any) -> list[str]:
    found = run_phases(fixtures.attributes_of_object(obj, TABLE.row), "auto", DOOR).decisions
    return [f"{obj}: {each.policy}: {each.message}" for _, each in found if each.evaluation == "error"]


@all_rows("kind", KINDS)
@all_rows("path", list(places(TEMPLATE)), ids=paths.path_as_text)
def test_no_rule_fails_on_a_template_of_a_wrong_shape(path: paths.FieldPath, kind: str) -> None:
    version, spec = KINDS[kind]
    failed = []
    for shape in some(SHAPES, 3):
        template = changed(TEMPLATE, path, shape)
        inner = {"spec": {**spec, "template": template}} if spec is not None else {"spec": template["spec"]}
        failed += errors({"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "a"}, **inner})
    assert failed == []


@pytest.mark.parametrize("name", OBJECTS)
def test_no_rule_fails_on_a_claim_of_a_wrong_shape(name: str) -> None:
    version, spec = OBJECTS[name]
    whole = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": name.split(maxsplit=1)[0],
        "metadata": {"name": "x"},
        "spec": spec,
    }
    inside = [path for path in places(whole) if path[0] in ("metadata", "spec")]
    assert [
        each for path, shape in some(product(inside, SHAPES), 5) for each in errors(changed(whole, path, shape))
    ] == []
