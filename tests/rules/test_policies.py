"""Policies with checks: their form, and the results of problems and of rules that were not evaluated."""

import re
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest

from tests.literals import TABLE
from webhook.admission.enforce import FAILURE_KEY, verdict_of_decisions
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Operation, Phase
from webhook.cel import Environment, compiled_engine
from webhook.cluster.files import FilesCluster
from webhook.errors import PolicyError
from webhook.evaluation.request_context import request_context
from webhook.evaluation.review_options import ReviewOptions
from webhook.evaluation.validating import validating_decisions
from webhook.facts.packages import FactPackage
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.input import shipped
from webhook.policy.declarations import with_problems
from webhook.policy.load import Options, load_documents
from webhook.rules.declarations import PROBLEM
from webhook.yamltext import yamlfile

REGISTRY = FactRegistry((FactPackage(module="tests.rules.shop", facts=("shop",), groups=("shop",), rules=("checks",)),))
EVERY = """
- expression: problems.size() == 0
  messageExpression: problems
"""


def policies(
    validations=EVERY, annotations="", *, checks="shop", resources="configmaps", variables="[]", rules=(), absent="Deny"
):
    text = f"""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: shop
  annotations: {{claimgate.dev/checks: "{checks}", {annotations}}}
spec:
  paramKind: {{apiVersion: v1, kind: ConfigMap}}
  matchConstraints:
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, DELETE], resources: [{resources}]}}
  variables: {variables}
  validations:
{indent(validations.strip(), "  ")}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: shop}}
spec:
  policyName: shop
  validationActions: [Deny]
  paramRef: {{name: shop, namespace: shop, parameterNotFoundAction: {absent}}}
"""
    return load_documents(yamlfile.load(text), Options(table=TABLE, registry=REGISTRY), rules=rules)


def param(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop", "namespace": "shop"}, "data": data}


def article(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": data}


def said(found, obj, *context, operation=Operation.CREATE):
    attributes = attributes_of_object(obj, TABLE.row, operation=operation)
    return validating_decisions(request_context(found, attributes, FilesCluster(context)), Phase.VALIDATE)


def codes(decision):
    return [problem.code for problem in decision.problems]


def test_a_problem_that_denies_is_the_decision():
    (decision,) = said(policies(), article(), param())
    assert (decision.action, decision.evaluation, decision.code) == ("deny", "deny", 422)
    assert (decision.rule, decision.path, codes(decision)) == (
        "shop/price-required",
        "data.price",
        ["shop/price-required"],
    )
    assert decision.message == "data.price: must be set: set a price"


def test_a_problem_that_only_warns_does_not_deny():
    (decision,) = said(policies(), article(price="1.5"), param())
    assert (decision.action, decision.actions, codes(decision)) == ("deny", ("Warn",), ["shop/price-round"])


def test_a_decision_is_as_severe_as_the_worst_of_its_rules():
    found = policies(annotations="claimgate.dev/severity: high")
    denied, warned = said(found, article(), param()), said(found, article(price="1.5"), param())
    assert [each.severity for each in (*denied, *warned)] == ["high", "medium"]
    assert [found.validating[0].severity_of_rule(f"shop/{rule}") for rule in ("shelf-exists", "price-round")] == [
        "high",
        "medium",
    ]


def test_one_decision_denies_and_one_warns():
    found = policies(annotations="claimgate.dev/missing: deny")
    denied, warned = said(found, article(price="1", shelf="s", label="l"), param())
    assert (denied.actions, codes(denied)) == (("Deny",), ["shop/shelf-exists"])
    assert (warned.actions, codes(warned)) == (("Warn",), ["shop/label-exists"])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"deny": "shop/price-round"}, [("deny", ("Deny",))]),
        ({"off": "shop/price-round"}, [("admit", ("Deny",))]),
        ({"audit": "shop/price-round"}, [("deny", ("Audit",))]),
        ({"advice": "shop/price-round"}, [("admit", ("Deny",))]),
    ],
)
def test_params_choose_the_action_of_a_rule(data, expected):
    found = said(policies(), article(price="1.5"), param(**data))
    assert [(each.action, each.actions) for each in found] == expected


def test_audited_findings_are_annotations_and_not_shown_to_users():
    attributes = attributes_of_object(article(price="1.5"), TABLE.row)
    cluster = FilesCluster([param(audit="shop/price-round")])
    verdict = answer_request(attributes, policies(), cluster, phase=Phase.VALIDATE)
    assert (verdict.allowed, verdict.warnings) == (True, ())
    assert [*verdict.audit_annotations] == [FAILURE_KEY]


ADVICE = ReviewOptions(advice=True)
FILTERED = """
- expression: problems.all(p, p.code != code("shop/price-round"))
  messageExpression: problems.filter(p, p.code == code("shop/price-round"))
"""
TEXT = """
- expression: problems.size() == 0
  message: is wrong
"""


