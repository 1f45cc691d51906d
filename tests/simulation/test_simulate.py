"""`claimgate simulate`: the answer, the obstacles, the exit code; golden files of its text."""

import copy
import json
import re
from pathlib import Path

import pytest

from tests.golden import compare_with_golden_file
from tests.literals import validating
from webhook.cli import run_command_line
from webhook.facts.subject import SHIPPED
from webhook.simulation.aspects import _RULES, ASPECTS, aspect_of, groups
from webhook.workloads.table import load_table
from webhook.yamltext import yamlfile

HERE = Path(__file__).parents[1] / "data" / "simulation"
EXAMPLES = Path(__file__).parents[2] / "examples" / "research-team"
WHOLE = ("--context", str(EXAMPLES / "cluster"), "--context-is-whole")
NODES = ("--context", str(HERE / "nodes.yaml"))


def simulated(capsys, *arguments):
    code = run_command_line(["simulate", *map(str, arguments), "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


TOO_MANY = {"quota": ["kueue-never/exceeds-max-quota"], "nodes": ["node-devices/all-pods"]}


def against(answer):
    return {aspect: [each["rule"] for each in listed] for aspect, listed in answer["aspects"].items() if listed}


@pytest.mark.parametrize(
    ("job", "code", "answer", "rules"),
    [
        ("good/pytorchjob", 0, "can-start", {}),
        ("good/trainjob", 0, "nothing-found", {}),
        ("good/inference", 0, "can-start", {}),
        ("broken/mpijob-slots", 1, "refused", {"launcher": ["training-job/slots-for-ranks"]}),
        ("broken/pytorchjob-too-many-gpus", 1, "never", TOO_MANY),
        ("broken/trainjob-queue", 1, "never", {"queue": ["kueue-not-now/local-queue-missing"]}),
        ("broken/volcano-job-quota", 1, "never", {"quota": ["volcano-job/capability"]}),
        ("broken/volcano-job-queue", 1, "refused", {"queue": ["volcano-job/queue-exists"]}),
        ("broken/pytorchjob-storage", 3, "unknown", {"storage": ["storage/read-write-once"]}),
        ("broken/trainjob-processes", 0, "nothing-found", {}),
        ("broken/pytorchjob-processes", 0, "can-start", {}),
    ],
)
def test_jobs_of_a_team_are_listed(job, code, answer, rules, capsys):
    got, [told] = simulated(capsys, EXAMPLES / f"{job}.yaml", *WHOLE, *NODES)
    assert (got, told["answer"], against(told)) == (code, answer, rules)
    assert told["starts"] is (None if answer in ("nothing-found", "unknown") else code == 0)


def test_a_job_with_a_value_of_a_wrong_type_is_refused(capsys, tmp_path):
    patch = {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": [1]}}]}}}
    patches = [{"manager": "example.com/a", "trainingRuntimeSpec": patch}]
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "j", "namespace": "team"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "runtimePatches": patches},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    got, [told] = simulated(capsys, tmp_path / "job.json")
    assert (got, told["answer"], against(told)) == (1, "refused", {"admission": ["object-shape/wrong-type"]})


@pytest.mark.parametrize("job", ["good/pytorchjob", "good/trainjob", "good/inference", "broken/pytorchjob-processes"])
def test_a_job_without_known_nodes_is_not_reported_as_starting(job, capsys):
    got, [told] = simulated(capsys, EXAMPLES / f"{job}.yaml", *WHOLE)
    assert (got, told["answer"], told["starts"]) == (0, "nothing-found", None)
    assert told["unknown"] == [{"what": "nodes not compared: no node was read", "aspects": ["nodes"], "rules": []}]
    assert run_command_line(["simulate", str(EXAMPLES / f"{job}.yaml"), *WHOLE]) == 0
    said = capsys.readouterr().out
    assert "nothing found that stops it; nodes not compared: no node was read" in " ".join(said.split())
    assert "can start" not in said


def test_problems_that_do_not_prevent_the_start_are_listed_under_besides(capsys):
    _, [told] = simulated(capsys, EXAMPLES / "broken" / "trainjob-processes.yaml", *WHOLE)
    assert [each["rule"] for each in told["besides"]] == ["num-proc-per-node/not-set"]


def test_objects_that_were_not_looked_up_make_the_answer_unknown(capsys):
    code, [told] = simulated(capsys, EXAMPLES / "good" / "mpijob.yaml")
    assert (code, told["answer"], told["starts"]) == (3, "unknown", None)
    what = {"what": "LocalQueue training not found", "aspects": ["quota"], "rules": ["kueue-never/exceeds-max-quota"]}
    assert what in told["unknown"]


def test_the_queue_and_the_counted_requests_are_reported(capsys):
    _, [told] = simulated(capsys, EXAMPLES / "broken" / "pytorchjob-too-many-gpus.yaml", *WHOLE)
    assert told["queue"] == {
        "localQueue": "training",
        "clusterQueue": "research",
        "cohort": "science",
        "volcanoQueue": "",
    }
    assert [(each["podSet"], each["pods"], each["devices"]) for each in told["asks"]] == [
        ("master", 1, 4),
        ("worker", 7, 4),
    ]
    assert told["asks"][1]["requests"]["nvidia.com/gpu"] == "28"
    assert "LocalQueue research/training" in told["lookedAt"]


WAITS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: other, namespace: research}
spec: {queueName: training, podSets: [{name: main, count: 1, template: {spec: {containers: []}}}]}
status:
  conditions: [{type: QuotaReserved, status: "True", reason: x, message: x, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  admission:
    clusterQueue: research
    podSetAssignments:
    - {name: main, count: 1, flavors: {nvidia.com/gpu: a100}, resourceUsage: {nvidia.com/gpu: "15"}}
"""


def test_a_job_waits_for_quota_in_use(tmp_path, capsys):
    (tmp_path / "workload.yaml").write_text(WAITS)
    code, [told] = simulated(capsys, EXAMPLES / "good" / "pytorchjob.yaml", *WHOLE, *NODES, "--context", tmp_path)
    assert (code, told["answer"], told["starts"]) == (0, "waits", True)
    assert against(told) == {"quota": ["kueue-not-now/waiting-for-quota"]}


NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {nvidia.com/gpu: "2", cpu: "8", memory: 64Gi, pods: "110"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: GPUS, cpu: "1", memory: 1Gi}}}]
"""


@pytest.mark.parametrize(("gpus", "code", "rules"), [("2", 0, {}), ("4", 1, {"nodes": ["node-devices/largest-node"]})])
def test_nodes(gpus, code, rules, tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(NODE.replace("GPUS", f'"{gpus}"'))
    got, [told] = simulated(capsys, tmp_path / "pod.yaml", "--context-is-whole")
    assert (got, against(told)) == (code, rules)


def test_the_worst_of_several_jobs_counts(tmp_path, capsys):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: fine}\nspec: {containers: [{name: main, image: x}]}\n---\n"
    (tmp_path / "jobs.yaml").write_text(pod + NODE.replace("GPUS", '"4"'))
    code, told = simulated(capsys, tmp_path / "jobs.yaml", "--context-is-whole")
    assert (code, [each["answer"] for each in told]) == (1, ["can-start", "never"])


def test_a_job_without_a_namespace_is_in_the_given_namespace(capsys, tmp_path):
    text = (EXAMPLES / "good" / "pytorchjob.yaml").read_text()
    (tmp_path / "job.yaml").write_text(text.replace("namespace: research", "labels2: {}").replace("labels2: {}, ", ""))
    _, [told] = simulated(capsys, tmp_path / "job.yaml", "-n", "research", *WHOLE)
    assert told["object"].startswith("PyTorchJob research/")


RUNTIME = "apiVersion: serving.kserve.io/v1alpha1\nkind: ServingRuntime\nmetadata: {name: a}\nspec: {containers: []}\n"


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        pytest.param("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n", (), "no job found: no object of this file makes pods", id="no job"),
        pytest.param("kind: [\n", (), "not YAML", id="not YAML"),
        pytest.param("", (), "no job found; expected YAML, JSON or NDJSON", id="nothing"),
        pytest.param(RUNTIME, (), "no job found", id="only a runtime"),
        pytest.param("a: 1\n", (), "apiVersion", id="not an object"),
        pytest.param(NODE, ("--live", "--context", "x"), "--live has the whole cluster", id="--live and files"),
        pytest.param(NODE, ("-o", "svg"), "unknown format `svg`, expected one of text, json", id="a format"),
    ],
)  # fmt: skip
def test_input_that_cannot_be_simulated_is_exit_2(text, arguments, message, tmp_path, capsys):
    (tmp_path / "x.yaml").write_text(text)
    assert run_command_line(["simulate", str(tmp_path / "x.yaml"), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("job", ["good/pytorchjob", "broken/pytorchjob-too-many-gpus", "broken/trainjob-processes"])
def test_the_text_output_of_simulate(job, monkeypatch, capsys, request):
    monkeypatch.chdir(EXAMPLES.parent.parent)
    monkeypatch.setenv("COLUMNS", "100")
    context = ("--context", "examples/research-team/cluster", *(["--context-is-whole"] if "broken" in job else []))
    run_command_line(["simulate", f"examples/research-team/{job}.yaml", *context])
    compare_with_golden_file(HERE / f"{job.replace('/', '-')}.txt", capsys.readouterr().out, request.config)


POD = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
LISTED = re.compile(r"(\[\]|\{\})")


def put(obj, path, value):
    """Set a value at a path of the workload table. Each list and map on the path gets one element."""
    fields, listed, rest = (*LISTED.split(path, maxsplit=1), "", "")[:3]
    *first, last = [each for each in fields.split(".") if each]
    for each in first:
        obj = obj.setdefault(each, {})
    if not listed:
        obj[last] = value
    elif listed == "[]":
        put(obj.setdefault(last, [{"name": "a", "replicas": 1}])[0], rest, value)
    else:
        put(obj.setdefault(last, {}).setdefault("Worker", {}), rest, value)


def smallest_object(row):
    obj = {"apiVersion": row.gvk.api_version, "kind": row.kind, "metadata": {"name": "a"}}
    if row.namespaced:
        obj["metadata"]["namespace"] = "team"
    for rule in row.podSets:
        pod = copy.deepcopy(POD)
        inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": pod}
        values = {"template": {"spec": pod}, "podSpec": pod, "object": inner}
        if rule.template:
            put(obj, rule.template, values[rule.embeds])
        else:
            obj["spec"] = pod
    for rule in row.resources:
        device = {"name": "nvidia.com/gpu", "quantity": 1}
        put(obj, rule.path, device if rule.holds == "device" else {"limits": {"nvidia.com/gpu": "1"}})
    obj.setdefault("spec", {})
    return obj


OTHERS = {
    "DynamoGraphDeploymentRequest": {"apiVersion": "nvidia.com/v1beta1", "spec": {"model": "a"}},
    "KAIJob": {"apiVersion": "example.com/v1", "spec": {"template": {"spec": POD}}},
    "ModelDeployment": {"apiVersion": "core.kubeai.org/v1", "spec": {"replicas": 1}},
    "FlyteWorkflow": {"apiVersion": "flyte.lyft.com/v1alpha1", "spec": {"id": "x"}},
}


@pytest.fixture(scope="module")
def answers_about_every_kind(tmp_path_factory):
    """Return the answers about the smallest object of each kind, by kind and line."""
    folder = tmp_path_factory.mktemp("kinds")
    answers = {}
    others = [{**obj, "kind": kind, "metadata": {"name": "a", "namespace": "team"}} for kind, obj in OTHERS.items()]
    texts = [json.dumps(smallest_object(row)) for row in load_table().rows], [json.dumps(each) for each in others]
    for number, listed in enumerate(texts):
        (folder / f"{number}.yaml").write_text("\n---\n".join(listed))
        output = folder / f"{number}.json"
        run_command_line(["simulate", str(folder / f"{number}.yaml"), "--context-is-whole", "-o", f"json={output}"])
        for told in json.loads(output.read_text()):
            answers[told["object"].split()[0], told["line"]] = told
    return answers


def test_no_job_is_reported_as_starting_without_known_nodes(answers_about_every_kind):
    assert {key for key, told in answers_about_every_kind.items() if told["answer"] in ("can-start", "waits")} == set()
    assert {key[0] for key in answers_about_every_kind} >= {"Pod", "Job", "TrainJob", *OTHERS}


def test_answers_about_kinds_with_unread_pods_name_the_kind(answers_about_every_kind):
    unread = {
        key: told["unknown"][0]["what"]
        for key, told in answers_about_every_kind.items()
        if told["unknown"] and "not read" in told["unknown"][0]["what"]
    }
    assert all(kind in what for (kind, _), what in unread.items())
    assert {kind for kind, _ in unread} == {
        *OTHERS,
        *("CacheServer", "CronWorkflow", "DynamoComponentDeployment", "DynamoGraphDeployment"),
        *("FlinkBlueGreenDeployment", "FlinkDeployment", "InferenceGraph", "InferenceService", "JobFlow"),
        *("LLMInferenceService", "LoginSet", "MiniCluster", "Model", "ModelBooster", "NIMBuild", "NIMCache"),
        *("NIMPipeline", "NIMService", "NemoCustomizer", "NemoDatastore", "NemoEntitystore", "NemoEvaluator"),
        *("NemoGuardrail", "NodeSet", "PipelineRun", "Playground", "ScheduledSparkApplication", "SeldonDeployment"),
        *("Server", "Service", "SparkApplication", "SparkConnect", "TaskRun", "VLLMRouter", "VLLMRuntime", "Workflow"),
    }
    answers = {answers_about_every_kind[key]["answer"] for key in unread}
    assert answers <= {"unknown", "refused"}  # a rule about the kind itself may refuse it


def test_a_part_of_an_object_that_is_not_read_is_named(tmp_path, capsys):
    service = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: a, namespace: team}
spec:
  predictor: {model: {modelFormat: {name: vllm}, resources: {limits: {nvidia.com/gpu: "1"}}}}
  transformer: {containers: [{name: main, image: x}]}
"""
    (tmp_path / "service.yaml").write_text(service)
    code, [told] = simulated(capsys, tmp_path / "service.yaml")
    assert (code, told["unknown"][0]["what"]) == (3, "the pods of spec.predictor are not read")


@pytest.mark.parametrize(
    ("expression", "annotations", "told", "has_fix"),
    [
        (
            "authorizer.group('x').resource('ys').check('use').allowed()",
            {},
            "expression 'authorizer.group('x').resource('ys').check('use').allowed()' resulted in error: authorizer: ",
            False,
        ),
        ("namespaceObject.metadata.name == 'a'", {}, "Namespace team is in no file", True),
        ("true", {"expand": "pods"}, "InferenceService has no whole pod template at spec.predictor (v)", False),
    ],
)
def test_a_policy_of_a_site_that_is_not_evaluated_makes_the_answer_unknown(
    expression, annotations, told, has_fix, tmp_path, capsys
):
    rule = {"apiGroups": ["", "serving.kserve.io"], "apiVersions": ["*"], "operations": ["CREATE"]}
    every = {**rule, "resources": ["pods"] if annotations else ["inferenceservices"]}
    policies = validating(expression, rule=every, annotations=annotations)
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, policies)))
    spec = {"predictor": {"model": {"modelFormat": {"name": "vllm"}}}}
    metadata = {"name": "a", "namespace": "team"}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": metadata,
        "spec": spec,
    }
    (tmp_path / "service.yaml").write_text(yamlfile.dump(service))
    files = ["--only", str(tmp_path / "policy.yaml"), str(tmp_path / "service.yaml")]
    assert run_command_line(["simulate", *files]) == 3
    text = capsys.readouterr().out
    assert "✔ admission" not in text
    assert f"\nnot known: {told}" in text
    assert ("--context" in text) is has_fix


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{schedulerName: own-scheduler, CONTAINERS}", "scheduler own-scheduler is not known to claimgate"),
        ("{schedulerName: default-scheduler, CONTAINERS}", ""),
        ("{schedulerName: volcano, CONTAINERS}", ""),
    ],
)
def test_an_unknown_scheduler_makes_queue_and_quota_unknown(text, said, tmp_path, capsys):
    containers = "containers: [{name: main, image: x}]"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {text.replace('CONTAINERS', containers)}\n"
    (tmp_path / "pod.yaml").write_text(pod)
    code, [told] = simulated(capsys, tmp_path / "pod.yaml", *NODES, "--context-is-whole")
    assert [each["what"] for each in told["unknown"] if each["aspects"] == ["queue", "quota"]] == (
        [said] if said else []
    )
    assert (code, told["answer"]) == ((3, "unknown") if said else (0, "can-start"))


@pytest.mark.parametrize(
    ("kind", "field", "labels", "said"),
    [
        ("batch/v1 Job", "suspend: true", "{}", "spec.suspend is true, so no pod starts before someone changes it"),
        ("batch/v1 Job", "suspend: false", "{}", ""),
        ("batch/v1 Job", "suspend: true", "{kueue.x-k8s.io/queue-name: a}", ""),
        ("apps/v1 Deployment", "paused: true", "{}", "spec.paused is true, so no pod starts before someone changes it"),
    ],
)
def test_suspended_jobs_without_a_queue_are_not_reported_as_starting(kind, field, labels, said, tmp_path, capsys):
    version, _, name = kind.partition(" ")
    template = "{metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}"
    if name == "Deployment":
        template = f"{template.replace('restartPolicy: Never, ', '')}, selector: {{matchLabels: {{a: b}}}}"
    metadata = f"{{name: a, namespace: team, labels: {labels}}}"
    text = f"{{apiVersion: {version}, kind: {name}, metadata: {metadata}, spec: {{{field}, template: {template}}}}}"
    (tmp_path / "job.yaml").write_text(text)
    _, [told] = simulated(capsys, tmp_path / "job.yaml", *NODES, "--context-is-whole")
    assert [each["what"] for each in told["unknown"] if each["aspects"] == ["queue"]] == ([said] if said else [])
    assert (told["answer"] == "unknown") is bool(said)


def test_a_pod_with_a_scheduling_gate_is_not_reported_as_starting(tmp_path, capsys):
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {schedulingGates: [{name: b/c}], containers: CS}}"
    (tmp_path / "pod.yaml").write_text(pod.replace("CS", "[{name: main, image: x}]"))
    _, [told] = simulated(capsys, tmp_path / "pod.yaml", *NODES, "--context-is-whole")
    whats = [each["what"] for each in told["unknown"]]
    assert whats == ["schedulingGates keep the pods from the scheduler until someone removes the gates"]


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
    ("spec", "said"),
    [
        ("topologySpreadConstraints: [{maxSkew: 1}]", "topologySpreadConstraints"),
        ("tolerations: [{operator: Exists}]", ""),
        ("runtimeClassName: nvidia", "taints"),
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


def problems_and_questions(capsys, file, job):
    """Return what `simulate` reports and asks about a job, if the files are the whole cluster."""
    _, told = simulated(capsys, file, "--context-is-whole")
    answer = next(each for each in told if each["object"] == job)
    problems = [each["message"] for listed in answer["aspects"].values() for each in listed]
    return problems, [each["what"] for each in answer["unknown"]]


NEEDING = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: team}
spec:
  replicas: 2
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: a, image: a, command: [a]CONTAINER}]
SPEC---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: team}
data: {a: "1"}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {memory: 1Gi}}
---
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}}
"""


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


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("kind: ResourceQuota, spec: {hard: {pods: 9}}", ""),
        ("kind: ResourceQuota, spec: {hard: {pods: 9}, scopes: [NotTerminating]}", "ResourceQuota `o` has scopes"),
        (
            "kind: LimitRange, spec: {limits: [{type: Container, maxLimitRequestRatio: {cpu: 2}}]}",
            "maxLimitRequestRatio",
        ),
    ],
)
def test_limits_of_a_namespace_that_no_rule_compares_make_the_answer_unknown(other, said, tmp_path, capsys):
    text = NEEDING.replace("CONTAINER", "").replace("SPEC", "")
    text += f"---\n{{apiVersion: v1, metadata: {{name: o, namespace: team}}, {other}}}\n"
    (tmp_path / "job.yaml").write_text(text)
    _, questions = problems_and_questions(capsys, tmp_path / "job.yaml", "Deployment team/a")
    assert said in " ".join(questions) if said else questions == []


