"""`claimgate simulate` finds the objects and settings that the pods of a job need."""

import json

import pytest

from tests.cluster.server import ApiServer, page, resources
from tests.simulation.answers import NEEDING, NODES, obstacles_and_questions, problems_and_questions, simulated


def test_a_pod_with_a_scheduling_gate_is_not_reported_as_starting(tmp_path, capsys):
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {schedulingGates: [{name: b/c}], containers: CS}}"
    (tmp_path / "pod.yaml").write_text(pod.replace("CS", "[{name: main, image: x}]"))
    _, [told] = simulated(capsys, tmp_path / "pod.yaml", *NODES, "--context-is-whole")
    whats = [each["what"] for each in told["unknown"]]
    assert whats == ["the pods stay Pending until someone removes their schedulingGates: `b/c`"]


@pytest.mark.parametrize(
    ("spec", "asked", "found"),
    [
        ("containers: [{name: c, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]", False, True),
        ("nodeName: a, containers: [{name: c, image: x}]", True, False),
        ("nodeName: a, hostUsers: true, containers: [{name: c, image: x, securityContext: KEPT}]", False, False),
    ],
    ids=["the rule reports the Pod", "the rule is not evaluated", "the Pod meets the level"],
)
def test_pod_security_that_no_rule_compared_is_reported(spec, asked, found, tmp_path, capsys):
    kept = "{allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, seccompProfile: PROFILE}"
    label = "pod-security.kubernetes.io/enforce: restricted"
    pod = spec.replace("KEPT", kept.replace("PROFILE", "{type: RuntimeDefault}"))
    (tmp_path / "pod.yaml").write_text(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a, namespace: team}}\nspec: {{{pod}}}\n---\n"
        f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: team, labels: {{{label}}}}}\n"
    )
    _, told = simulated(capsys, tmp_path / "pod.yaml")
    answer = next(each for each in told if each["object"] == "Pod team/a")
    what = "Pod Security `restricted` of namespace team is not compared with the pods"
    assert (what in [each["what"] for each in answer["unknown"]]) is asked
    assert bool(answer["aspects"]["admission"]) is found


@pytest.mark.parametrize(
    ("container", "spec", "said"),
    [
        (", envFrom: [{configMapRef: {name: settings}}]", "", ""),
        (", envFrom: [{configMapRef: {name: setting}}]", "", "ConfigMap `setting` does not exist"),
        (", envFrom: [{configMapRef: {name: setting, optional: true}}]", "", ""),
        (", env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: b}}}]", "", "has no key `b`"),
        (", env: [{name: A, valueFrom: {secretKeyRef: {name: hub, key: b}}}]", "", "Secret `hub`"),
        ("", "volumes: [{name: a, configMap: {name: kube-root-ca.crt}}]", ""),
        (
            ", volumeMounts: [{name: a, mountPath: /a}]",
            "volumes: [{name: a, secret: {secretName: hub}}]",
            "Secret `hub`",
        ),
        ("", "volumes: [{name: a, secret: {secretName: hub}}]", ""),  # the kubelet ignores a volume without a mount
        (", ports: [{containerPort: 80, hostPort: 80}]", "", "nodes not compared for hostPort"),
        (", ports: [{containerPort: 80}]", "hostNetwork: true", "nodes not compared for hostPort"),
        ("", "runtimeClassName: kata", "nodes not compared for RuntimeClass kata"),
    ],
)
def test_no_job_can_start_that_lacks_objects_or_has_other_needs(container, spec, said, tmp_path, capsys):
    text = NEEDING.replace("CONTAINER", container).replace("SPEC", f"      {spec}\n" if spec else "")
    (tmp_path / "job.yaml").write_text(text)
    problems, questions = problems_and_questions(capsys, tmp_path / "job.yaml", "Deployment team/a")
    texts = [*problems, *questions]
    assert said in " ".join(texts) if said else texts == []