@pytest.mark.parametrize("validations", [EVERY, FILTERED])
def test_problems_that_cel_selects_keep_the_fields_that_cel_does_not_see(validations):
    (decision,) = said(policies(validations), article(price="1.5"), param())
    assert [problem.words for problem in decision.problems] == [("1.5",)]


@pytest.mark.parametrize(
    ("validations", "expected"),
    [
        pytest.param(EVERY, [("Advice",)], id="reported problems"),
        pytest.param(FILTERED, [("Advice",)], id="a list of problems"),
        pytest.param(TEXT, [], id="a text, which would deny because of advice"),
    ],
)
def test_advice_is_reported_on_request_and_changes_no_verdict(validations, expected):
    attributes = attributes_of_object(article(price="1.5"), TABLE.row)
    cluster, found = FilesCluster([param(advice="shop/price-round")]), policies(validations)
    plain = answer_request(attributes, found, cluster, phase=Phase.VALIDATE)
    asked = answer_request(attributes, found, cluster, phase=Phase.VALIDATE, options=ADVICE)
    for verdict in (plain, asked):
        assert (verdict.allowed, verdict.warnings, verdict.audit_annotations) == (True, (), {})
    assert [each.actions for each in plain.decisions if each.action == "deny"] == []
    assert [each.actions for each in asked.decisions if each.action == "deny"] == expected


def test_without_its_param_a_policy_follows_the_catalogue():
    round_price, no_price = (said(policies(absent="Allow"), each) for each in (article(price="1.5"), article()))
    assert [(each.actions, each.param, each.rule) for each in round_price] == [(("Warn",), "", "shop/price-round")]
    assert [(each.actions, each.rule) for each in no_price] == [(("Deny",), "shop/price-required")]
    (decision,) = said(policies(), article(price="1.5"))
    assert decision.message.startswith("failed to configure binding: no params found")


def test_without_its_param_a_policy_reads_empty_data():
    written = '- expression: params.?data.?shop.orValue("") == "closed" || problems.size() == 0'
    (decision,) = said(policies(written, absent="Allow"), article())
    assert (decision.action, decision.evaluation) == ("deny", "deny")


def test_a_deleted_object_has_no_problems():
    (decision,) = said(policies(), article(), param(), operation=Operation.DELETE)
    assert decision.action == "admit"


def test_paths_inside_templates_are_those_of_the_whole_object():
    found = policies(annotations="claimgate.dev/expand: pods", resources="pods")
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {}}}}
    (decision,) = said(found, job, param())
    assert (decision.path, decision.problems[0].path) == ("spec.template.data.price", "spec.template.data.price")
    assert decision.message == "spec.template.data.price: must be set: set a price"


def test_a_policy_may_write_the_text_itself():
    found = policies("""
- expression: problems.all(p, p.code != code("shop/price-round"))
  messageExpression: problems.map(p, p.path + " of " + p.found).join(", ")
""")
    (decision,) = said(found, article(price="1.5"), param())
    assert (decision.message, decision.problems, decision.rule) == ("data.price of `1.5`", (), "shop")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('problems.exists(p, p.code == code("shop/price-roung"))', "unknown rule `shop/price-roung`: did you mean `shop/price-round`?"),
        ('problems.exists(p, p.code == code("zzz"))', "unknown rule `zzz`: expected one of shop/price-required, "),
        ('problems.exists(p, p.code == code("shop/" + "x"))', "code takes a literal"),
        ('problems.exists(p, p.code == "shop/price-round")', "found no matching overload for '_==_' applied to '(claimgate.Code, string)'"),
        ("problems.exists(p, p.cod == p.code)", "undefined field 'cod'"),
    ],
)  # fmt: skip
def test_codes_are_checked_when_a_policy_is_loaded(expression, expected):
    with pytest.raises(PolicyError) as caught:
        policies(f"- expression: '{expression}'")
    assert expected in str(caught.value)


def test_unknown_groups_are_refused():
    with pytest.raises(PolicyError, match="expected one of: shop"):
        policies(checks="shop, shops")


def test_without_checks_there_are_no_problems():
    with pytest.raises(PolicyError, match="undeclared reference to 'problems'"):
        policies(checks="")


def test_a_policy_with_checks_is_not_portable_and_watches_their_lookups():
    found = policies()
    assert found.policies[0].obstacles == ("uses checks (shop), which only claimgate makes",)
    assert ("", "Node") in {interest.kind for interest in found.interests()}


def test_a_rule_with_a_missing_object_is_not_evaluated():
    (decision, _) = said(policies(), article(price="1", shelf="s", label="l"), param())
    assert (decision.action, decision.evaluation, decision.rule) == ("admit", "unknown", "shop/shelf-exists")
    assert decision.message == "data.shelf: not evaluated: Node s not found"
    assert [str(each) for each in decision.missing] == ["Node s not found"]


