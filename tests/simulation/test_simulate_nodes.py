"""`claimgate simulate` compares pods and claims with the nodes and devices of the cluster."""

import pytest

from tests.simulation.answers import NEEDING, NODE, against, obstacles_and_questions, problems_and_questions, simulated


@pytest.mark.parametrize(("gpus", "code", "rules"), [("2", 0, {}), ("4", 1, {"nodes": ["node-devices/largest-node"]})])
def test_nodes(gpus, code, rules, tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(NODE.replace("GPUS", f'"{gpus}"'))
    got, [told] = simulated(capsys, tmp_path / "pod.yaml", "--context-is-whole")
    assert (got, against(told)) == (code, rules)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("topologySpreadConstraints: [{maxSkew: 1}]", "topologySpreadConstraints"),
        ("tolerations: [{operator: Exists}]", ""),
        ("runtimeClassName: nvidia", "not compared for taint nvidia.com/gpu:NoSchedule (tolerated only if"),
    ],
)
def test_requirements_not_compared_with_nodes_are_reported(spec, said, tmp_path, capsys):
    taints = "spec: {taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}\nstatus:"
    text = NODE.replace("GPUS", '"1"').replace("status:", taints, 1)
    runtime_class = "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: nvidia}\nhandler: nvidia\n"
    (tmp_path / "job.yaml").write_text(text.replace("restartPolicy", f"{spec}\n      restartPolicy") + runtime_class)
    code, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    whats = [each["what"] for each in told["unknown"]]
    assert code == 0
    assert said in " ".join(whats) if said else whats == []


@pytest.mark.parametrize(("memory", "said"), [("3Gi", ""), ("6Gi", "nodes have room for 1 of 2 pods at the same time")])
def test_pods_with_more_memory_than_the_nodes_make_the_answer_unknown(memory, said, tmp_path, capsys):
    resources = f", resources: {{requests: {{memory: {memory}}}, limits: {{nvidia.com/gpu: 1}}}}"
    text = NEEDING.replace("CONTAINER", resources).replace("SPEC", "")
    (tmp_path / "job.yaml").write_text(text.replace('pods: "10"', 'pods: "10", nvidia.com/gpu: "2"'))
    _, questions = problems_and_questions(capsys, tmp_path / "job.yaml", "Deployment team/a")
    assert said in " ".join(questions) if said else questions == []


CLAIMING = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: team}
spec:
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
      containers: [{name: a, image: a, command: [a], resources: {claims: [{name: gpus}]}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: team}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: COUNT}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices: [{name: a}, {name: b}]
