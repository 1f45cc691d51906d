"""With any value in a TrainJob, a runtime or an OptimizationJob, policies give a verdict and no error.

Every node of the published manifests becomes null, and values of other types.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.thorough import some
from tests.yamldata import documents
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Operation, Phase
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.workloads.table import load_table

GROUP = "trainer.kubeflow.org/v1alpha1"
FOLDER = Path(__file__).parents[1] / "data" / "manifests" / "kubeflow"
OBJECTS = [
    each
    for file in sorted(FOLDER.rglob("*.yaml"))
    for each in documents(file)
    if isinstance(each, dict) and each.get("apiVersion") == GROUP
]
ODD: tuple[Any, ...] = (None, "x", 7, [], {}, True, [None], {"name": None}, 1.5, ["x"])
EVERYTHING = {
    "apiVersion": GROUP,
    "kind": "TrainJob",
    "metadata": {"name": "all", "labels": {"a": "b"}},
    "spec": {
        "runtimeRef": {"name": "all", "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
        "initializer": {"model": {"storageUri": "hf://a/b", "env": [{"name": "A"}], "secretRef": {"name": "s"}}},
        "trainer": {
            "image": "cuda",
            "command": ["tune", "run"],
            "args": ["model.quantize_base=True", "output_dir=/x"],
            "env": [{"name": "PET_NNODES", "value": "1"}],
            "numNodes": 2,
            "numProcPerNode": 4,
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8, "cpu": "2"}, "requests": {"cpu": 1}, "claims": []},
            "resourceClaimsPerNode": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
        "runtimePatches": [
            {
                "manager": "example.org/a",
                "trainingRuntimeSpec": {
                    "template": {
                        "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": ""}},
                        "spec": {
                            "replicatedJobs": [
                                {
                                    "name": "node",
                                    "template": {
                                        "spec": {
                                            "template": {
                                                "spec": {
                                                    "tolerations": [{"key": "a"}],
                                                    "volumes": [{"name": "v", "emptyDir": {}}],
                                                    "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
                                                    "containers": [{"name": "node", "env": [{"name": "B"}]}],
                                                }
                                            }
                                        }
                                    },
                                }
                            ]
                        },
                    }
                },
            }
        ],
        "suspend": True,
        "managedBy": "kueue.x-k8s.io/multikueue",
        "activeDeadlineSeconds": 60,
    },
}
RUNTIME = {
    "apiVersion": GROUP,
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "all", "labels": {"trainer.kubeflow.org/support": "deprecated"}},
    "spec": {
        "mlPolicy": {
            "numNodes": 2,
            "torch": {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["x"]}]}},
        },
        "podGroupPolicy": {"volcano": {}},
        "template": {
            "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "q"}},
            "spec": {
                "network": {"subdomain": "x"},
                "successPolicy": {"operator": "All", "targetReplicatedJobs": ["node"]},
                "failurePolicy": {"rules": [{"name": "r", "action": "RestartJob", "onJobFailureReasons": ["x"]}]},
                "coordinator": {"replicatedJob": "node", "podIndex": 1},
                "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "d"}, "spec": {}}]}],
                "replicatedJobs": [
                    {
                        "name": "node",
                        "groupName": "default",
                        "replicas": 1,
                        "dependsOn": [{"name": "b", "status": "Ready"}],
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {
                                "parallelism": 1,
                                "template": {
                                    "spec": {
                                        "priorityClassName": "high",
                                        "nodeSelector": {"nvidia.com/gpu.product": "A100"},
                                        "tolerations": [{"key": "nvidia.com/gpu"}],
                                        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
                                        "containers": [
                                            {
                                                "name": "node",
                                                "image": "x",
                                                "args": ["a"],
                                                "resources": {"claims": [{"name": "gpu"}], "limits": {"cpu": 1}},
                                                "volumeMounts": [{"name": "d", "mountPath": "/d"}],
                                            }
                                        ],
                                    }
                                },
                            },
                        },
                    }
                ],
            },
        },
    },
}
TRIALS = {
    "apiVersion": GROUP,
    "kind": "OptimizationJob",
    "metadata": {"name": "tune"},
    "spec": {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "searchAlgorithm": {"grid": {}, "random": None},
        "parameters": [
            {"name": "lr", "searchSpace": {"uniform": {"min": "0.1", "max": "0.01"}}},
            {"name": "kind", "searchSpace": {"categorical": {"choices": ["a"]}}},
        ],
        "numTrials": 2,
        "parallelTrials": 3,
        "trainJobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": EVERYTHING["spec"]},
    },
}


NAMES = ("pod-template-shape", "trainer", "trainer-runtimes", "trainjob-num-proc-per-node")


@cache
def policies(release: str) -> PolicySet:
    places = [Path(shipped.policies_folder()) / name for name in NAMES]
    found = load_policy_set(places, Options(table=load_table()))
    param = next(each for each in found.params if each["metadata"]["name"] == "trainer")
    param["data"] = {"trainer": release, "dynamicResourceAllocation": "false"}
    return found


def nodes(value: Any, at: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the places of all values. In a list, only the first item counts."""
    entries = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for step, held in entries:
        yield (*at, step)
        yield from nodes(held, (*at, step))


