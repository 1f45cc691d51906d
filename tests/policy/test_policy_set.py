"""The set as a value: index, look-up kinds, webhook rules, reload."""

from time import perf_counter

import pytest

from tests.literals import CONFIG_MAPS, OPTIONS, PODS, TABLE, mutating, pod, policies, request, validating
from webhook.apimachinery.attributes import GroupVersionKind, Phase
from webhook.cel import celpy_engine
from webhook.cluster.interest import interest_in_fields
from webhook.errors import PolicyError
from webhook.manifests.annotations import expand_updates_annotation
from webhook.policy.load import Options, load_documents, load_policy_set, refusal_of_manifest
from webhook.yamltext import yamlfile


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (PODS, True),
        ({**PODS, "apiGroups": ["*"]}, True),
        ({**PODS, "resources": ["*"]}, True),
        ({**PODS, "apiGroups": ["*"], "resources": ["*/*"]}, True),
        ({**PODS, "resources": ["pods/exec"]}, False),
        ({**PODS, "operations": ["DELETE"]}, False),
        ({**PODS, "resources": ["services"]}, False),
        ({**PODS, "apiGroups": ["apps"]}, False),
    ],
)
def test_the_index_finds_the_policies_that_may_match(rule, found):
    assert bool(policies(validating("true", rule=rule)).validating_for(request(pod()), Phase.VALIDATE)) is found


def test_candidates_come_once_and_in_order():
    several = {"resourceRules": [PODS, {**PODS, "resources": ["*"]}]}
    found = policies(validating("true", name="b", matchConstraints=several), validating("true", name="a"))
    assert [each.policy.name for each in found.validating_for(request(pod()), Phase.VALIDATE)] == ["a", "b"]


def test_a_resource_in_two_groups_is_listed_once():
    rule = {"apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["events"]}
    event = {"apiVersion": "v1", "kind": "Event"}
    assert policies(validating("true", rule=rule)).validating_for(request(event), Phase.VALIDATE)


def test_the_kinds_that_a_view_must_hold():
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    chosen = {"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}}
    found = policies(
        validating("true", paramKind=kind, binding=chosen),
        validating("true", name="f", annotations={"facts": "dra, gpu"}),
    ).interests()
    assert {each.gvk.kind for each in found} >= {"Namespace", "Limit", "ResourceClaimTemplate"}
    assert policies().interests() == (interest_in_fields(GroupVersionKind("", "v1", "Namespace"), "metadata.labels"),)


def test_every_expression_can_be_prepared():
    found = policies(
        validating(
            {"expression": "variables.x == 1", "messageExpression": "'m'"},
            variables=[{"name": "x", "expression": "1"}],
            matchConditions=[{"name": "c", "expression": "true"}],
            auditAnnotations=[{"key": "k", "valueExpression": "'v'"}],
        ),
        mutating("Object{}"),
    )
    assert [each.source for policy in found.policies for each in policy.expressions()] == [
        "true", "1", "variables.x == 1", "'m'", "'v'", "Object{}",
    ]  # fmt: skip
    found.compile_ahead_of_requests()


def test_the_reason_why_a_policy_is_not_portable_is_reported():
    rule = {"expression": "dra != null", "reason": "BadRequest"}
    (own,) = policies(validating(rule, annotations={"facts": "dra", "expand": "pods", "phase": "both"})).validating
    assert [text.split(" ")[0] for text in own.obstacles] == ["uses", "expands", "is", "denies"]
    assert policies(validating("true"), mutating("Object{}")).validating[0].obstacles == ()


def test_a_policy_about_changes_is_exported_with_its_condition():
    own, binding = validating("object.spec.x == 1", annotations={"updates": "spec", "severity": "low"})
    assert [text.split(" ")[0] for text in policies([own, binding]).validating[0].obstacles] == ["leaves"]
    exported = expand_updates_annotation(own)
    assert exported["metadata"]["annotations"] == {"claimgate.dev/severity": "low"}
    (alone,), (written,) = (policies([each, binding]).validating for each in (own, exported))
    assert [(each.name, each.expression.source) for each in alone.conditions] == [
        (each.name, each.expression.source) for each in written.conditions
    ]
    assert written.obstacles == ()
    assert expand_updates_annotation(exported) is exported


def test_a_folder_leaves_out_suites_cases_and_foreign_files(tmp_path):
    policy, binding = validating("true")
    (tmp_path / "policy.yaml").write_text(yamlfile.dump(policy))
    (tmp_path / "list.yaml").write_text(yamlfile.dump({"apiVersion": "v1", "kind": "List", "items": [binding]}))
    (tmp_path / "suite.yaml").write_text("cases: []")
    (tmp_path / "kustomization.yaml").write_text("resources: [policy.yaml]")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "x.yaml").write_text("anything: goes")
    (tmp_path / "other.yaml").write_text(
        yamlfile.dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    )
    found = load_policy_set([tmp_path], OPTIONS)
    assert [(policy.name, len(policy.bindings)) for policy in found.policies] == [("v", 1)]
    assert found.params == ()
    with pytest.raises(PolicyError, match="not a Kubernetes object"):
        load_policy_set([tmp_path / "suite.yaml"], OPTIONS)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("Deployment", "deployments"),
        ("deployment", "deployments"),
        ("Deployments", "deployments"),
        ("NetworkPolicy", "networkpolicies"),
        ("PyTorchJob", "pytorchjobs"),
        ("Pod/status", "pods/status"),
        ("Widget", "widgets"),
        ("endpoints", ""),
        ("widget", ""),
        ("*", ""),
        ("pods/*", ""),
    ],
)
def test_a_kind_in_place_of_a_resource_is_a_mistake(name, right, tmp_path):
    """kube-apiserver accepts the policy and never evaluates it, so the loader of files must report this."""
    policy, binding = validating("true", rule={**CONFIG_MAPS, "apiGroups": ["*"], "resources": ["pods/log", name]})
    (tmp_path / "policy.yaml").write_text(f"{yamlfile.dump(policy)}---\n{yamlfile.dump(binding)}")
    if not right:
        assert load_policy_set([tmp_path], OPTIONS).policies
        return
    with pytest.raises(PolicyError) as error:
        load_policy_set([tmp_path], OPTIONS)
    (problem,) = error.value.problems
    assert (problem.path, problem.line > 1) == ("spec.matchConstraints.resourceRules[0].resources[1]", True)
    assert problem.message.startswith(f"`{name}` matches nothing, ")
    assert problem.message.endswith(f": write `{right}`")
    assert policies(policy, binding).policies


