"""`claimgate simulate` never answers that a job of any kind can start before the cluster is known."""

import copy
import json
import re

import pytest

from tests.simulation.answers import simulated
from webhook.cli import run_command_line
from webhook.workloads.table import load_table

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


KNATIVE = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: s, namespace: team}\n"
KSERVE = (
    "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: s, namespace: team, ANNOTATION}\n"
)
CONTAINERS = "containers: [{name: kserve-container, image: x}]"
FEATURES = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-features, namespace: knative-serving}\n"
FEATURES += "data: {kubernetes.podspec-nodeselector: enabled}\n"
MODE = "annotations: {serving.kserve.io/deploymentMode: %s}"
REFUSED = "the features of Knative are not known, and by default Knative refuses nodeSelector"
UNKNOWN_MODE = "it is not known whether KServe deploys with Knative, which may refuse nodeSelector"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(f"{KNATIVE}spec: {{template: {{spec: {{nodeSelector: {{a: b}}, {CONTAINERS}}}}}}}", REFUSED, id="a Service of Knative"),
        pytest.param(f"{KNATIVE}spec: {{template: {{spec: {{nodeSelector: {{a: b}}, {CONTAINERS}}}}}}}{FEATURES}", "", id="a feature that is on"),
        pytest.param(f"{KNATIVE}spec: {{template: {{spec: {{{CONTAINERS}}}}}}}", "", id="a Service without the field"),
        pytest.param(f"{KSERVE}spec: {{predictor: {{nodeSelector: {{a: b}}, {CONTAINERS}}}}}".replace("ANNOTATION", ""), UNKNOWN_MODE, id="a mode that is not known"),
        pytest.param(f"{KSERVE}spec: {{predictor: {{nodeSelector: {{a: b}}, {CONTAINERS}}}}}".replace("ANNOTATION", MODE % "Knative"), REFUSED, id="KServe with Knative"),
        pytest.param(f"{KSERVE}spec: {{predictor: {{nodeSelector: {{a: b}}, {CONTAINERS}}}}}".replace("ANNOTATION", MODE % "RawDeployment"), "", id="KServe without Knative"),
        pytest.param(f"{KSERVE}spec: {{predictor: {{{CONTAINERS}}}}}".replace("ANNOTATION", ""), "", id="KServe without the field"),
    ],
)  # fmt: skip
def test_fields_that_knative_may_refuse_are_not_said_to_be_fine(text, said, tmp_path, capsys):
    (tmp_path / "service.yaml").write_text(text)
    _, told = simulated(capsys, tmp_path / "service.yaml")
    questions = [each["what"] for each in told[0]["unknown"] if each["aspects"] == ["admission"]]
    assert questions == ([said] if said else []), "see _knative_questions"
