"""The errors of Volcano's webhook for a pod template: k8s.io/kubernetes v1.36 ValidatePodTemplate without options."""

from __future__ import annotations

from typing import Any

import pytest

from tests.facts.subjects import subject
from webhook.facts.volcano.job_template import validate_task_templates
from webhook.facts.volcano.sent_job import read_job


def told(pod: dict[str, Any], **task: Any) -> list[str]:
    template = {"name": "a", "replicas": 1, "template": {"spec": pod}, **task}
    spec = {"tasks": [template]}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    found = validate_task_templates(subject(job).once(read_job))
    return [problem.path.removeprefix("spec.tasks[0].template.spec.") for problem in found]


def pod(*others: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **spec: Any) -> dict[str, Any]:
    own = [{"name": "a", "image": "x", **spec.pop("own", {})}, *others]
    return {"containers": own, **({"initContainers": list(init)} if init else {}), **spec}


SIDECAR = {"name": "s", "image": "x", "restartPolicy": "Always"}
CPUS = {"resources": {"requests": {"cpu": 2}}}


@pytest.mark.parametrize(
    "spec",
    [
        pod(init=(SIDECAR,)),
        pod(own={"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}),
        pod(own={"env": [{"name": "my.env-NAME_1"}]}),
        pod(own={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, volumes=[{"name": "v", "emptyDir": {}}]),
        pod(hostNetwork=True, own={"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81}]}),
        pod(own={"ports": [{"containerPort": 80, "hostPort": 81}]}),
        pod(tolerations=[{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c"}]),
        pod(restartPolicy="${RESTART}"),
        pod(terminationGracePeriodSeconds=-1),
    ],
)
def test_valid_pods_are_allowed(spec: dict[str, Any]) -> None:
    assert told(spec) == []


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        ({}, "containers"),
        (pod({"name": "b"}), "containers[1].image"),
        (pod({"image": "x"}), "containers[1].name"),
        (pod(restartPolicy="Sometimes"), "restartPolicy"),
        (pod(dnsPolicy="Cluster"), "dnsPolicy"),
        (pod(hostname="a.b"), "hostname"),
        (pod(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]), "tolerations[0].operator"),
        (pod(own={"imagePullPolicy": "Never ever"}), "containers[0].imagePullPolicy"),
        (pod(own={"restartPolicy": "Never"}), "containers[0].restartPolicy"),
        (pod(own={"restartPolicyRules": [{"action": "Restart"}]}), "containers[0].restartPolicyRules"),
        (pod(own={"env": [{"name": "1A"}]}), "containers[0].env[0].name"),
        (pod(own={"env": [{"name": "A"}, {"name": "A\nB"}]}), "containers[0].env[1].name"),
        (pod(own={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}), "containers[0].volumeMounts[0].name"),
        (
            pod(own={"lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}),
            "containers[0].lifecycle.preStop.sleep.seconds",
        ),
        (
            pod(hostNetwork=True, own={"ports": [{"containerPort": 80, "hostPort": 81}]}),
            "containers[0].ports[0].hostPort",
        ),
    ],
)
def test_invalid_templates_of_volcano_are_reported(spec: dict[str, Any], at: str) -> None:
    assert told(spec) == [at]


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        (pod(own=CPUS), []),
        (pod(own={"resources": {"limits": {"cpu": "2"}}}), []),
        (pod(own={"resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}}), ["requests"]),
        (pod(own={"resources": {"requests": {"cpu": "1500m"}}}), ["requests"]),
        (pod(own={"resources": {"requests": {"cpu": "2000m"}}}), []),
        (pod(own={"resources": {"requests": {"cpu": "${CPUS}"}}}), []),
        (pod(), ["limits"]),
    ],
)
def test_whole_cpus_on_numa_nodes(spec: dict[str, Any], at: list[str]) -> None:
    assert told(spec, topologyPolicy="restricted") == [f"containers[0].resources.{side}.cpu" for side in at]
    assert told(spec, topologyPolicy="none") == []
