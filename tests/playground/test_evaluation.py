"""The answers of the playground, and hostile questions, which have no effect."""

import json
import subprocess
import sys
import time

import pytest

from tests.golden import ROOT
from tests.playground.asking import ASKING, HOST, answers, evaluated
from webhook.cli import run_command_line
from webhook.playground.evaluation import _MOST_RULES, rules_of_denial
from webhook.rules import pages
from webhook.rules.catalogue import RULES_OF_FILES
from webhook.yamltext import yamlfile

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  validations:
  - {expression: "EXPRESSION", message: "told"}
"""


def own(expression):
    return POLICY.replace("EXPRESSION", expression)


def test_an_expression_shows_its_inputs_value_and_cost():
    (review,) = evaluated({"object": POD, "cluster": own("object.metadata.name == 'x'")}).json()["reviews"]
    assert review["evaluations"] == [
        {
            "source": "object.metadata.name == 'x'",
            "policies": ["own"],
            "value": "false",
            "is_error": False,
            "cost": 4,
            "reads": ["object.metadata.name"],
        }
    ]
    assert review["kubectl"] == [
        'Error from server (Invalid): admission webhook "validate.claimgate.dev" denied the request: told (policy own)'
    ]


def test_a_policy_without_binding_is_evaluated_and_reported():
    answer = evaluated({"object": POD, "cluster": own("true")}).json()
    assert answer["notes"] == ["policy own has no binding; it is evaluated here as if a binding denied"]
    assert answer["reviews"][0]["kubectl"] == ["pod/p created"]


@pytest.mark.parametrize(
    ("question", "text", "line", "message"),
    [
        pytest.param({"object": "a: [b"}, "object", 2, "", id="broken YAML"),
        pytest.param({"object": ""}, "object", 0, "no object: write one, or choose a sample", id="nothing"),
        pytest.param({"object": "a: 1\n"}, "object", 1, "apiVersion", id="not an object"),
        pytest.param({"object": POD, "cluster": "a: {{"}, "cluster", 1, "", id="broken YAML in the cluster"),
        pytest.param({"object": POD, "cluster": own("objekt == 1")}, "cluster", 9, "undeclared", id="broken policy"),
        pytest.param({"object": f"{POD}---\n" * 21}, "object", 0, "21 objects", id="too many objects"),
    ],
)
def test_unreadable_input_is_reported_with_its_place(question, text, line, message):
    response = evaluated(question)
    error = response.json()["errors"][0]
    assert (response.status_code, error["text"], error["line"]) == (200, text, line)
    assert message in error["message"]


def test_a_hint_is_shown_with_the_error_of_an_expression():
    (error,) = evaluated({"object": POD, "cluster": own("objekt == 1")}).json()["errors"]
    assert error["hint"] == "hint: did you mean `object`?"


@pytest.mark.parametrize("field", ["object", "cluster", "phase", "isWhole"])
def test_a_field_of_another_type_is_refused(field):
    response = evaluated({"object": POD, field: {"a": 1}})
    assert (response.status_code, response.json()["reason"]) == (400, "BadRequest")


def test_a_body_that_is_too_long_is_refused_and_the_next_is_answered():
    refused, fine = (evaluated({"object": POD + "#" * size}) for size in (20 << 20, 10))
    assert (refused.status_code, refused.json()["reason"]) == (413, "RequestEntityTooLarge")
    assert fine.json()["reviews"][0]["allowed"] is True


HEAVY = "[1,2,3,4,5,6,7,8,9,10].all(a, " * 9 + "true" + ")" * 9


def test_a_policy_that_loops_ends_by_its_cost():
    (review,) = evaluated({"object": POD, "cluster": own(HEAVY)}).json()["reviews"]
    assert review["allowed"] is False
    assert "cost" in review["kubectl"][0]


def test_a_long_evaluation_is_stopped_and_others_are_answered():
    names = "".join(f"- {{name: c{number}, image: i}}\n" for number in range(20000))
    large = {"object": f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n{names}"}
    begun = time.monotonic()
    response = evaluated(large, timeout_s=0.001)  # no child can have answered yet, on any machine
    assert (response.status_code, response.json()["reason"]) == (504, "Timeout")
    assert "was stopped" in response.json()["message"]
    assert time.monotonic() - begun < 30
    assert evaluated({"object": POD}).status_code == 200


MUCH = """
from tests.playground.asking import evaluated
from tests.playground.test_evaluation import POD