---
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}}
"""


@pytest.mark.parametrize(("count", "code", "lacks"), [(2, 0, False), (4, 3, True)])
def test_a_claim_with_more_devices_than_the_cluster_has_is_not_reported_as_starting(
    count, code, lacks, tmp_path, capsys
):
    (tmp_path / "job.yaml").write_text(CLAIMING.replace("COUNT", str(count)))
    got, told = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    answer = next(each for each in told if each["object"] == "Job team/a")
    whats = [each["what"] for each in answer["unknown"]]
    assert (got, any("requests 4 devices" in what for what in whats)) == (code, lacks)


NODE_OF_TODAY = """
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {disk: ssd}}
spec: SPEC
status: {allocatable: {nvidia.com/gpu: "2", cpu: "8", memory: 64Gi}, conditions: [CONDITION]}
---
"""
READY, NOT_READY, GONE = (f'{{type: Ready, status: "{each}"}}' for each in ("True", "False", "Unknown"))
TOLERATING = "tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]"
TODAY = "no current node fits the pods: node a "
GPU = "resources: {limits: {nvidia.com/gpu: 1}}"


@pytest.mark.parametrize(
    ("nodes", "pod", "resources", "answer", "said"),
    [
        pytest.param([("{}", READY)], "", GPU, "can-start", "", id="Ready"),
        pytest.param([("{}", "")], "", GPU, "can-start", "", id="no conditions in the file"),
        pytest.param([("{}", NOT_READY)], "", GPU, "unknown", f"{TODAY}is not Ready", id="not Ready"),
        pytest.param([("{}", GONE)], "", GPU, "unknown", f"{TODAY}is not Ready", id="gone"),
        pytest.param([("{unschedulable: true}", READY)], "", GPU, "unknown", f"{TODAY}is cordoned", id="cordoned"),
        pytest.param([("{unschedulable: true}", READY)], TOLERATING, GPU, "can-start", "", id="a cordon is tolerated"),
        pytest.param([("{}", '{type: DiskPressure, status: "True"}')], "", GPU, "unknown", f"{TODAY}has DiskPressure", id="disk pressure"),
        pytest.param([("{taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]}", READY)], "", GPU, "unknown", f"{TODAY}is not Ready", id="the taint of a condition"),
        pytest.param([("{unschedulable: true}", READY), ("{}", NOT_READY)], "", GPU, "unknown", f"{TODAY}is cordoned, node b is not Ready", id="two nodes"),
        pytest.param([("{unschedulable: true}", READY), ("{}", READY)], "", GPU, "can-start", "", id="one of two nodes"),
        pytest.param([("{unschedulable: true}", READY)], "", "", "unknown", f"{TODAY}is cordoned", id="a Pod without devices"),
        pytest.param([("{unschedulable: true}", READY)], "nodeName: a", "", "can-start", "", id="nodeName ignores a cordon"),
        pytest.param([("{}", NOT_READY)], "nodeName: a", "", "unknown", "nodeName is a, and this node is not Ready", id="nodeName of a node that is not Ready"),
        pytest.param([("{}", READY)], "nodeName: c", "", "unknown", "nodeName is c, which is not a node of the cluster", id="nodeName of no node"),
        pytest.param([("{}", READY)], "nodeName: a", GPU.replace("1", "4"), "unknown", "nodeName is a, but this node does not have what the pods require", id="nodeName of a small node"),
        pytest.param([("{}", READY)], "nodeSelector: {disk: hdd}", "", "never", "spec.nodeSelector.disk: selects `disk=hdd`, which no node has; nodes have `ssd` (nodes in FILE)", id="labels of a Pod without devices"),
        pytest.param([("{}", READY)], "nodeSelector: {disk: ssd}", "", "can-start", "", id="a label that the node has"),
        pytest.param([("{}", READY)], "", "resources: {requests: {cpu: 9}}", "never", ": requests 9 cpu for one pod, but nodes have at most 8 cpu (nodes in FILE), so no node fits", id="CPUs of a Pod without devices"),
        pytest.param([("{taints: [{key: t, effect: NoSchedule}]}", READY)], "", "", "never", "spec: does not tolerate the taint `t:NoSchedule` of node a (nodes in FILE), and no other node has what the pod needs, so no node fits", id="a taint, and a Pod without devices"),
    ],
)  # fmt: skip
def test_pods_are_compared_with_nodes_as_they_are_today(nodes, pod, resources, answer, said, tmp_path, capsys):
    text = "".join(
        NODE_OF_TODAY.replace("NAME", name).replace("SPEC", spec).replace("CONDITION", condition)
        for name, (spec, condition) in zip("ab", nodes, strict=False)
    )
    fields = ", ".join(filter(None, (pod, f"containers: [{{name: main, image: x, {resources}}}]")))
    file = tmp_path / "pod.yaml"
    file.write_text(f"{text}{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{{fields}}}}}\n")
    code, [told] = simulated(capsys, file, "--context-is-whole")
    whats = obstacles_and_questions(told, file)
    assert (told["answer"], whats) == (answer, [said] if said else []), "see _node_questions and node_offers.py"
    assert code == {"can-start": 0, "unknown": 3, "never": 1}[answer]


EIGHT = "{name: a, image: x, resources: {limits: {nvidia.com/gpu: 8}}}"
LARGEST = "requests 8 `nvidia.com/gpu` for one pod, but the largest node has 2"
PARTS = "makes the pods from parts, which are not read"
OF_JOB = f"{{template: {{spec: {{restartPolicy: Never, containers: [{EIGHT}]}}}}}}"


@pytest.mark.parametrize(
    ("kind", "spec", "answer", "said"),
    [
        ("apps.nvidia.com/v1alpha1 NIMService", "{image: {repository: a, tag: b}, authSecret: c, resources: {limits: {nvidia.com/gpu: 8}}}", "unknown", [f"the controller of NIMService {PARTS}", f"spec.resources: {LARGEST}"]),
        ("apps.nvidia.com/v1alpha1 NIMService", "{image: {repository: a, tag: b}, authSecret: c, resources: {limits: {nvidia.com/gpu: 2}}}", "unknown", [f"the controller of NIMService {PARTS}"]),
        ("serving.kserve.io/v1alpha1 LLMInferenceService", f"{{model: {{uri: hf://a/b}}, template: {{containers: [{EIGHT}]}}}}", "unknown", [f"the controller of LLMInferenceService {PARTS}", f"spec.template.containers[0].resources: {LARGEST}"]),
        ("nvidia.com/v1alpha1 DynamoGraphDeployment", f"{{services: {{w: {{extraPodSpec: {{mainContainer: {EIGHT}}}}}}}}}", "unknown", [f"the controller of DynamoGraphDeployment {PARTS}", f"spec.services.w.extraPodSpec.mainContainer.resources: {LARGEST}"]),
        ("jobset.x-k8s.io/v1alpha2 JobSet", "{replicatedJobs: []}", "unknown", ["this JobSet has no whole pod template"]),
        ("keda.sh/v1alpha1 ScaledJob", f"{{jobTargetRef: {OF_JOB}, triggers: []}}", "never", [f"spec.jobTargetRef.template: {LARGEST} (nodes in FILE), so no node fits"]),
        ("workload.codeflare.dev/v1beta2 AppWrapper", f"{{components: [{{template: {{apiVersion: batch/v1, kind: Job, metadata: {{name: b}}, spec: {OF_JOB}}}}}]}}", "never", [f"spec.components[0].template.spec.template: {LARGEST} (nodes in FILE), so no node fits"]),
        ("apps/v1 DaemonSet", f"{{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{EIGHT}]}}}}}}", "nothing-found", ["nodes not compared with pods of a DaemonSet"]),
    ],
    ids=["NIMService", "NIMService that fits", "LLMInferenceService", "DynamoGraphDeployment", "JobSet", "ScaledJob", "AppWrapper", "DaemonSet"],
)  # fmt: skip
def test_kinds_that_no_rule_compares_with_nodes_are_compared_or_named(kind, spec, answer, said, tmp_path, capsys):
    node = NODE_OF_TODAY.replace("NAME", "a").replace("SPEC", "{}").replace("CONDITION", READY)
    version, _, name = kind.partition(" ")
    file = tmp_path / "job.yaml"
    file.write_text(f"{node}{{apiVersion: {version}, kind: {name}, metadata: {{name: j}}, spec: {spec}}}\n")
    _, [told] = simulated(capsys, file, "--context-is-whole")
    whats = obstacles_and_questions(told, file)
    assert (told["answer"], whats) == (answer, said), "see _node_questions and _questions_of_amounts"


def test_a_pod_with_a_node_and_a_share_of_a_gpu_does_not_start(tmp_path, capsys):
    node = NODE_OF_TODAY.replace("NAME", "a").replace("SPEC", "{}").replace("CONDITION", READY)
    container = "{name: main, image: x, resources: {limits: {volcano.sh/vgpu-number: 1}}}"
    spec = f"{{nodeName: a, schedulerName: volcano, containers: [{container}]}}"
    pod = f"{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {spec}}}\n"
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}}\n---\n"
    (tmp_path / "pod.yaml").write_text(queue + node.replace("nvidia.com/gpu", "volcano.sh/vgpu-number") + pod)
    code, [told] = simulated(capsys, tmp_path / "pod.yaml", "--context-is-whole")
    says = "spec.nodeName: names node a, but Volcano has to choose node and card, so the pod fails on the node"
    assert (code, obstacles_and_questions(told, tmp_path)) == (1, [says]), "see _questions_of_named_node"


def test_an_owner_of_nodes_is_named(tmp_path, capsys):
    node = NODE_OF_TODAY.replace("NAME", "a").replace("SPEC", "{}").replace("CONDITION", READY)
    inference = f"{{template: {{spec: {{containers: [{EIGHT}]}}}}}}"
    workspace = f"{{apiVersion: kaito.sh/v1beta1, kind: Workspace, metadata: {{name: w}}, inference: {inference}}}\n"
    (tmp_path / "job.yaml").write_text(node + workspace)
    _, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert [each["what"] for each in told["unknown"]] == ["nodes not compared: KAITO adds nodes for the pods"]


JOB_OF_THREE = """
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {parallelism: 3, completions: 3, template: {spec: {restartPolicy: Never, containers: [CONTAINER]}}}
"""
JOB_SET_OF_THREE = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: j}
spec: {replicatedJobs: [{name: w, replicas: 3, template: {spec: {template: {spec: {SCHEDULER, restartPolicy: Never, containers: [CONTAINER]}}}}}]}
"""
TRAIN_JOB_OF_THREE = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j}
spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: 3, image: x, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}}
"""
TRAIN_JOB_OF_THREE += """---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}
  template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: x}]}}}}}]}}