@pytest.mark.parametrize(("memory", "said"), [("3Gi", ""), ("6Gi", "nodes have room for 1 of 2 pods at the same time")])
def test_pods_with_more_memory_than_the_nodes_make_the_answer_unknown(memory, said, tmp_path, capsys):
    resources = f", resources: {{requests: {{memory: {memory}}}, limits: {{nvidia.com/gpu: 1}}}}"
    text = NEEDING.replace("CONTAINER", resources).replace("SPEC", "")
    (tmp_path / "job.yaml").write_text(text.replace('pods: "10"', 'pods: "10", nvidia.com/gpu: "2"'))
    _, questions = problems_and_questions(capsys, tmp_path / "job.yaml", "Deployment team/a")
    assert said in " ".join(questions) if said else questions == []


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
        ("storageClassName: fast", "a", "StorageClass `fast` of PersistentVolumeClaim `models` does not exist"),
        ("resources: {}", "a", ""),
    ],
)
def test_a_volume_that_the_pods_may_not_get_makes_the_answer_unknown(claim, node, said, tmp_path, capsys):
    (tmp_path / "job.yaml").write_text(MOUNTING.replace("CLAIM", claim).replace("NODE", node))
    problems, questions = problems_and_questions(capsys, tmp_path / "job.yaml", "Job team/a")
    texts = [*problems, *questions]
    assert said in " ".join(texts) if said else texts == []


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


