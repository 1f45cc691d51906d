"""Order, failure and parameters of validating policies, as in k8s.io/apiserver v0.36
validating/{dispatcher,validator}.go.
"""

import pytest

from tests.literals import CONFIG_MAPS, namespace, pod, policies, request, validating
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.evaluation.request_context import request_context
from webhook.evaluation.review_options import ReviewOptions
from webhook.evaluation.validating import validating_decisions
from webhook.rules.decisions import ValidationAction

CLUSTER = FilesCluster([namespace()])
POD = pod(hostNetwork=True)


def decide(found, attributes=None, cluster=CLUSTER, phase=Phase.VALIDATE, **more):
    return validating_decisions(request_context(found, attributes or request(POD), cluster, **more), phase)


class Unknowing:
    def get(self, gvk, namespace, name):
        raise LookupFailed(f"{gvk.kind} is not synced")

    def list(self, gvk, namespace, labels=""):
        raise LookupFailed(f"{gvk.kind} is not synced")

    def is_synced(self, gvk):
        return False


def test_all_policies_are_evaluated_after_a_denial_in_the_order_of_names():
    found = policies(validating("false", "true", name="b"), validating("false", name="a"))
    assert [(d.policy, d.index, d.action) for d in decide(found)] == [
        ("a", 0, "deny"),
        ("b", 0, "deny"),
        ("b", 1, "admit"),
    ]


@pytest.mark.parametrize(("policy", "action", "code"), [("Fail", "deny", 422), ("Ignore", "admit", 0)])
def test_an_error_follows_the_failure_policy(policy, action, code):
    (found,) = decide(policies(validating("object.x == 1", failurePolicy=policy)))
    assert (found.evaluation, found.action, found.code) == ("error", action, code)


def test_a_denial_carries_reason_code_and_the_bindings_actions():
    rule = {"expression": "false", "message": "spec.x: no", "reason": "BadRequest"}
    (found,) = decide(policies(validating(rule, actions=["Warn", "Audit"], annotations={"severity": "high"})))
    assert (found.reason, found.code, found.path, found.severity) == ("BadRequest", 400, "spec.x", "high")
    assert found.actions == (ValidationAction.WARN, ValidationAction.AUDIT)
    assert found.elapsed_s > 0


@pytest.mark.parametrize(
    ("annotation", "validate_phase", "mutate_phase"), [("validate", 1, 0), ("mutate", 0, 1), ("both", 1, 1)]
)
def test_a_policy_is_evaluated_only_in_its_phase(annotation, validate_phase, mutate_phase):
    found = policies(validating("true", annotations={"phase": annotation}))
    assert len(decide(found)) == validate_phase
    assert len(decide(found, phase=Phase.MUTATE)) == mutate_phase


def test_other_resources_and_policies_get_no_finding():
    found = policies(validating("false", rule={**CONFIG_MAPS, "apiGroups": ["*"], "resources": ["*"]}))
    own = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    assert decide(found, request(own, resource="validatingadmissionpolicies")) == ()
    assert decide(policies(validating("false")), request({"apiVersion": "v1", "kind": "Secret"})) == ()


def test_a_binding_restricts_its_policy():
    chosen = {"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}
    assert decide(policies(validating("false", binding=chosen))) == ()


PARAM = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limit", "namespace": "team"},
    "data": {"n": "1"},
}
KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
BY_NAME = {"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}}


def test_a_decision_names_its_param():
    (found,) = decide(
        policies(validating("params.data.n == '2'", paramKind=KIND, binding=BY_NAME)),
        cluster=FilesCluster([namespace(), PARAM]),
    )
    assert (found.param, found.action) == ("team/limit", "deny")


def test_a_param_next_to_the_policies_applies_if_the_cluster_has_none():
    found = policies(validating("params.data.n == '2'", paramKind=KIND, binding=BY_NAME), PARAM)
    assert decide(found)[0].action == "deny"
    other = {**PARAM, "data": {"n": "2"}}
    assert decide(found, cluster=FilesCluster([namespace(), other]))[0].action == "admit"


def test_a_missing_param_denies_with_every_action():
    (found,) = decide(policies(validating("true", paramKind=KIND, binding=BY_NAME, actions=["Warn"])))
    assert (found.action, found.actions, found.index) == ("deny", (ValidationAction.DENY,), None)
    assert found.message.startswith("failed to configure binding: no params found")


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ({"name": "limits"}, "no ConfigMap `limits` in namespace `team`"),
        ({"name": "limits", "namespace": "site"}, "no ConfigMap `limits` in namespace `site`"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "no ConfigMap with labels `a in (b)` in namespace `team`"),
        ({"selector": {}}, "no ConfigMap in namespace `team`"),
    ],
)
def test_a_missing_param_is_named_but_not_in_the_text_of_an_api_server(reference, named):
    maps = {"apiVersion": "v1", "kind": "ConfigMap"}
    binding = {"paramRef": {**reference, "parameterNotFoundAction": "Deny"}}
    loaded = policies(validating("true", paramKind=maps, binding=binding))
    (found,) = decide(loaded)
    text = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert found.message == f"{text}: {named}"
    (found,) = decide(loaded, options=ReviewOptions(api_server_text=True))
    assert found.message == text


