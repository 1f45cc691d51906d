"""Number fields may have texts of digits that int() cannot read. No rule may fail: it would hide other findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.growth import container, obj, pod, review, template
from tests.literals import shipped_policies
from webhook.admission.decode import decode_review
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Phase
from webhook.apimachinery.quantity import read_count
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.deadline import Deadline

TEXTS = {"a superscript": "²", "more digits than int() reads": "9" * 5000, "Arabic digits": "٣"}
APPLICATION = "applications: [{import_path: 'a:b', deployments: [{name: d, ray_actor_options: {num_gpus: 2}}]}]"


def gpus(text: str) -> JSON:
    return {"limits": {"nvidia.com/gpu": text}, "requests": {"nvidia.com/gpu": text}}


def ray_service(text: str, **params: str) -> JSON:
    group = {"rayStartParams": params, "template": template(containers=[container(resources=gpus(text))])}
    return obj("ray.io/v1", "RayService", {"serveConfigV2": APPLICATION, "rayClusterConfig": {"headGroupSpec": group}})


def inference_service(text: str) -> JSON:
    worker = {"tensorParallelSize": 2, "containers": [container(resources=gpus(text))]}
    model = {"modelFormat": {"name": "huggingface"}, "storageUri": "hf://a/b", "resources": gpus(text)}
    return obj("serving.kserve.io/v1beta1", "InferenceService", {"predictor": {"model": model, "workerSpec": worker}})


def llm_inference_service(text: str) -> JSON:
    main = template(containers=[container(resources=gpus(text))])["spec"]
    spec = {"model": {"uri": "hf://a/b"}, "parallelism": {"tensor": 2}, "template": main}
    return obj("serving.kserve.io/v1alpha1", "LLMInferenceService", spec)


def nim_service(text: str) -> JSON:
    spec = {"resources": gpus(text), "multiNode": {"parallelism": {"tensor": 2}}}
    return obj("apps.nvidia.com/v1alpha1", "NIMService", spec)


def train_job(text: str) -> JSON:
    trainer = {"command": ["tune", "run"], "numProcPerNode": text}
    return obj("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}, "trainer": trainer})


def member_of_group(text: str) -> JSON:
    made = pod()
    kueue = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "g"}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": text}
    return {**made, "metadata": {**made["metadata"], "labels": kueue, "annotations": annotations}}


def member_with_budget(text: str) -> JSON:
    made = pod(schedulerName="volcano")
    return {**made, "metadata": {**made["metadata"], "annotations": {"volcano.sh/jdb-max-unavailable": text}}}


OBJECTS = {
    "limits of a Ray group": ray_service,
    "num-gpus of a Ray group": lambda text: ray_service("1", **{"num-gpus": text}),
    "requests of an InferenceService": inference_service,
    "limits of an LLMInferenceService": llm_inference_service,
    "resources of a NIMService": nim_service,
    "processes of a TrainJob": train_job,
    "pods of a group": member_of_group,
    "a budget of Volcano": member_with_budget,
}
RUNTIME = obj(
    "trainer.kubeflow.org/v1alpha1",
    "ClusterTrainingRuntime",
    {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {"template": template(containers=[container("node")])},
                        },
                    }
                ]
            }
        },
    },
)
QUEUES = (
    obj("kueue.x-k8s.io/v1beta1", "LocalQueue", {"clusterQueue": "cq"})
    | {"metadata": {"name": "q", "namespace": "team"}},
    obj("kueue.x-k8s.io/v1beta1", "ClusterQueue", {"resourceGroups": []}) | {"metadata": {"name": "cq"}},
)
CONTEXT = (
    RUNTIME | {"metadata": {"name": "torch", "labels": {"trainer.kubeflow.org/framework": "torchtune"}}},
    *QUEUES,
)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("made", OBJECTS.values(), ids=OBJECTS)
def test_no_rule_fails_on_digits(made, text):
    cluster = ClusterWithAssumedNamespaces(FilesCluster(CONTEXT, is_whole=True))
    sent = decode_review(review(made(text)))
    for phase in Phase:
        verdict = answer_request(replace(sent), shipped_policies(), cluster, phase=phase, deadline=Deadline())
        assert verdict.faults == ()


@pytest.mark.parametrize(("value", "count"), [("8", 8), (8, 8), ("08", 8), ("-1", None), ("²", None), ("9" * 19, None)])
def test_a_count_is_some_ascii_digits(value, count):
    assert read_count(value) == count