"""
DEPLOYMENT_OF_THREE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: j}
spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [CONTAINER]}}}
"""
ROOM = ["nodes have room for 2 of 3 pods at the same time"]


@pytest.mark.parametrize(
    ("job", "answer", "rules", "questions"),
    [
        pytest.param(JOB_OF_THREE, "nothing-found", [], ROOM, id="Job"),
        pytest.param(JOB_SET_OF_THREE.replace("SCHEDULER, ", ""), "nothing-found", [], ROOM, id="JobSet"),
        pytest.param(JOB_SET_OF_THREE.replace("SCHEDULER", "schedulerName: kai-scheduler"), "never", ["node-devices/all-pods"], ["scheduler kai-scheduler is not known to claimgate"], id="JobSet that KAI starts together"),
        pytest.param(TRAIN_JOB_OF_THREE, "never", ["node-devices/all-pods"], [], id="TrainJob"),
        pytest.param(DEPLOYMENT_OF_THREE, "nothing-found", [], ROOM, id="Deployment"),
    ],
)  # fmt: skip
def test_jobs_with_more_pods_than_the_nodes_take(job, answer, rules, questions, tmp_path, capsys):
    node = NODE_OF_TODAY.replace("NAME", "a").replace("SPEC", "{}").replace("CONDITION", READY)
    text = job.replace("CONTAINER", "{name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}")
    file = tmp_path / "job.yaml"
    trainer = "{apiVersion: v1, kind: ConfigMap, metadata: {name: trainer, namespace: claimgate-system}, data: {trainer: '2.1'}}"
    file.write_text(f"{node}{trainer}\n---{text}")
    _, [told] = simulated(capsys, file, "--context-is-whole")
    said = (told["answer"], against(told).get("nodes", []), [each["what"] for each in told["unknown"]])
    assert said == (answer, rules, questions), "see pods_that_start_together in node_devices.py"