def obstacles_and_questions(told, file):
    """Return the obstacles with their paths, and then the open questions."""
    obstacles = [f"{each['path']}: {each['message']}" for listed in told["aspects"].values() for each in listed]
    return [each.replace(str(file), "FILE") for each in (*obstacles, *(one["what"] for one in told["unknown"]))]


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
TODAY = "no node of today takes the pods: node a "
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
        ("keda.sh/v1alpha1 ScaledJob", f"{{jobTargetRef: {OF_JOB}, triggers: []}}", "never", [f"spec.jobTargetRef.template: {LARGEST} (nodes in FILE), so no node fits"]),
        ("workload.codeflare.dev/v1beta2 AppWrapper", f"{{components: [{{template: {{apiVersion: batch/v1, kind: Job, metadata: {{name: b}}, spec: {OF_JOB}}}}}]}}", "never", [f"spec.components[0].template.spec.template: {LARGEST} (nodes in FILE), so no node fits"]),
        ("apps/v1 DaemonSet", f"{{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{EIGHT}]}}}}}}", "nothing-found", ["nodes not compared with pods of a DaemonSet"]),
    ],
    ids=["NIMService", "NIMService that fits", "LLMInferenceService", "DynamoGraphDeployment", "ScaledJob", "AppWrapper", "DaemonSet"],
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
    (tmp_path / "pod.yaml").write_text(node.replace("nvidia.com/gpu", "volcano.sh/vgpu-number") + pod)
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


VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 1}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team}
spec:
  queue: research
  tasks: [{name: worker, replicas: 2, template: {spec: {containers: [{name: main, image: "x:1"}]}}}]
"""
CHECK = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: CONTROLLER}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: budget}]}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: a
      resources: [{name: cpu, nominalQuota: 9}, {name: memory, nominalQuota: 9Gi}, {name: nvidia.com/gpu, nominalQuota: 9}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a}, spec: {}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: main, namespace: team}, spec: {clusterQueue: all}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team}}
---
"""


@pytest.mark.parametrize(
    ("release", "assumed", "code"),
    [
        ("2.3", ["torch-distributed as Trainer 2.3 ships it"], 0),
        ("2.1", ["torch-distributed as Trainer 2.1 ships it"], 0),
    ],
)
def test_assumptions_about_a_runtime_are_reported(release, assumed, code, tmp_path, capsys):
    job = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a, namespace: team}\n"
    (tmp_path / "job.yaml").write_text(f"{job}spec: {{runtimeRef: {{name: torch-distributed}}}}\n")
    trainer = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: trainer, namespace: claimgate-system}\n"
    (tmp_path / "release.yaml").write_text(f'{trainer}data: {{trainer: "{release}"}}\n')
    got, [told] = simulated(capsys, tmp_path / "job.yaml", "--context", tmp_path / "release.yaml")
    assert (got, told["answer"], told["assumed"]) == (code, "nothing-found", assumed)


