"""Every kind of mistake in a policy file gives one clear error at its place, and nothing is loaded."""

import pytest

from webhook.errors import PolicyError
from webhook.policy.load import Options, load_documents, load_policy_set
from webhook.workloads import table
from webhook.yamltext import yamlfile

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: v
  annotations: {}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    matchPolicy: Equivalent
    namespaceSelector: {matchLabels: {a: b}}
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [pods]
  matchConditions:
  - name: c
    expression: "true"
  variables:
  - name: x
    expression: "1"
  validations:
  - expression: variables.x == 1
    message: refused
    messageExpression: "'no'"
    reason: Invalid
  auditAnnotations:
  - key: k
    valueExpression: "'v'"
"""
MUTATING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: m}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{}"}
"""
BINDING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec:
  policyName: v
  validationActions: [Deny]
  paramRef:
    name: p
    parameterNotFoundAction: Deny
  matchResources:
    objectSelector: {}
"""

# (what is wrong, in which text, what is replaced, by what, line:column, path, message)
MISTAKES = [
    ("no YAML", POLICY, "spec:\n", "spec: [\n", "", "", "not YAML"),
    ("a tab", POLICY, "  failurePolicy", "\tfailurePolicy", "7:1", "", "not YAML"),
    ("a key twice", POLICY, "  failurePolicy: Fail\n", "  failurePolicy: Fail\n  failurePolicy: Ignore\n", "8:", "spec", "twice"),
    ("no object", POLICY, POLICY, "just text", "1:1", "", "not a Kubernetes object: expected apiVersion and kind"),
    ("no kind", POLICY, "kind: ValidatingAdmissionPolicy\n", "", "1:1", "", "not a Kubernetes object"),
    ("unknown kind", POLICY, "kind: ValidatingAdmissionPolicy", "kind: ValidatingPolicy", "2:1", "kind", "unknown kind `ValidatingPolicy`"),
    ("unknown version", POLICY, "k8s.io/v1\n", "k8s.io/v2\n", "1:1", "apiVersion", "unknown version"),
    ("no name", MUTATING, "{name: m}", "{}", "3:1", "metadata.name", "Required value"),
    ("a bad name", MUTATING, "name: m", "name: V_1", "3:12", "metadata.name", 'Invalid value: "V_1": a lowercase'),
    ("a namespace", POLICY, "  name: v\n", "  name: v\n  namespace: x\n", "5:3", "metadata.namespace", "Forbidden"),
    ("a name that is no text", POLICY, "  name: v\n", "  name: 5\n", "4:3", "metadata.name", "expected a string, found `5`"),
    ("an unknown field", POLICY, "  validations:", "  validation:", "23:3", "spec.validation", "unknown field `validation`; did you mean `validations`?"),
    ("an unknown field inside", POLICY, "    message: refused", "    mesage: refused", "25:5", "spec.validations[0].mesage", "did you mean `message`?"),
    ("a strange field", POLICY, "    message: refused", "    zzz: refused", "25:5", "spec.validations[0].zzz", "remove it, or check its indentation"),
    ("an unknown field of metadata", POLICY, "  annotations: {}", "  annotation: {}", "5:3", "metadata.annotation", "did you mean `annotations`?"),
    ("null for a rule", POLICY, '  - name: x\n    expression: "1"\n', "  - null\n", "21:5", "spec.variables[0]", "expected a map, found `null`"),
    ("yes for a name", POLICY, "  - name: x\n", "  - name: yes\n", "21:5", "spec.variables[0].name", "expected a string, found `true`"),
    ("text for a list", POLICY, "      resources: [pods]", "      resources: pods", "16:7", "spec.matchConstraints.resourceRules[0].resources", "expected a list, found `pods`"),
    ("a list for a map", POLICY, "  paramKind: {apiVersion: v1, kind: ConfigMap}", "  paramKind: []", "8:3", "spec.paramKind", "expected a map"),
    ("failurePolicy", POLICY, "failurePolicy: Fail", "failurePolicy: fail", "7:3", "spec.failurePolicy", 'Unsupported value: "fail": supported values: "Fail", "Ignore"'),
    ("matchPolicy", POLICY, "Equivalent", "Fuzzy", "10:5", "spec.matchConstraints.matchPolicy", "Unsupported value"),
    ("no constraints", MUTATING, '  matchConstraints:\n    resourceRules:\n    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}\n', "", "4:1", "spec.matchConstraints", "Required value"),
    ("no rules", POLICY, '    resourceRules:\n    - apiGroups: [""]\n      apiVersions: [v1]\n      operations: [CREATE]\n      resources: [pods]\n', "", "9:3", "spec.matchConstraints.resourceRules", "Required value"),
    ("no operations", POLICY, "      operations: [CREATE]\n", "", "13:7", "spec.matchConstraints.resourceRules[0].operations", "Required value"),
    ("an unknown operation", POLICY, "[CREATE]", "[CREATE, PATCH]", "15:28", "spec.matchConstraints.resourceRules[0].operations[1]", 'Unsupported value: "PATCH"'),
    ("* beside others", POLICY, "[CREATE]", "['*', CREATE]", "15:7", "spec.matchConstraints.resourceRules[0].operations", "if '*' is present, must not specify other operations"),
    ("a scope", POLICY, "      resources: [pods]", "      resources: [pods]\n      scope: Some", "17:7", "spec.matchConstraints.resourceRules[0].scope", "Unsupported value"),
    ("an empty resource", POLICY, "[pods]", "['']", "16:19", "spec.matchConstraints.resourceRules[0].resources[0]", "Required value"),
    ("an invalid label", POLICY, "{a: b}", "{'a b': c}", "11:25", "spec.matchConstraints.namespaceSelector.matchLabels", 'Invalid value: "a b"'),
    ("a selector operator", POLICY, "{matchLabels: {a: b}}", "{matchExpressions: [{key: a, operator: Is}]}", "11:", "spec.matchConstraints.namespaceSelector.matchExpressions[0].operator", "not a valid selector operator"),
    ("a param kind", POLICY, "kind: ConfigMap", "kind: Config_Map", "8:", "spec.paramKind.kind", "may have mixed case"),
    ("a param version", POLICY, "{apiVersion: v1,", "{apiVersion: a/b/c,", "8:", "spec.paramKind.apiVersion", "unexpected GroupVersion string"),
    ("a condition without a name", POLICY, '  - name: c\n    expression: "true"', '  - expression: "true"', "18:5", "spec.matchConditions[0].name", "Required value"),
    ("variables in a condition", POLICY, '    expression: "true"', "    expression: variables.x == 1", "19:5", "spec.matchConditions[0].expression", "undeclared reference to 'variables'"),
    ("65 conditions", POLICY, '  - name: c\n    expression: "true"\n', "".join(f"  - {{name: c{i}, expression: 'true'}}\n" for i in range(65)), "17:3", "spec.matchConditions", "Too many: 65: must have at most 64 items"),
    ("a variable's name", POLICY, "  - name: x\n", "  - name: x-y\n    expression: '1'\n  - name: x\n", "21:5", "spec.variables[0].name", "must be a valid CEL identifier"),
    ("a syntax error", POLICY, 'expression: "1"', 'expression: "1 +"', "22:5", "spec.variables[0].expression", "Syntax error"),
    ("an unknown name", POLICY, "variables.x == 1", "objekt.x == 1", "24:5", "spec.validations[0].expression", "undeclared reference to 'objekt'"),
    ("an unknown variable", POLICY, "variables.x == 1", "variables.y == 1", "24:5", "spec.validations[0].expression", "undefined field 'y'"),
    ("an unknown field of the request", POLICY, "variables.x == 1", "request.usr == ''", "24:5", "spec.validations[0].expression", "undefined field 'usr'"),
    ("types that differ", POLICY, "variables.x == 1", "variables.x == 'a'", "24:5", "spec.validations[0].expression", "no matching overload"),
    ("no bool", POLICY, "variables.x == 1", "object.spec.x", "24:5", "spec.validations[0].expression", "must evaluate to bool but got dyn"),
    ("no expression", POLICY, "variables.x == 1", "''", "24:5", "spec.validations[0].expression", "Required value: expression is not specified"),
    ("a regular expression", POLICY, "variables.x == 1", "object.a.matches('(')", "24:5", "spec.validations[0].expression", "invalid matches argument"),
    ("message of two lines", POLICY, "message: refused", 'message: "a\\nb"', "25:5", "spec.validations[0].message", "must not contain line breaks"),
    ("a blank message", POLICY, "message: refused", "message: ' '", "25:5", "spec.validations[0].message", "must be non-empty if specified"),
    ("a messageExpression that is no text", POLICY, "\"'no'\"", "'1'", "26:5", "spec.validations[0].messageExpression", "must evaluate to string but got int"),
    ("authorizer in a messageExpression", POLICY, "\"'no'\"", "string(authorizer)", "26:5", "spec.validations[0].messageExpression", "undeclared reference to 'authorizer'"),
    ("a reason", POLICY, "reason: Invalid", "reason: Unauthorized", "27:5", "spec.validations[0].reason", "Unsupported value"),
    ("an audit key", POLICY, "  - key: k", "  - key: a b", "29:5", "spec.auditAnnotations[0].key", 'Invalid value: "v/a b"'),
    ("an audit value", POLICY, "\"'v'\"", "'1'", "30:5", "spec.auditAnnotations[0].valueExpression", "must evaluate to one of [string null_type] but got int"),
    ("an unknown annotation", POLICY, "annotations: {}", "annotations: {claimgate.dev/expnd: pods}", "5:", 'metadata.annotations["claimgate.dev/expnd"]', "did you mean `claimgate.dev/expand`?"),
    ("an unknown fact", POLICY, "annotations: {}", "annotations: {claimgate.dev/facts: gpus}", "5:", 'metadata.annotations["claimgate.dev/facts"]', "expected one of: podSets, gpu"),
    ("updates", POLICY, "annotations: {}", "annotations: {claimgate.dev/updates: status}", "5:", 'metadata.annotations["claimgate.dev/updates"]', "expected one of: spec"),
    ("a phase", POLICY, "annotations: {}", "annotations: {claimgate.dev/phase: later}", "5:", 'metadata.annotations["claimgate.dev/phase"]', "expected one of: validate, mutate, both"),
    ("expansion without pods", POLICY.replace("[pods]", "[services]"), "annotations: {}", "annotations: {claimgate.dev/expand: pods}", "5:", 'metadata.annotations["claimgate.dev/expand"]', "names pods of the core group"),
    ("no reinvocationPolicy", MUTATING, "  reinvocationPolicy: Never\n", "", "4:1", "spec.reinvocationPolicy", "Required value"),
    ("a mutation on DELETE", MUTATING, "[CREATE]", "[DELETE]", "7:5", "spec.matchConstraints.resourceRules.operations", 'Unsupported value: "DELETE"'),
    ("no mutations", MUTATING, '  mutations:\n  - patchType: ApplyConfiguration\n    applyConfiguration: {expression: "Object{}"}\n', "", "4:1", "spec.mutations", "must contain at least one item"),
    ("a patch type", MUTATING, "patchType: ApplyConfiguration", "patchType: Merge", "10:5", "spec.mutations[0].patchType", 'Unsupported value: "Merge"'),
    ("the other patch", MUTATING, "  applyConfiguration:", "  jsonPatch: {expression: ''}\n    applyConfiguration:", "11:5", "spec.mutations[0].jsonPatch", "must not be specified when patchType is ApplyConfiguration"),
    ("no Object", MUTATING, "Object{}", "object", "11:", "spec.mutations[0].applyConfiguration.expression", "must evaluate to Object but got dyn"),
    ("a dangling binding", BINDING, "policyName: v", "policyName: w", "5:3", "spec.policyName", 'Not found: "w": no ValidatingAdmissionPolicy'),
    ("no policyName", BINDING, "  policyName: v\n", "", "4:1", "spec.policyName", "Required value"),
    ("no actions", BINDING, "  validationActions: [Deny]\n", "", "4:1", "spec.validationActions", "at least one validation action is required"),
    ("Deny and Warn", BINDING, "[Deny]", "[Deny, Warn]", "6:3", "spec.validationActions", "must not contain both Deny and Warn"),
    ("an unknown action", BINDING, "[Deny]", "[Log]", "6:23", "spec.validationActions[0]", 'Unsupported value: "Log"'),
    ("an action twice", BINDING, "[Deny]", "[Deny, Deny]", "6:29", "spec.validationActions[1]", "Duplicate value"),
    ("no parameterNotFoundAction", BINDING, "    parameterNotFoundAction: Deny\n", "", "7:3", "spec.paramRef.parameterNotFoundAction", "Required value"),
    ("neither name nor selector", BINDING, "    name: p\n", "", "7:3", "spec.paramRef", "one of name or selector must be specified"),
    ("validationActions in a mutating binding", BINDING, "kind: ValidatingAdmissionPolicyBinding", "kind: MutatingAdmissionPolicyBinding", "6:3", "spec.validationActions", "unknown field `validationActions`; remove it, because it belongs to another place or kind"),
]  # fmt: skip


@pytest.fixture(scope="module")
def options():
    return Options(table=table.load_table())


@pytest.fixture
def loaded(tmp_path, options):
    def load_texts(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        return load_policy_set([tmp_path], options)

    return load_texts


def test_the_manifests_without_mistakes_load(loaded):
    found = loaded(policy=POLICY, mutating=MUTATING, binding=BINDING)
    assert [policy.name for policy in found.policies] == ["v", "m"]
    assert found.unbound_policy_names == ("m",)


@pytest.mark.parametrize(
    ("text", "old", "new", "place", "path", "message"),
    [pytest.param(*mistake[1:], id=mistake[0]) for mistake in MISTAKES],
)
def test_a_mistake_in_a_policy_is_reported_with_its_place(loaded, text, old, new, place, path, message):
    assert text.count(old) == 1
    others = {"policy": POLICY} if text is BINDING else {"binding": BINDING} if text is POLICY else {}
    with pytest.raises(PolicyError) as caught:
        loaded(**others, mistaken=text.replace(old, new))
    (problem,) = caught.value.problems
    assert message in problem.message
    assert (problem.file.endswith("mistaken.yaml"), problem.path) == (True, path)
    assert f"{problem.line}:{problem.column}".startswith(place)
    assert problem.line > 0
    assert str(problem).startswith(f"{problem.file}:{problem.line}:")


def test_there_are_at_least_forty_kinds_of_mistakes():
    assert len(MISTAKES) >= 40


def test_the_same_name_twice_names_both_places(loaded):
    with pytest.raises(PolicyError) as caught:
        loaded(a=POLICY, b=POLICY)
    (problem,) = caught.value.problems
    assert "Duplicate value" in problem.message
    assert "a.yaml:1" in problem.message
    assert problem.file.endswith("b.yaml")


def test_a_binding_is_not_dangling_if_a_file_was_not_read(loaded):
    with pytest.raises(PolicyError) as caught:
        loaded(
            a=POLICY.replace("validations:", "validation:"),
            b=BINDING,
            c=BINDING.replace("v\n", "w\n", 2).replace("b}", "c}"),
        )
    mistaken, dangling = caught.value.problems
    assert mistaken.path == "spec.validation"
    assert dangling.message.startswith('Not found: "w"')


def test_all_problems_are_reported_together(loaded):
    with pytest.raises(PolicyError) as caught:
        loaded(
            a=POLICY.replace("variables.x == 1", "foo").replace("failurePolicy: Fail", "failurePolicy: x"),
            b="- [",
            c=BINDING.replace("[Deny]", "[Log]"),
        )
    assert len(caught.value.problems) == 4


def test_a_problem_in_a_list_points_into_the_list(options):
    text = "apiVersion: v1\nkind: List\nitems:\n- " + MUTATING.replace("\n", "\n  ").replace("Never", "Often")
    with pytest.raises(PolicyError) as caught:
        load_documents(yamlfile.load(text, "list.yaml"), options)
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (8, "items[0].spec.reinvocationPolicy")


def test_a_missing_folder_is_a_problem(options, tmp_path):
    with pytest.raises(PolicyError, match="no such file or folder"):
        load_policy_set([tmp_path / "absent"], options)


def test_a_folder_without_a_policy_is_a_problem(options, tmp_path):
    (tmp_path / "params.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\n")
    with pytest.raises(PolicyError, match=f"{tmp_path}: no policy found; expected a Validating"):
        load_policy_set([tmp_path], options)