large = {"object": POD + "#\\na: [" + ", ".join(["1"] * 900_000) + "]\\n"}
print(evaluated(large, memory_bytes=8 << 20, timeout_s=120).json())
"""


def test_an_evaluation_with_too_much_memory_is_stopped():
    """A separate process, because a child may reuse the memory that thousands of tests left free in this one."""
    told = subprocess.run(
        [sys.executable, "-c", MUCH], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert "memory" in told.stdout


def test_hostile_names_are_returned_unchanged():
    """The page shows hostile texts as text (tests/playground/test_page.py)."""
    name = "<img src=x onerror=alert(1)>"
    (review,) = evaluated({"object": POD.replace("{name: p}", f'{{name: "{name}"}}')}).json()["reviews"]
    assert name in review["object"]


def test_each_of_many_simultaneous_questions_gets_an_answer_or_is_to_be_retried():
    ask = ("POST", "/evaluate", {"json": {"object": POD}, "headers": ASKING})
    codes = [response.status_code for response in answers(*[ask] * 12)]
    assert set(codes) == {200, 503}
    assert codes.count(200) == 8


@pytest.mark.parametrize(
    ("method", "path", "headers", "code"),
    [
        pytest.param("GET", "/", {"Host": "evil.example"}, 403, id="another host"),
        pytest.param("GET", "/", {"Host": "127.0.0.1:1"}, 403, id="another port"),
        pytest.param("GET", "/samples", {"Origin": "http://evil.example"}, 403, id="another origin"),
        pytest.param("GET", "/", {"Origin": "null"}, 403, id="no origin at all"),
        pytest.param("POST", "/evaluate", {"Content-Type": "application/json"}, 403, id="a question without origin"),
        pytest.param("POST", "/evaluate", {**ASKING, "Content-Type": "text/plain"}, 415, id="a simple request"),
        pytest.param("GET", "/page/../application.py", {}, 404, id="another file"),
        pytest.param("GET", "/page/THIRD_PARTY.md", {}, 404, id="a file that the page does not need"),
        pytest.param("GET", "/docs", {}, 404, id="documentation"),
        pytest.param("GET", "/page/editor.js", {}, 200, id="a file of the page"),
    ],
)
def test_the_playground_answers_only_its_own_page(method, path, headers, code):
    (response,) = answers((method, path, {"headers": headers}))
    assert response.status_code == code
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_each_page_has_its_own_nonce():
    first, second = answers(("GET", "/", {}), ("GET", "/", {}))
    nonces = {page.headers["content-security-policy"].partition("nonce-")[2][:22] for page in (first, second)}
    assert len(nonces) == 2
    assert "NONCE" not in first.text
    assert "unsafe" not in first.headers["content-security-policy"]
    assert HOST not in first.text


def test_policies_of_other_projects_are_counted_in_a_warning():
    cluster = POLICY.replace("admissionregistration.k8s.io/v1", "policies.kyverno.io/v1").replace(
        "ValidatingAdmissionPolicy", "ValidatingPolicy"
    )
    [note] = evaluated({"object": POD, "cluster": cluster}).json()["notes"]
    assert note.startswith("found 1 ValidatingPolicy of Kyverno, which claimgate does not evaluate")
    assert "`claimgate policies convert`" in note


def test_what_policies_check_says_is_shown_with_the_verdict():
    answer = evaluated({"object": POD, "cluster": own("object.metadata.labels['team'] == 'ml'")}).json()
    (check,) = answer["checks"]
    assert check["policy"] == "own"
    assert any("fails on the smallest valid Pod" in each for each in check["mistakes"])
    assert evaluated({"object": POD, "cluster": own("true || object.metadata.name == 'a'")}).json()["checks"] == []
    assert evaluated({"object": POD}).json()["checks"] == []  # the shipped policies


def test_the_fix_and_severity_of_a_finding_are_separate_fields():
    pod = POD.replace("image: i}", 'image: i, resources: {limits: {nvidia.com/gpu: "0.5"}}}')
    (review,) = evaluated({"object": pod}).json()["reviews"]
    finding = next(each for each in review["findings"] if each["rule"] == "pod-resources/whole-number")
    assert (finding["severity"], finding["fix"]) == ("high", "set 1")
    assert "set 1" not in finding["message"]


def test_a_question_becomes_a_suite_that_passes(tmp_path, capsys):
    context = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: ml}}\n"
    question = {"object": POD, "cluster": own("object.metadata.name == 'x'") + context, "isWhole": True}
    (response,) = answers(("POST", "/case", {"json": question, "headers": ASKING}))
    files = response.json()["files"]
    assert sorted(files) == ["policy.yaml", "suite.yaml"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (case,) = yamlfile.load(files["suite.yaml"])[0].value["cases"]
    assert (case["name"], case["expect"]["allowed"], case["contextIsWhole"]) == ("Pod p is denied", False, True)
    assert [each["kind"] for each in case["context"]] == ["Namespace"]
    assert "phase" not in case
    assert run_command_line(["test", str(tmp_path)]) == 0
    assert "1 case" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("question", "text", "message"),
    [
        ({"object": POD}, "cluster", "no policy: a case tests the policies of its suite, so write a policy here"),
        ({"object": "", "cluster": own("true")}, "object", "no object: write one, or choose a sample"),
        ({"object": "a: [", "cluster": own("true")}, "object", ""),
        ({"object": POD, "cluster": own("objekt")}, "", "objekt"),
    ],
    ids=["no policy", "no object", "broken YAML", "a broken policy"],
)
def test_an_input_that_cannot_become_a_case_is_reported(question, text, message):
    (response,) = answers(("POST", "/case", {"json": question, "headers": ASKING}))
    error = response.json()["errors"][0]
    assert message in error["message"]
    assert text in error["text"]


def test_words_of_the_editors_have_functions_facts_and_fields_of_kinds():
    words, pod, unknown = answers(
        ("GET", "/words", {}),
        ("GET", "/fields?api_version=v1&kind=Pod", {}),
        ("GET", "/fields?api_version=example.com/v1&kind=Mine", {}),
    )
    said = words.json()
    assert said["functions"]["quantity"].startswith("quantity(string)")
    assert said["methods"]["isGreaterThan"]
    assert said["facts"]["gpu"]["type"] == "claimgate.Gpu"
    assert said["structures"]["claimgate.Gpu"]["devices"]["about"]
    assert "limits" in pod.json()["spec"]["containers"]["resources"]
    assert unknown.json() == {}


LINE = "* spec.containers[0].resources.limits.gpu: `all` is not allowed because …: set the number (gpu-portable/all)"
PRINTED = f'Error from server (BadRequest): admission webhook "v" denied the request: {LINE}'
STATUS = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": PRINTED}
REFUSED = {"uid": "1", "allowed": False, "status": {"message": LINE}}
REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": REFUSED}


@pytest.mark.parametrize("text", [PRINTED, LINE, json.dumps(STATUS), json.dumps(REVIEW)])
def test_a_denial_opens_its_rule_and_loads_a_policy_that_denies(text):
    (rule,) = evaluated({"object": text}).json()["denial"]
    assert (rule["rule"], rule["title"]) == ("gpu-portable/all", "The amount of `gpu` is the word all")
    assert "Docker understands `all`" in rule["page"]
    assert LINE in rule["lines"][0]
    (policy,) = rule["policies"]
    (review,) = evaluated({"object": rule["example"], "cluster": policy["text"]}).json()["reviews"]
    assert (review["allowed"], review["findings"][0]["rule"]) == (False, "gpu-portable/all")


def test_the_rules_of_findings_come_with_their_pages():
    answer = evaluated({"object": POD.replace("image: i", "image: i, resources: {limits: {gpu: all}}")}).json()
    assert answer["pages"].keys() == {each["rule"] for each in answer["reviews"][0]["findings"]}
    assert answer["pages"]["gpu-portable/all"]["title"] == "The amount of `gpu` is the word all"
    assert "Docker understands `all`" in answer["pages"]["gpu-portable/all"]["page"]
    assert evaluated({"object": POD, "cluster": own("false")}).json()["pages"] == {}


def test_each_shipped_rule_has_an_example_and_a_policy_to_load():
    names = [name for name in pages.shipped_rule_ids() if name not in RULES_OF_FILES]
    for begin in range(0, len(names), _MOST_RULES):
        named = names[begin : begin + _MOST_RULES]
        rules = rules_of_denial("\n".join(f"denied ({name})" for name in named), "object")
        assert [rule["rule"] for rule in rules] == named
        for rule in rules:
            assert rule["example"], rule["rule"]
            assert rule["policies"], rule["rule"]
            for each in rule["policies"]:
                assert f"name: {each['name']}" in each["text"], rule["rule"]


@pytest.mark.parametrize(
    "text",
    [
        PRINTED.replace("gpu-portable/all", "other/rule"),
        'pods "p" is forbidden: exceeded quota: gpus',
        json.dumps({**STATUS, "message": "no"}),
    ],
)
def test_a_denial_by_another_webhook_is_recognized(text):
    (error,) = evaluated({"object": text}).json()["errors"]
    assert error["message"].startswith("the denial names no shipped rule")


def test_an_object_that_mentions_a_rule_is_not_a_denial():
    pod = POD.replace("{name: p}", "{name: p, annotations: {why: gpu-portable/all}}")
    assert len(evaluated({"object": pod}).json()["reviews"]) == 1