def test_a_queue_of_a_file_has_no_state(tmp_path, capsys):
    (tmp_path / "job.yaml").write_text(VOLCANO)
    code, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (code, told["answer"], against(told)) == (0, "nothing-found", {})


@pytest.mark.parametrize(
    ("controller", "code", "whats"),
    [
        ("kueue.x-k8s.io/provisioning-request", 0, []),
        ("example.com/budget", 3, ["AdmissionCheck budget has no condition Active in its file"]),
    ],
)
def test_an_admission_check_in_a_file_has_no_conditions(controller, code, whats, tmp_path, capsys):
    job = NODE.replace("GPUS", '"1"').replace("{name: job}", "{name: job, namespace: team, labels: {LABEL: main}}")
    job = job.replace("LABEL", "kueue.x-k8s.io/queue-name").replace(
        "spec:\n  template", "spec:\n  suspend: true\n  template"
    )
    (tmp_path / "job.yaml").write_text(CHECK.replace("CONTROLLER", controller) + job)
    got, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (got, [each["what"] for each in told["unknown"] if each["rules"]], against(told)) == (code, whats, {})


def test_a_node_of_a_file_may_have_no_status(tmp_path, capsys):
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: bare}\n---"
    (tmp_path / "job.yaml").write_text(node + NODE.replace("GPUS", '"4"'))
    code, [told] = simulated(capsys, tmp_path / "job.yaml", "--context-is-whole")
    assert (code, told["answer"], against(told)) == (0, "nothing-found", {})
    assert told["unknown"][0]["what"] == "nodes not compared: node bare has no status.allocatable"