def test_webhook_configurations_beside_policies_are_ignored():
    hook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    assert policies(hook).policies == ()


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_older_versions_are_read(version):
    policy, binding = validating("true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    old = f"admissionregistration.k8s.io/{version}"
    binding["spec"]["paramRef"] = {"name": "p"} | (
        {} if version == "v1alpha1" else {"parameterNotFoundAction": "Allow"}
    )
    found = policies({**policy, "apiVersion": old}, {**binding, "apiVersion": old})
    assert found.validating[0].bindings[0].param_source.denies_absence is (version == "v1alpha1")


def test_an_engine_can_be_a_name_or_an_object():
    from webhook.yamltext.yamlfile import Document

    documents = [Document(value) for value in validating("object.metadata.name == 'p'")]
    for engine in ("celpy", celpy_engine()):
        found = load_documents(documents, Options(engine=engine, table=TABLE))
        assert found.validating[0].rules[0].expression.program is not None
    assert refusal_of_manifest(documents[1].value, OPTIONS) == ""


def test_a_thousand_policies_for_other_kinds_cost_nothing():
    """The bound is loose, because the machine may be busy. The benchmark has the figures."""
    found = policies(*[validating("true", name=f"p{number}", rule=CONFIG_MAPS) for number in range(1000)])
    sent = request(pod())
    start = perf_counter()
    for _ in range(1000):
        found.validating_for(sent, Phase.VALIDATE)
    assert (perf_counter() - start) / 1000 < 200e-6


def test_a_lazy_policy_is_compiled_on_first_use_and_its_mistakes_become_errors():
    from msgspec.structs import replace

    from tests.literals import namespace
    from webhook.cluster.files import FilesCluster
    from webhook.evaluation.request_context import request_context
    from webhook.evaluation.validating import validating_decisions
    from webhook.yamltext.yamlfile import Document

    lazy = replace(OPTIONS, lazy=True)
    documents = [Document(value) for value in validating("object.metadata.name == 'p'", "1 +")]
    found = load_documents(documents, lazy)
    good, bad = validating_decisions(
        request_context(found, request(pod()), FilesCluster([namespace()])), Phase.VALIDATE
    )
    assert (good.action, bad.action, bad.evaluation) == ("admit", "deny", "error")
    assert "Syntax error" in bad.message
    assert found.validating[0].body() is found.validating[0].body()
    with pytest.raises(PolicyError, match="Syntax error"):
        load_documents(documents, OPTIONS)


def test_a_lazy_load_still_reports_invalid_expressions():
    from msgspec.structs import replace

    from webhook.yamltext.yamlfile import Document

    documents = [Document(value) for value in validating("true", failurePolicy="Maybe")]
    with pytest.raises(PolicyError, match="failurePolicy"):
        load_documents(documents, replace(OPTIONS, lazy=True))
