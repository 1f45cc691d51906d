"""These policies report a null or a value of the wrong type at any place of an object. No expression fails.

The objects are the published manifests, and objects with all fields that the policies read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from tests.literals import TABLE, shipped_policies
from tests.policies.test_manifests import FOLDERS, objects
from tests.thorough import some
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON, Operation
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces

NAMES = ("pod-template-shape", "gpu-limits", "gpu-portable", "opensandbox", "claims-exactly-one")
POLICIES = shipped_policies(*NAMES)
WRONG: tuple[JSON, ...] = (None, "text", 7, True, [], {}, [None], ["a"], [[]], {"a": 1})
FIXED = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}
A_FILE = 12  # a random choice of places and values of a manifest

CONTAINER = {
    "name": "main",
    "image": "nvidia/cuda",
    "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
    "resources": {
        "limits": {"gpu": 1, "cpu": "1"},
        "requests": {"cpu": "1"},
        "claims": [{"name": "g", "request": "r"}],
    },
}
SPEC = {
    "containers": [CONTAINER],
    "initContainers": [{"name": "init", "restartPolicy": "Always", "resources": {"limits": {"hugepages-2Mi": "2Mi"}}}],
    "ephemeralContainers": [{"name": "debug", "resources": {"limits": {"gpu": 1}}}],
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
    "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}},
    "overhead": {"cpu": "1"},
    "os": {"name": "linux"},
    "runtimeClassName": "nvidia",
    "tolerations": [{"key": "nvidia.com/gpu"}],
    "volumes": [{"name": "opensandbox-win-kvm"}],
    "nodeSelector": {"zone": "a"},
}


def made(version: str, kind: str, **spec: JSON) -> JSON:
    metadata = {"name": "x", "namespace": "team", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


TEMPLATE = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": SPEC}
TRAINJOB = made(
    "trainer.kubeflow.org/v1alpha1",
    "TrainJob",
    runtimeRef={"name": "r"},
    trainer={"resourcesPerNode": {"limits": {"gpu": 1}}},
)
OPENSANDBOX = "sandbox.opensandbox.io/v1alpha1"
WHOLE = (
    made("v1", "Pod", **SPEC),
    made("v1", "Pod", containers=[{"name": "a", "image": "nvidia/cuda", "command": ["x"]}], runtimeClassName="nvidia"),
    made("apps/v1", "Deployment", template=TEMPLATE),
    made(
        OPENSANDBOX,
        "BatchSandbox",
        replicas=2,
        template=TEMPLATE,
        shardPatches=[
            {"spec": {"containers": [CONTAINER], "resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}}
        ],
        taskTemplate={"spec": {}},
        shardTaskPatches=[{"spec": {"process": {"command": ["a"], "args": ["b"]}}}],
    ),
    made(OPENSANDBOX, "BatchSandbox", replicas=2, poolRef="*", template=TEMPLATE),
    made(OPENSANDBOX, "BatchSandbox", replicas=2, poolRef="pool"),
    made(
        OPENSANDBOX,
        "Pool",
        template=TEMPLATE,
        capacitySpec={"bufferMin": 1, "bufferMax": 2, "poolMin": 1, "poolMax": 3},
    ),
    made("agents.x-k8s.io/v1beta1", "Sandbox", podTemplate=TEMPLATE),
    made("extensions.agents.x-k8s.io/v1alpha1", "SandboxClaim", sandboxTemplateRef={"name": "t"}),
    made("extensions.agents.x-k8s.io/v1beta1", "SandboxClaim", warmPoolRef={"name": "w"}),
    TRAINJOB,
    made("trainer.kubeflow.org/v1alpha1", "OptimizationJob", trainJobTemplate={"spec": TRAINJOB["spec"]}),
    made(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        canary=[{"predictor": {"model": {"resources": CONTAINER["resources"]}}}],
        predictor={"model": {"resources": CONTAINER["resources"]}, **SPEC},
    ),
    made(
        "sparkoperator.k8s.io/v1beta2", "SparkApplication", driver={"gpu": {"name": "gpu", "quantity": 1}}, executor={}
    ),
    made("flow.volcano.sh/v1alpha1", "JobFlow", flows=[{"patch": {"jobSpec": {"tasks": [{"template": TEMPLATE}]}}}]),
    made(
        "workload.codeflare.dev/v1beta2",
        "AppWrapper",
        components=[{"template": TRAINJOB}, {"template": made("v1", "Pod", **SPEC)}],
    ),
    made(
        "ray.io/v1",
        "RayJob",
        rayClusterSpec={
            "headGroupSpec": {"rayStartParams": {"num-gpus": "1"}, "template": TEMPLATE},
            "workerGroupSpecs": [
                {"rayStartParams": {"num-gpus": "1"}, "template": {"spec": {"containers": [CONTAINER]}}}
            ],
        },
    ),
    made("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": {"template": TEMPLATE}}),
)
POOL = made(OPENSANDBOX, "Pool", template=TEMPLATE, capacitySpec={"poolMax": 1})
POOL["metadata"]["name"] = "pool"
VIEW = ClusterWithAssumedNamespaces(FilesCluster([POOL], is_whole=True))


def nodes(value: JSON, at: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the path of each value, without apiVersion, kind and names."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        if (*at, step) not in FIXED:
            yield (*at, step)
        yield from nodes(inner, (*at, step))


def replaced(value: JSON, path: FieldPath, new: JSON) -> JSON:
    step, rest = path[0], path[1:]
    changed = value.copy()
    changed[step] = replaced(value[step], rest, new) if rest else new
    return changed


def failed(obj: JSON, old: JSON = None) -> list[str]:
    """Return the failed expressions on a created object, or on an update."""
    operation = Operation.CREATE if old is None else Operation.UPDATE
    attributes = fixtures.attributes_of_object(obj, TABLE.row, operation=operation, old_object=old)
    outcome = run_phases(attributes, "auto", LocalAnswerer(policies=POLICIES, cluster=VIEW))
    return [f"{made.policy}: {made.message}" for _, made in outcome.decisions if made.evaluation == "error"]


@pytest.mark.parametrize("obj", WHOLE, ids=lambda obj: f"{obj['apiVersion']} {obj['kind']}")
def test_a_wrong_value_at_any_place_fails_no_expression(obj: JSON) -> None:
    assert failed(obj) == []
    for path, wrong in some(product(nodes(obj), WRONG), 7):
        assert failed(replaced(obj, path, wrong)) == [], (paths.path_as_text(path), wrong)


@pytest.mark.parametrize("obj", WHOLE, ids=lambda obj: f"{obj['apiVersion']} {obj['kind']}")
def test_a_stored_object_with_this_value_causes_no_error_either(obj: JSON) -> None:
    for path in some(nodes(obj), 7):
        for wrong in WRONG[::4]:
            broken = replaced(obj, path, wrong)
            assert failed(obj, broken) == [], (paths.path_as_text(path), wrong)
            assert failed(broken, obj) == [], (paths.path_as_text(path), wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_unusual_value_in_a_published_manifest_causes_no_error(folder: str) -> None:
    for number, (file, document) in enumerate(objects(folder)):
        chosen = random.Random(f"{file} {number}")  # the same nodes each time
        found = list(nodes(document))
        for path in chosen.sample(found, min(A_FILE, len(found))):
            wrong = chosen.choice(WRONG)
            assert failed(replaced(document, path, wrong)) == [], (file, paths.path_as_text(path), wrong)