def test_an_update_is_refused_when_it_is_changed(tmp_path, capsys):
    job = yamlfile.read(EXAMPLES / "broken" / "mpijob-slots.yaml")[0].value
    request = {"operation": "UPDATE", "object": job, "oldObject": {**job, "spec": {}}, "namespace": "research"}
    kind = {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"}
    resource = {"group": "kubeflow.org", "version": "v2beta1", "resource": "mpijobs"}
    review = {"uid": "a", "kind": kind, "resource": resource, "name": job["metadata"]["name"], **request}
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    (tmp_path / "review.json").write_text(json.dumps({**head, "request": review}))
    assert run_command_line(["simulate", str(tmp_path / "review.json"), *WHOLE]) == 1
    assert "would be refused when it is changed" in capsys.readouterr().out


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


def test_every_group_of_rules_has_an_aspect_of_simulate():
    catalogue = SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups)
    assert {rule.partition("/")[0] for rule in catalogue} - groups() == set()
    assert set(_RULES) - set(catalogue) == set()
    assert {aspect_of(rule) for rule in catalogue} == set(ASPECTS)
    assert aspect_of("a-policy-of-a-site") == "admission"


def test_documents_that_are_not_objects_are_named_and_the_others_simulated(tmp_path, capsys):
    (tmp_path / "job.yaml").write_text((EXAMPLES / "good" / "pytorchjob.yaml").read_text())
    (tmp_path / "values.yaml").write_text("replicas: 1\n")
    (tmp_path / "assert.yaml").write_text("apiVersion: v1\nkind: Pod\n(spec): {}\n")
    assert run_command_line(["simulate", str(tmp_path), "-o", "json"]) == 3
    printed = capsys.readouterr()
    assert [each["object"] for each in json.loads(printed.out)] == ["PyTorchJob research/finetune"]
    notes = [line for line in printed.err.splitlines() if "not simulated" in line]
    assert [line.partition(": not simulated: ")[0] for line in notes] == [
        f"note: {tmp_path}/{name}:1" for name in ("assert.yaml", "values.yaml")
    ]
    assert run_command_line(["simulate", str(tmp_path / "values.yaml")]) == 2
    assert "apiVersion: expected a string" in capsys.readouterr().err


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