MOUNTING = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: team}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: a, image: a, command: [a], resources: {limits: {nvidia.com/gpu: 1}}, volumeMounts: [{name: m, mountPath: /m}]}
      volumes: [{name: m, persistentVolumeClaim: {claimName: models}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models, namespace: team}
spec: {accessModes: [ReadWriteMany], CLAIM}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: p}
spec:
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [b]}]}]
---
apiVersion: v1
kind: Node
metadata: {name: NODE}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10", nvidia.com/gpu: "1"}}
"""


@pytest.mark.parametrize(
    ("claim", "node", "said"),
    [
        ("volumeName: p", "a", "the nodeAffinity of PersistentVolume `p` of claim `models` selects no node that fits"),
        ("volumeName: p", "b", ""),
        ("storageClassName: fast", "a", "requests StorageClass `fast`, which does not exist"),
        ("resources: {}", "a", ""),
    ],
)
def test_a_volume_that_the_pods_may_not_get_is_reported(claim, node, said, tmp_path, capsys):
    (tmp_path / "job.yaml").write_text(MOUNTING.replace("CLAIM", claim).replace("NODE", node))
    problems, questions = problems_and_questions(capsys, tmp_path / "job.yaml", "Job team/a")
    texts = [*problems, *questions]
    assert said in " ".join(texts) if said else texts == []


def test_a_volume_that_only_the_next_update_needs_twice_does_not_prevent_the_start(capsys, tmp_path):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models", "namespace": "team"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    container = {"name": "main", "image": "vllm/vllm-openai:v0.12.0", "args": ["/m"]}
    container |= {"resources": {"limits": {"nvidia.com/gpu": 1}}, "volumeMounts": [{"name": "m", "mountPath": "/m"}]}
    volume = {"name": "m", "persistentVolumeClaim": {"claimName": "models"}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat", "namespace": "team"},
        "spec": {
            "selector": {"matchLabels": {"app": "chat"}},
            "template": {
                "metadata": {"labels": {"app": "chat"}},
                "spec": {"containers": [container], "volumes": [volume]},
            },
        },
    }
    (tmp_path / "chat.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [claim, deployment]}))
    code, [told] = simulated(capsys, tmp_path / "chat.json")
    assert (code, told["answer"]) == (0, "nothing-found")
    assert "storage/rolling-update" in [each["rule"] for each in told["besides"]]


POD_WITH_TOKEN = """
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: team}
spec: {PLACED, containers: [{name: main, image: x, RESOURCES, env: [{name: T, valueFrom: {secretKeyRef: {name: hf, key: t}}}]}]}
"""
ABSENT = "Secret `hf` does not exist in the namespace, so the kubelet creates no container (CreateContainerConfigError)"
PARTIAL = "the files have other objects of namespace team, but not Secret `hf`"


@pytest.mark.parametrize(
    ("placed", "resources", "others", "is_whole", "answer", "said"),
    [
        ("", "resources: {limits: {nvidia.com/gpu: 1}}", "", True, "never", f"spec.containers[0].env[0].valueFrom.secretKeyRef.name: {ABSENT}"),
        ("", "", "", True, "never", f"spec.containers[0].env[0].valueFrom.secretKeyRef.name: {ABSENT}"),
        ("nodeName: b", "", "", True, "never", f"spec.containers[0].env[0].valueFrom.secretKeyRef.name: {ABSENT}"),
        ("", "", "", False, "nothing-found", ""),
        ("", "", "{apiVersion: v1, kind: Secret, metadata: {name: hf-token, namespace: team}}", False, "unknown", PARTIAL),
        ("", "", "{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: other}}", False, "nothing-found", ""),
        ("", "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: team}}", False, "nothing-found", ""),
        ("", "", "{apiVersion: v1, kind: Secret, metadata: {name: hf, namespace: team}}", True, "nothing-found", ""),
    ],
)  # fmt: skip
def test_a_secret_that_does_not_exist_keeps_a_pod_from_starting(
    placed, resources, others, is_whole, answer, said, tmp_path, capsys
):
    text = POD_WITH_TOKEN.replace("PLACED, ", f"{placed}, " if placed else "")
    text = text.replace("RESOURCES, ", f"{resources}, " if resources else "")
    (tmp_path / "pod.yaml").write_text(f"{text}---\n{others}\n")
    _, told = simulated(capsys, tmp_path / "pod.yaml", *(["--context-is-whole"] if is_whole else []))
    assert told[0]["answer"] == answer, "see pod_prerequisites.py and _prerequisite_questions"
    unknown = [each for each in told[0]["unknown"] if each["aspects"] == ["launcher"]]
    assert obstacles_and_questions({**told[0], "unknown": unknown}, tmp_path) == ([said] if said else [])


WITH_VOLUME = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "team"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "containers": [{"name": "a", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            },
        },
    },
}
CLAIM = {
    "metadata": {"name": "c", "namespace": "team", "resourceVersion": "1"},
    "spec": {"storageClassName": "manual", "accessModes": ["ReadWriteOnce"]},
    "status": {"phase": "Pending"},
}
ABSENT = "requests StorageClass `manual`, which does not exist, so "


@pytest.mark.parametrize(
    ("volumes", "answer", "said"),
    [
        (page({"metadata": {"name": "p"}, "spec": {"storageClassName": "manual"}}), "nothing-found", ""),
        (page(), "never", f"{ABSENT}no volume is created"),
        ((403, {}), "unknown", f"{ABSENT}the pods wait unless a PersistentVolume has this class"),
    ],
    ids=["a volume of the class", "no volume", "the user may not list volumes"],
)
def test_a_live_cluster_is_asked_for_volumes_of_a_class_that_does_not_exist(volumes, answer, said, tmp_path, capsys):
    server = ApiServer()
    kinds = (
        ("persistentvolumeclaims", "PersistentVolumeClaim", True),
        ("persistentvolumes", "PersistentVolume", False),
    )
    server.answers["/api/v1"] = resources(*kinds, ("namespaces", "Namespace", False), ("configmaps", "ConfigMap", True))
    for place in ("", "/namespaces/claimgate-system"):
        server.answers[f"/api/v1{place}/configmaps"] = page()
    server.answers["/api/v1/namespaces"] = page({"metadata": {"name": "team", "resourceVersion": "1"}})
    server.answers["/api/v1/persistentvolumeclaims"] = page(CLAIM)
    server.answers["/api/v1/persistentvolumes"] = volumes
    server.answers["/apis/storage.k8s.io/v1"] = resources(("storageclasses", "StorageClass", False))
    server.answers["/apis/storage.k8s.io/v1/storageclasses"] = page()
    (tmp_path / "job.yaml").write_text(json.dumps(WITH_VOLUME))
    try:
        _, [told] = simulated(capsys, tmp_path / "job.yaml", "--kubeconfig", server.kubeconfig(tmp_path))
    finally:
        server.shutdown()
        server.server_close()
    assert (told["answer"], [said in each["message"] for each in told["aspects"]["storage"]]) == (
        answer,
        [True] if said else [],
    )