def test_an_unknown_param_is_an_error_of_the_binding_or_the_policy():
    by_param = policies(validating("true", paramKind=KIND, binding=BY_NAME))
    assert decide(by_param, cluster=Unknowing())[0].message == "failed to configure binding: ConfigMap is not synced"
    constraints = {
        "resourceRules": [CONFIG_MAPS | {"resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"a": "b"}},
    }
    by_namespace = policies(validating("true", matchConstraints=constraints))
    (found,) = decide(by_namespace, cluster=Unknowing())
    assert (found.message, found.binding) == ("failed to configure policy: Namespace is not synced", "")
    by_object = policies(validating("namespaceObject.metadata.name == 'x'"))
    assert decide(by_object, cluster=Unknowing())[0].message == "Namespace is not synced"
    assert decide(by_object, cluster=FilesCluster())[0].message == 'namespaces "team" not found'


def test_a_cluster_scoped_param_has_no_namespace():
    kind = {"apiVersion": "v1", "kind": "Namespace"}
    chosen = {"paramRef": {"name": "team", "namespace": "x", "parameterNotFoundAction": "Deny"}}
    (found,) = decide(policies(validating("true", paramKind=kind, binding=chosen)))
    assert "must not be provided for a cluster-scoped" in found.message


@pytest.mark.parametrize(
    ("group", "kind"),
    [("storage.k8s.io", "CSIDriver"), ("storage.k8s.io", "StorageClass"), ("kueue.x-k8s.io", "ResourceFlavor")],
)
def test_params_of_a_cluster_scoped_kind_are_found(group, kind):
    written = {"apiVersion": f"{group}/v1", "kind": kind}
    found = policies(validating("params.metadata.name == 'limit'", paramKind=written, binding=BY_NAME))
    (decision,) = decide(found, cluster=FilesCluster([namespace(), {**written, "metadata": {"name": "limit"}}]))
    assert (decision.action, decision.param) == ("admit", "limit")


def test_custom_params_without_a_namespace_are_clusterwide():
    limit = {"apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "limit"}, "n": 1}
    kind = {"apiVersion": "example.com/v2", "kind": "Limit"}
    rule = {"expression": "false", "messageExpression": "string(params.apiVersion)"}
    found = policies(validating(rule, paramKind=kind, binding=BY_NAME))
    (decision,) = decide(found, cluster=FilesCluster([namespace(), limit]))
    assert (decision.param, decision.message) == ("limit", "example.com/v2")


def test_namespaced_params_need_a_namespace():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    rule = {**CONFIG_MAPS, "resources": ["nodes"]}
    (found,) = decide(policies(validating("true", rule=rule, paramKind=KIND, binding=BY_NAME)), request(node))
    assert "cannot use namespaced paramRef" in found.message


def test_audit_annotations_have_their_own_decision():
    audits = [{"key": "k", "valueExpression": "' v '"}, {"key": "none", "valueExpression": "''"}]
    _, found = decide(policies(validating("true", auditAnnotations=audits)))
    assert found.audit_annotations == {"k": "v"}


def test_a_long_audit_value_is_cut_between_characters():
    text = "é" * 6000
    audits = [{"key": "k", "valueExpression": "string(object.spec.x)"}]
    _, found = decide(policies(validating("true", auditAnnotations=audits)), request(pod(x=text)))
    value = found.audit_annotations["k"]
    assert len(value.encode()) <= 10 * 1024
    assert text.startswith(value)


DEEP = "object.spec.l.all(a, object.spec.l.all(b, object.spec.l.all(c, a + b + c >= 0)))"
LONG = request(pod(l=list(range(70))))


def test_a_used_up_budget_ends_the_policy():
    found = decide(policies(validating(*[DEEP] * 30)), LONG)
    assert len(found) == 1
    assert found[0].message.startswith("validation failed due to running out of cost budget")


def test_messages_above_the_budget_deny_every_rule():
    """In validator.go, an error in a message above the budget fails every validation, also validations that hold."""
    rules = [{"expression": "true", "messageExpression": f"string({DEEP})"}] * 20
    found = decide(policies(validating(*rules)), LONG)
    assert {decision.message.partition(":")[0] for decision in found} == {"failed messageExpression"}


def test_conditions_above_the_budget_follow_the_failure_policy():
    conditions = [{"name": f"c{number}", "expression": DEEP} for number in range(8)]
    assert decide(policies(validating("true", matchConditions=conditions)), LONG)[0].evaluation == "error"
    assert decide(policies(validating("true", matchConditions=conditions, failurePolicy="Ignore")), LONG) == ()


def test_audit_annotations_above_the_budget_replace_all_decisions():
    audits = [{"key": f"k{number}", "valueExpression": f"string({DEEP})"} for number in range(20)]
    (found,) = decide(policies(validating(*["true"] * 3, auditAnnotations=audits)), LONG)
    assert (found.evaluation, found.index) == ("error", None)


def test_a_variable_over_its_limit_is_an_error_that_may_be_absorbed():
    variables = [{"name": "x", "expression": DEEP.replace("object.spec.l", "lists.range(120)")}]
    (found,) = decide(policies(validating("variables.x || true", variables=variables)), LONG)
    assert found.action == "admit"
    (found,) = decide(policies(validating("variables.x || false", variables=variables)), LONG)
    assert 'composited variable "x" fails to evaluate' in found.message


def test_a_deadline_that_has_passed_cannot_be_absorbed():
    (found,) = decide(policies(validating("true || object.x == 1", DEEP)), LONG, deadline=Deadline(0.0))[:1]
    assert "operation interrupted" in found.message
    variables = [{"name": "x", "expression": DEEP}]
    (found,) = decide(policies(validating("variables.x || true", variables=variables)), LONG, deadline=Deadline(0.0))
    assert "operation interrupted" in found.message


def test_without_an_authorizer_a_check_is_not_known():
    from webhook.cel.library.authorizer import ListedAuthorizer

    found = policies(validating("authorizer.requestResource.check('get').allowed()"))
    allows = ListedAuthorizer(
        [{"user": "alice", "verb": "get", "resource": "pods", "namespace": "team", "allowed": True}]
    )
    assert decide(found, authorizer=allows)[0].action == "admit"
    assert decide(found)[0].evaluation == "unknown"


def test_a_fact_with_missing_objects_makes_the_answer_unknown():
    claim = {"name": "c", "resourceClaimTemplateName": "absent"}
    sent = request(pod(resourceClaims=[claim], containers=[{"name": "m", "resources": {"claims": [{"name": "c"}]}}]))
    found = policies(
        validating(
            "variables.d.claims.all(c, !c.found || c.found)",
            "true",
            annotations={"facts": "dra"},
            variables=[{"name": "d", "expression": "dra"}],
        )
    )
    first, second = decide(found, sent)
    assert (first.evaluation, first.action) == ("unknown", "admit")
    assert first.message.startswith("not evaluated: ResourceClaimTemplate")
    assert second.evaluation == "admit"


@pytest.mark.parametrize(("policy", "action", "code"), [("Fail", "deny", 422), ("Ignore", "admit", 0)])
def test_an_object_that_only_an_api_server_can_convert_is_reported_as_an_error(policy, action, code):
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v2"],
        "operations": ["*"],
        "resources": ["horizontalpodautoscalers"],
    }
    scaler = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
    (found,) = decide(policies(validating("true", rule=rule, failurePolicy=policy)), request(scaler))
    assert (found.evaluation, found.action, found.code, found.warns_user) == ("error", action, code, True)
    assert found.message == (
        "the policy names v2 of horizontalpodautoscalers.autoscaling, the object came as v1, and claimgate cannot convert "
        "it: name v1 in matchConstraints of the policy, too, or register the webhook for v2 alone, so that the API server "
        "converts"
    )


def test_an_object_in_a_file_that_needs_conversion_is_not_evaluated():
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1beta1"], "operations": ["*"], "resources": ["gadgets"]}
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    (found,) = decide(policies(validating("false", rule=rule)), request(gadget, is_plain=True))
    assert (found.evaluation, found.action, found.warns_user) == ("unknown", "admit", False)
    assert found.message.startswith(
        "not evaluated: the policy names v1beta1 of gadgets.example.com, the object came as v1"
    )


def test_an_equivalent_version_is_converted_to_the_version_of_the_rule():
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1beta1"],
        "operations": ["*"],
        "resources": ["leases"],
    }
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    text = "object.apiVersion + ' ' + request.resource.version + ' ' + request.requestResource.version"
    message = {"expression": "false", "messageExpression": f"string({text})"}
    found = policies(
        validating(
            message, rule=rule, matchConditions=[{"name": "c", "expression": "request.resource.version == 'v1'"}]
        )
    )
    (decision,) = decide(found, request(lease))
    assert decision.message == "coordination.k8s.io/v1beta1 v1beta1 v1"