def test_a_missing_device_is_unknown_if_nodes_may_be_added(tmp_path, capsys):
    pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: gpu}\nspec: {template: {spec: {}}}\n---"
    (tmp_path / "job.yaml").write_text(pool + NODE.replace("GPUS", '"4"'))
    code, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (code, told["answer"]) == (3, "unknown")
    what = "no current node has 4 nvidia.com/gpu, and NodePool gpu may add a matching node"
    assert {"what": what, "aspects": ["nodes"], "rules": ["node-devices/largest-node"]} in told["unknown"]


def test_a_node_of_a_file_may_have_no_status(tmp_path, capsys):
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: bare}\n---"
    (tmp_path / "job.yaml").write_text(node + NODE.replace("GPUS", '"4"'))
    code, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (code, told["answer"], against(told)) == (0, "nothing-found", {})
    assert told["unknown"][0]["what"] == "nodes not compared: node bare has no status.allocatable"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (NODE.replace("GPUS", '"1", vpc.amazonaws.com/efa: "32"'), "node-devices/offered"),
        (NODE.replace("GPUS", '"1"').replace("restartPolicy", "nodeSelector: {disk: ssd}\n      restartPolicy"),
         "node-devices/labels"),
    ],
)  # fmt: skip
def test_resources_outside_the_table_of_devices_and_labels_are_compared(text, rule, tmp_path, capsys):
    (tmp_path / "job.yaml").write_text(text)
    code, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (code, told["answer"], against(told)) == (1, "never", {"nodes": [rule]})