def with_odd(value: Any, at: FieldPath, odd: Any) -> Any:
    if not at:
        return odd
    made = list(value) if isinstance(value, list) else dict(value)
    made[at[0]] = with_odd(value[at[0]], at[1:], odd)
    return made


def broken(obj: dict, every: int = 1) -> Iterator[tuple[str, dict]]:
    """Yield copies with one replaced value each. Only every n-th copy is tried."""
    places = [at for at in nodes(obj) if at[0] not in ("apiVersion", "kind")]
    ways = [(at, odd) for at in places for odd in ODD if type(odd) is not type(get(obj, at))]
    yield from ((f"{path_as_text(at)} = {odd!r}", with_odd(obj, at, odd)) for at, odd in some(ways, 2 * every))


def errors(obj: dict, *context: dict, release: str = "2.3", old: Any = None) -> list[str]:
    row = load_table().row
    operation = Operation.CREATE if old is None else Operation.UPDATE
    attributes = attributes_of_object(obj, row, operation=operation, old_object=old)
    cluster = ClusterWithAssumedNamespaces(FilesCluster([*context, *OBJECTS, RUNTIME]))
    verdict = answer_request(attributes, policies(release), cluster, phase=Phase.VALIDATE)
    assert verdict.decisions or old is not None
    return [f"{each.policy}: {each.message}" for each in verdict.decisions if each.evaluation == "error"]


RELEASES = ("2.0", "2.1", "2.2", "2.3", "2.4")


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_published_objects_with_an_odd_node(obj: dict) -> None:
    for (what, odd), release in zip(broken(obj, every=23), cycle(RELEASES)):
        assert (what, errors(odd, release=release)) == (what, [])


@pytest.mark.parametrize("obj", [EVERYTHING, RUNTIME, TRIALS], ids=lambda each: str(each["kind"]))
def test_a_full_object_with_an_unusual_value_at_any_place_causes_no_error(obj: dict) -> None:
    for (what, odd), release in zip(broken(obj, every=7), cycle(RELEASES)):
        assert (what, errors(odd, release=release)) == (what, [])


def test_a_job_on_a_runtime_with_an_odd_node() -> None:
    for (what, odd), release in zip(broken(RUNTIME, every=7), cycle(RELEASES)):
        assert (what, errors(EVERYTHING, odd, release=release)) == (what, [])


def test_a_change_of_a_job_that_had_an_odd_node() -> None:
    for (what, odd), release in zip(broken(EVERYTHING, every=13), cycle(RELEASES)):
        assert (what, errors(EVERYTHING, release=release, old=odd)) == (what, [])
        assert (what, errors(odd, release=release, old=EVERYTHING)) == (what, [])
