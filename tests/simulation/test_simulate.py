"""`claimgate simulate`: the answer, the obstacles, the exit code; golden files of its text."""

import json
import re
from pathlib import Path

import pytest

from tests.golden import compare_with_golden_file
from tests.literals import OPTIONS, shipped_policies, validating
from tests.simulation.answers import EXAMPLES, HERE, NODE, NODES, WHOLE, against, simulated
from webhook.cli import run_command_line
from webhook.facts.subject import SHIPPED
from webhook.input import shipped
from webhook.simulation import outcome
from webhook.simulation.aspects import _RULES, ASPECTS, aspect_of, groups
from webhook.suites import own
from webhook.suites.case import answer_of_case
from webhook.suites.files import Suite
from webhook.yamltext import yamlfile

FOLDERS = sorted(path.parent for path in Path(shipped.policies_folder()).glob("*/suite.yaml"))
TOO_MANY = {"quota": ["kueue-never/exceeds-max-quota"], "nodes": ["node-devices/all-pods"]}


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
    ("request_parts", "reason"),
    [
        ({"operation": "DELETE", "object": None}, "a DELETE starts no pods"),
        ({"operation": "UPDATE", "subResource": "status"}, "a request for the subresource status starts no pods"),
    ],
)
def test_a_review_of_a_request_that_starts_no_pods_is_not_simulated(request_parts, reason, tmp_path, capsys):
    job = yamlfile.read(EXAMPLES / "broken" / "mpijob-slots.yaml")[0].value
    kind = {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"}
    resource = {"group": "kubeflow.org", "version": "v2beta1", "resource": "mpijobs"}
    head = {"uid": "a", "kind": kind, "resource": resource, "name": job["metadata"]["name"], "namespace": "research"}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    review["request"] = {**head, "object": job, "oldObject": job, **request_parts}
    (tmp_path / "review.json").write_text(json.dumps(review))
    assert run_command_line(["simulate", str(tmp_path / "review.json"), *WHOLE]) == 2
    assert reason in capsys.readouterr().err


def test_the_line_about_nodes_says_that_no_node_was_compared(tmp_path, capsys):
    job = yamlfile.read(EXAMPLES / "good" / "pytorchjob.yaml")[0].value
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    run_command_line(
        ["simulate", str(tmp_path / "job.yaml"), "--context", str(tmp_path / "node.yaml"), "--context-is-whole"]
    )
    [line] = [each for each in capsys.readouterr().out.splitlines() if each.split()[1:2] == ["nodes"]]
    assert line.split(maxsplit=2)[2] == "not compared: node n1 has no status.allocatable"


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


CONDITION = re.compile(r"\b(unless|probably|may)\b")
CERTAIN = {
    "kueue-never/resource-uncovered": "Kueue counts every resource by default",
    "ray/no-group-with-gpus": "few nodes show all GPUs to every container",
    "ray/gpus-without-request": "few nodes show all GPUs to every container",
    "kueue-queue/no-namespace": "which namespaces may use the queue",
    "serving-kind/disaggregated-set": "which replicas are allowed",
    "sandbox/pool-size": "the most pods that a Pool may have",
}
DECIDING = ("create", "controller", "pending", "start", "waiting")


def problems_that_name_a_condition(folder):
    """Yield the problems of a suite with a condition in the message, apart from the fix, by the name of the case."""
    suite = Suite(file=folder / "suite.yaml", root=folder)
    for case in own.cases(suite):
        said = [each.rpartition(": ")[0] for each in case.expect.warnings or () if isinstance(each, str)]
        if any(map(CONDITION.search, said)):
            outcome_of_case = answer_of_case(own.request_of_case(case, suite, shipped_policies, OPTIONS))
            yield from ((case.name, each) for _, made in outcome_of_case.decisions for each in made.problems)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_problem_whose_message_names_a_condition_does_not_decide_the_answer(folder):
    deciding = [
        f"{case}: {problem.code}"
        for case, problem in problems_that_name_a_condition(folder)
        if CONDITION.search(problem.message)
        and not problem.is_conditional
        and problem.code not in (*outcome.WAITS, *CERTAIN)
        and (problem.fails or outcome.failure_moment_of_rule(shipped_policies(), problem.code)) in DECIDING
    ]
    assert deciding == [], "set is_conditional=True where the problem is yielded, or add the rule to CERTAIN"
