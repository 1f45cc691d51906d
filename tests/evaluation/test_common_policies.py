"""Ten policies that most sites want, on twenty kinds. The result is right, or the object is reported as not
evaluated.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any, Final

import pytest

from tests.literals import OPTIONS, namespace, policies, request, validating
from webhook.apimachinery.attributes import JSON, POD, Phase
from webhook.cluster.files import FilesCluster
from webhook.commands import new_policy
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.policy.load import load_documents
from webhook.policy.policy_set import PolicySet
from webhook.schema import decode_object
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.sent import pod_as_sent
from webhook.yamltext import yamlfile

QUEUE: Final = "kueue.x-k8s.io/queue-name"
TAINT: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
NCCL: Final = {"name": "NCCL_SOCKET_IFNAME", "value": "eth0"}

GOOD: Final[JSON] = {
    "metadata": {"labels": {"team": "vision", "preemptible": "true"}},
    "spec": {
        "priorityClassName": "research-high",
        "nodeSelector": {"cloud.google.com/gke-spot": "true"},
        "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}],
        "containers": [
            {
                "name": "main",
                "image": "example.com/train:1",
                "resources": {"limits": {"nvidia.com/gpu": 4, "memory": "64Gi"}},
                "volumeMounts": [{"name": "work", "mountPath": "/checkpoints"}],
            }
        ],
    },
}
"""A pod template that all policies allow, with numbers as people write them"""


def made(api_version: str, kind: str, spec: JSON, **labels: str) -> JSON:
    metadata = {"name": "x", "namespace": "team", "labels": {QUEUE: "research", **labels}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def pod(template: JSON) -> JSON:
    """Return a Pod with this template, in the form that an API server sends. Pods of files are converted to the same
    form.
    """
    written = made("v1", "Pod", template["spec"], **labels_of(template))
    return with_api_defaults(pod_as_sent(decode_object(written, POD).value), POD)


def with_name(template: JSON, name: str) -> JSON:
    spec = template["spec"]
    return {**template, "spec": {**spec, "containers": [{**spec["containers"][0], "name": name}]}}


def labels_of(template: JSON) -> dict[str, str]:
    return dict(template["metadata"].get("labels", {}))


def runtime(template: JSON) -> JSON:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    node = {
        "name": "node",
        "template": {"metadata": {"labels": labels}, "spec": {"template": with_name(template, "node")}},
    }
    spec = {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [node]}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "ours"},
        "spec": spec,
    }


def train_job(template: JSON) -> JSON:
    container = template["spec"]["containers"][0]
    trainer = {"numNodes": 2, "image": container["image"], "resourcesPerNode": container["resources"]}
    return made("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "ours"}, "trainer": trainer})


def nim_service(template: JSON) -> JSON:
    spec, container = template["spec"], template["spec"]["containers"][0]
    repository, _, tag = container["image"].partition(":")
    own = {field: spec[field] for field in ("priorityClassName", "nodeSelector", "tolerations") if field in spec}
    return made(
        "apps.nvidia.com/v1alpha1",
        "NIMService",
        {
            "image": {"repository": repository, "tag": tag, "pullSecrets": ["ngc"]},
            "authSecret": "ngc",
            "replicas": 1,
            "storage": {"pvc": {"name": "work"}},
            "resources": container["resources"],
            "labels": labels_of(template),
            "expose": {"service": {"port": 8000}},
            **own,
        },
    )


def dynamo(template: JSON) -> JSON:
    container = {key: value for key, value in template["spec"]["containers"][0].items() if key != "name"}
    worker = {"replicas": 1, "labels": labels_of(template), "extraPodSpec": {"mainContainer": container}}
    return made("nvidia.com/v1alpha1", "DynamoGraphDeployment", {"services": {"Worker": worker}})


def spark(template: JSON) -> JSON:
    spec, container = template["spec"], template["spec"]["containers"][0]
    limits = container["resources"]["limits"]
    own = {field: spec[field] for field in ("priorityClassName", "nodeSelector", "tolerations") if field in spec}
    executor = {
        "cores": 4,
        "memory": "48g",
        "labels": labels_of(template),
        "gpu": {"name": "nvidia.com/gpu", "quantity": limits["nvidia.com/gpu"]},
        **own,
    }
    return made(
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {
            "type": "Python",
            "mode": "cluster",
            "sparkVersion": "3.5.5",
            "image": container["image"],
            "mainApplicationFile": "local:///opt/train.py",
            "volumes": spec.get("volumes", []),
            "driver": {"cores": 1, "memory": "4g", "labels": {"team": "vision"}},
            "executor": {"instances": 2, **executor},
        },
    )


def ray_cluster_spec(template: JSON) -> JSON:
    head = deepcopy(GOOD)
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": with_name(head, "ray-head")},
        "workerGroupSpecs": [{"groupName": "gpu", "replicas": 2, "rayStartParams": {}, "template": template}],
    }


def volcano(template: JSON) -> JSON:
    task = {"name": "worker", "replicas": 2, "template": template}
    return made("batch.volcano.sh/v1alpha1", "Job", {"minAvailable": 2, "schedulerName": "volcano", "tasks": [task]})


def inference_service(template: JSON) -> JSON:
    spec = {"labels": labels_of(template), "minReplicas": 1, **template["spec"]}
    return made("serving.kserve.io/v1beta1", "InferenceService", {"predictor": spec})


def app_wrapper(template: JSON) -> JSON:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    return made("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": job}]})


def roles(api_version: str, kind: str, field: str, role: str) -> Any:
    return lambda template: made(api_version, kind, {field: {role: {"replicas": 2, "template": template}}})


KINDS: Final[dict[str, Any]] = {
    "Pod": pod,
    "Job": lambda template: made("batch/v1", "Job", {"template": template}),
    "CronJob": lambda template: made(
        "batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}
    ),
    "Deployment": lambda template: made("apps/v1", "Deployment", {"selector": {}, "template": template}),
    "StatefulSet": lambda template: made("apps/v1", "StatefulSet", {"serviceName": "x", "template": template}),
    "JobSet": lambda template: made(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": {"template": template}}}]},
    ),
    "TrainJob": train_job,
    "PyTorchJob": roles("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs", "Worker"),
    "MPIJob": roles("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs", "Worker"),
    "RayCluster": lambda template: made("ray.io/v1", "RayCluster", ray_cluster_spec(template)),
    "RayJob": lambda template: made("ray.io/v1", "RayJob", {"rayClusterSpec": ray_cluster_spec(template)}),
    "LeaderWorkerSet": lambda template: made(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    ),
    "Volcano Job": volcano,
    "Notebook": lambda template: made(
        "kubeflow.org/v1", "Notebook", {"template": {"spec": template["spec"]}}, **labels_of(template)
    ),
    "InferenceService": inference_service,
    "Knative Service": lambda template: made("serving.knative.dev/v1", "Service", {"template": template}),
    "NIMService": nim_service,
    "DynamoGraphDeployment": dynamo,
    "SparkApplication": spark,
    "AppWrapper": app_wrapper,
}


def without_team(template: JSON, obj: JSON) -> None:
    del template["metadata"]["labels"]["team"]


def with_many_gpus(template: JSON, obj: JSON) -> None:
    template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 16


def with_other_image(template: JSON, obj: JSON) -> None:
    template["spec"]["containers"][0]["image"] = "docker.io/library/train:1"


def with_priority_of_others(template: JSON, obj: JSON) -> None:
    template["spec"]["priorityClassName"] = "production"


def without_volume(template: JSON, obj: JSON) -> None:
    template["spec"]["volumes"] = [{"name": "work", "emptyDir": {}}]


def not_preemptible(template: JSON, obj: JSON) -> None:
    del template["metadata"]["labels"]["preemptible"]


def without_memory_limit(template: JSON, obj: JSON) -> None:
    del template["spec"]["containers"][0]["resources"]["limits"]["memory"]


def without_queue(template: JSON, obj: JSON) -> None:
    del obj["metadata"]["labels"][QUEUE]


DENIALS: Final[dict[str, tuple[Any, str]]] = {
    "team-label": (without_team, "must have the label team"),
    "gpu-maximum": (with_many_gpus, "at most 8 GPUs"),
    "queue-required": (without_queue, "must name a LocalQueue"),
    "image-registries": (with_other_image, "not allowed, docker.io/library/train:1"),
    "priority-by-team": (with_priority_of_others, "is production, which team `vision` may not use"),
    "checkpoint-volume": (without_volume, "must have a PersistentVolumeClaim"),
    "spot-preemptible": (not_preemptible, "selects spot nodes"),
    "memory-limit": (without_memory_limit, "have no resources.limits.memory"),
}
"""For each policy, a change that breaks it, and a part of the denial"""

GPUS: Final = (
    "object.spec.containers.all(c, !has(c.resources) || !has(c.resources.limits)"
    " || !('nvidia.com/gpu' in c.resources.limits)"
    " || quantity(c.resources.limits['nvidia.com/gpu']).compareTo(quantity('8')) <= 0)"
)
"""The policy as people write it. `gpu-maximum` of `policies init` reads a fact, and would need more fields."""

CHANGES: Final = {"gpu-toleration": TAINT, "nccl-environment": NCCL}

NOT_EVALUATED: Final = {
    "TrainJob": {"gpu-toleration", "nccl-environment"},
    "NIMService": {"checkpoint-volume", "gpu-toleration", "nccl-environment"},
    "DynamoGraphDeployment": {*DENIALS, *CHANGES} - {"queue-required"},
    "SparkApplication": {"checkpoint-volume", "memory-limit", "gpu-toleration", "nccl-environment"},
}
"""Results that are not known before a controller has created the pods"""
IN_PART: Final = {("NIMService", "image-registries"), ("SparkApplication", "image-registries")}
"""The images of containers are known, but the images of volumes are not."""


@cache
def the_policy(name: str) -> PolicySet:
    """Return the policy with this name. The policy about queues is changed to apply to every kind."""
    if name == "gpu-maximum":
        return policies(validating({"expression": GPUS, "message": "at most 8 GPUs"}, annotations={"expand": "pods"}))
    (policy, *others) = [
        document
        for file in ("policy.yaml", "binding.yaml")
        for document in yamlfile.read(new_policy.FOLDER / name / file)
    ]
    if name == "queue-required":
        every = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
        policy.value["spec"]["matchConstraints"] = {"resourceRules": [every]}
    return load_documents([policy, *others], OPTIONS)


def evaluations(name: str, obj: JSON, template: JSON) -> list[tuple[str, str, str]]:
    cluster = FilesCluster([namespace(), runtime(template)])
    found = validating_decisions(
        request_context(the_policy(name), request(obj, is_plain=True), cluster), Phase.VALIDATE
    )
    return [(each.evaluation, each.path, each.message) for each in found]


@pytest.mark.parametrize("name", DENIALS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_is_right_about_a_kind(kind: str, name: str) -> None:
    good = KINDS[kind](deepcopy(GOOD))
    breaks, text = DENIALS[name]
    template = deepcopy(GOOD)
    if breaks is not without_queue:
        breaks(template, good)
    bad = KINDS[kind](template)
    if breaks is without_queue:
        breaks(template, bad)
    if name in NOT_EVALUATED.get(kind, ()):
        for obj in (good, bad):
            assert_not_evaluated(kind, evaluations(name, obj, template))
        return
    others = {"admit", "unknown"} if (kind, name) in IN_PART else {"admit"}
    assert {each[0] for each in evaluations(name, good, GOOD)} == others
    denials = [each for each in evaluations(name, bad, template) if each[0] not in others]
    assert denials
    for evaluation, path, message in denials:
        assert (evaluation, text in message) == ("deny", True), message
        assert not path or message.startswith(path)


def assert_not_evaluated(kind: str, found: list[tuple[str, str, str]]) -> None:
    """Fail unless every result is "not evaluated" and names the kind."""
    assert {each[0] for each in found} == {"unknown"}
    assert all(kind in message for _, _, message in found), found


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_written_only_to_the_source_of_the_pods(kind: str, name: str) -> None:
    obj = KINDS[kind](deepcopy(GOOD))
    before = deepcopy(obj)
    cluster = FilesCluster([namespace(), runtime(GOOD)])
    changed, found = apply_mutating_policies(request_context(the_policy(name), request(obj, is_plain=True), cluster))
    assert obj == before
    if name in NOT_EVALUATED.get(kind, ()):
        assert changed == before
        assert_not_evaluated(kind, [(each.evaluation, each.path, each.message) for each in found])
        return
    assert {each.evaluation for each in found} == {"admit"}
    added = without_value(changed, CHANGES[name])
    assert added == before
    assert changed != before


def without_value(value: Any, added: JSON) -> Any:
    """Remove an element that a mutation added, and lists that are empty without it."""
    if isinstance(value, dict):
        inner = {key: without_value(each, added) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each != [] or value[key] == []}
    if isinstance(value, list):
        return [without_value(each, added) for each in value if each != added]
    return value


def test_182_of_200_results_are_known() -> None:
    pairs = len(KINDS) * (len(DENIALS) + len(CHANGES))
    assert (pairs, pairs - sum(map(len, NOT_EVALUATED.values()))) == (200, 182)
