"""`claimgate simulate`: the answer, what stands in the way, the exit code; golden files of what people read."""

import json
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.facts.registry import SHIPPED
from webhook.simulation.aspects import _RULES, ASPECTS, aspect_of, groups

HERE = Path(__file__).parents[1] / "data" / "simulation"
EXAMPLES = Path(__file__).parents[2] / "examples" / "research-team"
WHOLE = ("--context", str(EXAMPLES / "cluster"), "--context-is-whole")


def simulated(capsys, *arguments):
    """The exit code, and each answer."""
    code = run_command_line(["simulate", *map(str, arguments), "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def against(answer):
    """The rules that are broken, by what they are about."""
    return {aspect: [each["rule"] for each in listed] for aspect, listed in answer["aspects"].items() if listed}


@pytest.mark.parametrize(
    ("job", "code", "answer", "rules"),
    [
        ("good/pytorchjob", 0, "can-start", {}),
        ("good/trainjob", 0, "can-start", {}),
        ("broken/mpijob-slots", 1, "refused", {"launcher": ["training-job/slots-for-ranks"]}),
        ("broken/pytorchjob-too-many-gpus", 1, "never", {"quota": ["kueue-never/exceeds-max-quota"]}),
        ("broken/trainjob-queue", 1, "never", {"queue": ["kueue-not-now/local-queue-missing"]}),
        ("broken/volcano-job-quota", 1, "never", {"quota": ["volcano-job/capability"]}),
        ("broken/volcano-job-queue", 1, "refused", {"queue": ["volcano-job/queue-exists"]}),
        ("broken/pytorchjob-storage", 1, "fails", {"storage": ["storage/read-write-once"]}),
        ("broken/trainjob-processes", 0, "can-start", {}),
        ("broken/pytorchjob-processes", 0, "can-start", {}),
    ],
)
def test_jobs_of_a_team(job, code, answer, rules, capsys):
    got, [told] = simulated(capsys, EXAMPLES / f"{job}.yaml", *WHOLE)
    assert (got, told["answer"], against(told)) == (code, answer, rules)
    assert told["starts"] is (code == 0)


def test_what_does_not_keep_a_job_from_starting_is_told_besides(capsys):
    _, [told] = simulated(capsys, EXAMPLES / "broken" / "trainjob-processes.yaml", *WHOLE)
    assert [each["rule"] for each in told["besides"]] == ["num-proc-per-node/not-set"]


def test_what_was_not_looked_up_leaves_the_answer_open(capsys):
    code, [told] = simulated(capsys, EXAMPLES / "good" / "mpijob.yaml")
    assert (code, told["answer"], told["starts"]) == (3, "unknown", None)
    assert {"what": "LocalQueue training not found", "rules": ["kueue-never/exceeds-max-quota"]} in told["unknown"]


def test_the_queue_and_what_it_counts_are_told(capsys):
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


def test_quota_in_use_is_waited_for(tmp_path, capsys):
    (tmp_path / "workload.yaml").write_text(WAITS)
    code, [told] = simulated(capsys, EXAMPLES / "good" / "pytorchjob.yaml", *WHOLE, "--context", tmp_path)
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


def test_a_job_without_a_namespace_is_in_the_one_that_is_named(capsys, tmp_path):
    text = (EXAMPLES / "good" / "pytorchjob.yaml").read_text()
    (tmp_path / "job.yaml").write_text(text.replace("namespace: research", "labels2: {}").replace("labels2: {}, ", ""))
    _, [told] = simulated(capsys, tmp_path / "job.yaml", "-n", "research", *WHOLE)
    assert told["object"].startswith("PyTorchJob research/")


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        pytest.param("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n", (), "no job found: no object of this file makes pods", id="no job"),
        pytest.param("kind: [\n", (), "not YAML", id="no YAML"),
        pytest.param("", (), "no job found; expected YAML, JSON or NDJSON", id="nothing"),
        pytest.param("a: 1\n", (), "apiVersion", id="no object"),
        pytest.param(NODE, ("--live", "--context", "x"), "--live has the whole cluster", id="live and files"),
        pytest.param(NODE, ("-o", "svg"), "unknown format `svg`, expected one of text, json", id="a format"),
    ],
)  # fmt: skip
def test_input_that_cannot_be_simulated_is_exit_2(text, arguments, message, tmp_path, capsys):
    (tmp_path / "x.yaml").write_text(text)
    assert run_command_line(["simulate", str(tmp_path / "x.yaml"), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("job", ["good/pytorchjob", "broken/pytorchjob-too-many-gpus", "broken/trainjob-processes"])
def test_what_people_read(job, monkeypatch, capsys, request):
    monkeypatch.chdir(EXAMPLES.parent.parent)
    monkeypatch.setenv("COLUMNS", "100")
    context = ("--context", "examples/research-team/cluster", *(["--context-is-whole"] if "broken" in job else []))
    run_command_line(["simulate", f"examples/research-team/{job}.yaml", *context])
    golden, text = HERE / f"{job.replace('/', '-')}.txt", capsys.readouterr().out
    if request.config.getoption("--update-golden"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_group_of_rules_is_about_something():
    catalogue = SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups)
    assert {rule.partition("/")[0] for rule in catalogue} - groups() == set()
    assert set(_RULES) - set(catalogue) == set()
    assert {aspect_of(rule) for rule in catalogue} == set(ASPECTS)
    assert aspect_of("a-policy-of-a-site") == "admission"