def test_a_rule_that_does_not_read_a_missing_object_is_evaluated():
    deny = """
- expression: problems.all(p, p.action != "Deny")
  messageExpression: problems.filter(p, p.action == "Deny")
"""
    (decision,) = said(policies(deny), article(price="1", label="l"), param())
    assert decision.evaluation == "admit"
    (decision,) = said(policies(deny), article(price="1", label="l", shelf="s"), param())
    assert (decision.evaluation, codes(decision)) == ("unknown", ["shop/shelf-exists"])
    (decision,) = said(policies(), article(price="1", shelf="s"), param(off="shop/shelf-exists"))
    assert decision.evaluation == "admit"


def test_a_text_names_all_missing_objects():
    found = policies('- {expression: problems.size() == 0, messageExpression: "string(problems.size())"}')
    found = said(found, article(price="1", shelf="s", label="l"), param())
    assert [codes(decision) for decision in found] == [["shop/shelf-exists"], ["shop/label-exists"]]


@pytest.mark.parametrize(("word", "denies", "warns"), [("admit", 0, 0), ("deny", 1, 0), ("warn", 0, 1)])
def test_every_rule_has_one_word_for_how_it_fails_closed(word, denies, warns):
    found = policies(annotations=f"claimgate.dev/missing: {word}")
    obj = article(price="1", shelf="s")
    attributes = attributes_of_object(obj, TABLE.row)
    verdict = verdict_of_decisions(said(found, obj, param()), attributes)
    assert (not verdict.allowed, len(verdict.warnings)) == (bool(denies), warns)
    assert {each.evaluation for each in verdict.decisions} == {"unknown"}


def test_a_failing_expression_makes_every_problem_unknown():
    found = policies('- {expression: "problems.all(p, int(p.path) == 0)"}')
    (decision,) = said(found, article(price="1", shelf="s"), param())
    assert (decision.evaluation, codes(decision)) == ("unknown", ["shop/shelf-exists"])


@pytest.mark.parametrize(
    ("validation", "expected"),
    [
        ("shop.shelf || true", ["Node s not found"]),
        ("shop.label || true", []),
        ("variables.label || true", []),
        ("variables.both || true", ["Node s not found"]),
        ("[shop].all(s, s.label)", ["Node s not found"]),
    ],
)
def test_a_rule_is_unknown_only_if_it_reads_a_missing_part_of_a_fact(validation, expected):
    found = policies(
        f"- expression: '{validation}'",
        annotations="claimgate.dev/facts: shop",
        variables="[{name: label, expression: shop.label}, {name: both, expression: variables.label && shop.shelf}]",
    )
    (decision,) = said(found, article(shelf="s"), param())
    assert [str(each) for each in decision.missing] == expected
    assert decision.evaluation == ("unknown" if expected else "admit")


def test_rules_name_the_validations_of_a_policy():
    text = "{group: prices, source: s, policies: {shop: [{rule: none, title: T, why: W}]}}"
    found = policies('- {expression: "problems.size() == 0", message: closed}', rules=yamlfile.load(text))
    denied, admitted = (said(found, obj, param())[0] for obj in (article(), article(price="1")))
    assert (denied.rule, admitted.rule) == ("prices/none", "prices/none")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{group: g, policies: {other: []}}", "policies.other: no policy `other` is loaded"),
        ("{group: g, policies: {shop: []}}", "policies.shop: declares 0 rules for the 1 validations of the policy"),
        ("{group: g}", "policies: must be a map of policies"),
    ],
)
def test_rules_fit_their_policies(text, expected):
    with pytest.raises(PolicyError) as caught:
        policies(rules=yamlfile.load(text))
    assert expected in str(caught.value)


def test_each_rule_of_a_policy_is_declared_once():
    text = "{group: g, source: s, policies: {shop: [{rule: a, title: T, why: W}]}}"
    with pytest.raises(PolicyError, match="the rules of policy `shop` are declared twice"):
        policies(rules=[*yamlfile.load(text), *yamlfile.load(text)])


README = (Path(shipped.policies_folder()) / "README.md").read_text()


def test_the_readme_names_every_field_of_a_problem():
    section = README[README.index("## Checks") : README.index("## Facts")]
    assert set(PROBLEM.fields) <= set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


@pytest.mark.parametrize("example", re.findall(r"^    (problems.*)$", README, re.MULTILINE))
def test_the_examples_of_the_readme_compile(example):
    place = with_problems(Environment(), SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups))
    assert compiled_engine().compile(example, place)


def test_a_bug_in_a_check_is_reported_as_a_bug():
    """CEL's `||` would absorb a missing attribute."""
    attributes = replace(attributes_of_object(article(price=5), TABLE.row), is_decoded=True)
    absorbs = policies('- {expression: "object == null || problems.size() == 0", message: closed}')
    for loaded, error in ((policies(), "AttributeError"), (absorbs, "RuntimeError")):
        (decision,) = validating_decisions(request_context(loaded, attributes, FilesCluster([param()])), Phase.VALIDATE)
        assert (decision.action, decision.evaluation) == ("deny", "error")
        assert f"failed ({error} in " in decision.message
