"""The fields of suite.yaml: audited failures, annotations, answers of the authorizer, defaults; and its JSON schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.literals import pod, validating
from tests.rows import all_rows
from webhook.cli import run_command_line
from webhook.manifests.authorizer_answers import read_authorizer_file
from webhook.suites.suite_model import suite_schema
from webhook.yamltext import yamlfile

ROOT = Path(__file__).parents[2]
Write = Callable[..., str]


@pytest.fixture
def suite(tmp_path: Path) -> Write:

    def write(policies: list[Any], *cases: Any, text: str = "") -> str:
        folder = tmp_path / "policy"
        folder.mkdir(exist_ok=True)
        (folder / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, policies)))
        named = [{"name": f"case {number}", **each} for number, each in enumerate(cases)]
        (folder / "suite.yaml").write_text(text or yamlfile.dump({"cases": named}))
        return str(folder)

    return write


def audits(expression: str = "false", **spec: Any) -> list[Any]:
    policy, binding = validating(expression, **spec)
    binding["spec"]["validationActions"] = ["Audit"]
    return [policy, binding]


TEAM = [{"key": "team", "valueExpression": "object.metadata.?labels['team'].orValue('none')"}]
ASKS = "authorizer.group('').resource('pods').check('use').allowed()"
POD = pod(containers=[{"name": "c", "image": "i"}])
REVIEW = {"operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": POD}
DEFAULTED = "object.spec.?restartPolicy.orValue('') == 'Always'"


CASES = {
        "an audited failure": (audits(), {"expect": {"allowed": True, "audited": ["failed expression"]}}, 0, ""),
        "no audited failure": (audits("true"), {"expect": {"allowed": True, "audited": []}}, 0, ""),
        "an audited failure that is not expected": (
            audits(), {"expect": {"allowed": True, "audited": []}}, 1, "audited: expected texts with (-), found (+)",
        ),
        "a denial is not audited": (validating("false"), {"expect": {"allowed": False, "audited": []}}, 0, ""),
        "an annotation by its key": (
            validating(auditAnnotations=TEAM), {"expect": {"allowed": True, "auditAnnotations": {"team": "none"}}}, 0, "",
        ),
        "an annotation by policy and key": (
            validating(auditAnnotations=TEAM), {"expect": {"allowed": True, "auditAnnotations": {"v/team": "none"}}}, 0, "",
        ),
        "another value of an annotation": (
            validating(auditAnnotations=TEAM), {"expect": {"allowed": True, "auditAnnotations": {"team": "a"}}}, 1, "v/team: none",
        ),
        "no annotation": (
            validating(auditAnnotations=TEAM), {"expect": {"allowed": True, "auditAnnotations": {}}}, 1, "+v/team: none",
        ),
        "an answer": (
            validating(ASKS), {"authorizer": [{"verb": "use", "allowed": False}], "expect": {"allowed": False}}, 0, "",
        ),
        "a question without an answer is not known": (
            validating(ASKS), {"expect": {"allowed": True, "unknown": ["resource `pods`"]}}, 0, "",
        ),
        "a question without an answer fails a case that does not expect it": (
            validating(ASKS), {"expect": {"allowed": True}}, 1, "asks about verb `use` resource `pods`: write the answer under `authorizer`",
        ),
        "an object has defaults": (validating(DEFAULTED), {"expect": {"allowed": True}}, 0, ""),
        "an object without defaults": (validating(DEFAULTED), {"defaults": False, "expect": {"allowed": False}}, 0, ""),
        "a review gets no defaults": (validating(DEFAULTED), {"input": REVIEW, "expect": {"allowed": False}}, 0, ""),
        "a review with defaults": (validating(DEFAULTED), {"input": REVIEW, "defaults": True, "expect": {"allowed": True}}, 0, ""),
}  # fmt: skip


@all_rows("policies, case, code, told", CASES.values(), ids=CASES)
def test_a_case_gets_this_result(
    policies: list[Any], case: Any, code: int, told: str, suite: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["test", suite(policies, {"input": POD, **case})]) == code
    assert told in capsys.readouterr().out


CASE = "cases:\n- name: x\n  input: {apiVersion: v1, kind: Pod, metadata: {name: a}}\n"


MISTAKES = {
    "a field of a case": (
        f"{CASE}  expct: {{allowed: true}}\n",
        "cases[0].expct: unknown field: did you mean `expect`?",
    ),
    "a field of expect": (
        f"{CASE}  expect: {{alowed: true}}\n",
        "cases[0].expect.alowed: unknown field: did you mean `allowed`?",
    ),
    "a field in snake case": (f"{CASE}  expect: {{audit_annotations: {{}}}}\n", "did you mean `auditAnnotations`?"),
    "a field of the authorizer": (
        f"{CASE}  authorizer: [{{verbs: get, allowed: true}}]\n  expect: {{allowed: true}}\n",
        "cases[0].authorizer[0].verbs: unknown field: did you mean `verb`?",
    ),
    "a field of the suite": ("case: []\n", "case: unknown field: did you mean `cases`?"),
    "an answer that decides nothing": (
        f"{CASE}  authorizer: [{{verb: get}}]\n  expect: {{allowed: true}}\n",
        "cases[0].authorizer[0]: needs `allowed: true`, `allowed: false`, or an `error`",
    ),
}


@all_rows("text, told", MISTAKES.values(), ids=MISTAKES)
def test_an_unknown_field_is_reported_with_the_intended_field(
    text: str, told: str, suite: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["test", suite(validating("true"), text=text)]) == 2
    assert told in capsys.readouterr().err


def test_a_file_of_answers_has_the_form_of_a_suite(tmp_path: Path) -> None:
    (tmp_path / "answers.yaml").write_text("authorizer:\n- {verb: get, fieldSelector: a=b, error: no kubelet}\n")
    assert read_authorizer_file(tmp_path / "answers.yaml") is not None


def test_the_schema_is_published_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["config", "schema", "suite"]) == 0
    printed = json.loads(capsys.readouterr().out)
    published = json.loads((ROOT / "docs" / "suite.schema.json").read_text())
    assert printed == suite_schema() == published, "write `claimgate config schema suite` to docs/suite.schema.json"


def test_the_schema_accepts_the_shipped_suites() -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(suite_schema())
    validator = Draft202012Validator(suite_schema())
    for name in ("claims-exactly-one", "gpu-portable"):
        (document,) = yamlfile.read(ROOT / "policies" / name / "suite.yaml")
        validator.validate(json.loads(json.dumps(document.value)))
    assert not validator.is_valid({"cases": [{"name": "x", "input": {}, "expect": {"alowed": True}}]})


def test_each_validation_and_each_match_condition_needs_a_case(
    suite: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, binding = validating(
        matchConditions=[
            {"name": "not-a", "expression": "object.metadata.name != 'a'"},
            {"name": "not-b", "expression": "object.metadata.name != 'b'"},
        ],
        validations=[
            {"expression": "object.metadata.name != 'c'"},
            {"expression": "object.metadata.name != 'd'"},
        ],
    )
    for_c = {"input": {**POD, "metadata": {"name": "c"}}, "expect": {"allowed": False}}
    for_a = {"input": {**POD, "metadata": {"name": "a"}}, "expect": {"allowed": True}}
    assert run_command_line(["test", "-v", suite([policy, binding], for_c, for_a)]) == 0
    told = "2 of 4 rules and conditions tried by a case; not tried: v validations[1], v matchCondition not-b"
    assert told in capsys.readouterr().out.replace("\n  ", " ")


LIMIT = {
    "apiGroups": ["trainer.kubeflow.org"],
    "apiVersions": ["v1alpha1"],
    "operations": ["CREATE"],
    "resources": ["trainjobs"],
}


def test_a_case_that_passes_without_a_result_is_named(suite: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """The rule reads a fact that needs the runtime, which no file has."""
    rules = validating("gpu.devices <= 8", annotations={"facts": "gpu"}, matchConstraints={"resourceRules": [LIMIT]})
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "n"},
        "spec": {"runtimeRef": {"name": "ours"}},
    }
    case = {"name": "c", "input": job, "expect": {"allowed": True}}
    folder = suite(rules, case)
    assert run_command_line(["test", "-v", folder]) == 0
    assert capsys.readouterr().err == (
        "note: policy/c: not evaluated: ClusterTrainingRuntime ours not found\n"
        "note: 1 case passes although a rule is not evaluated: add what the rule needs to context, or expect it in "
        "unknown\n"
    )
    suite(rules, {**case, "expect": {"allowed": True, "unknown": ["ours not found"]}})
    assert run_command_line(["test", "-v", folder]) == 0
    assert capsys.readouterr().err == ""


BESIDE = {
    "levels": {"levels": {"rules": {"v": "warn"}}},
    "an exception": {"exceptions": [{"rules": ["v"], "owner": "ml", "reason": "later", "expires": "2099-01-31"}]},
    "an ignored namespace": {"ignore": {"namespaces": ["*"]}},
}


@all_rows("configuration", BESIDE.values(), ids=BESIDE)
def test_the_configuration_next_to_a_suite_applies(
    configuration: Any, suite: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = suite(validating("false"), {"input": POD, "expect": {"allowed": True}})
    file = Path(folder, "claimgate.yaml")
    file.unlink(missing_ok=True)
    assert run_command_line(["test", folder]) == 1
    file.write_text(json.dumps(configuration))
    assert run_command_line(["test", folder]) == 0
    file.write_text("{levels: {rules: {w: warn}}}")
    assert run_command_line(["test", folder]) == 2
    assert "unknown rule `w`" in capsys.readouterr().err


def test_the_configuration_next_to_a_suite_sets_params(suite: Write) -> None:
    policy, binding = validating("params.data.most == '2'", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    binding["spec"]["paramRef"] = {"name": "most", "namespace": "claimgate-system", "parameterNotFoundAction": "Deny"}
    param = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "most", "namespace": "claimgate-system"}}
    case = {"input": POD, "params": [{**param, "data": {"most": "1"}}], "expect": {"allowed": True}}
    folder = suite([policy, binding], case)
    assert run_command_line(["test", folder]) == 1
    Path(folder, "claimgate.yaml").write_text('{params: {most: {most: "2"}}}')
    assert run_command_line(["test", folder]) == 0
