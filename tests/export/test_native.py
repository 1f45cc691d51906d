"""A rewritten policy has the same result for a workload as the policy for its templates."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.literals import PODS, TABLE, job, namespace, policies, request, validating
from tests.policies.test_portable_kinds import TEMPLATES
from tests.rows import some_quickly
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.export.native import rewrite_as_native
from webhook.export.native_spec import PolicyRewriteError
from webhook.input import shipped
from webhook.workloads.rows import PodSetRule, Row
from webhook.workloads.table import Table
from webhook.yamltext import yamlfile

CLUSTER = FilesCluster([namespace()])
EXPAND = {"expand": "pods"}


def native(written, table=TABLE):
    policy, *bindings = written
    return list(rewrite_as_native(policy, bindings, table, (1, 36)).manifests)


def said(found, attributes, cluster=CLUSTER):
    """Count the messages of denials, and the actions of errors."""
    decisions = validating_decisions(request_context(found, attributes, cluster), Phase.VALIDATE)
    spoken = [each for each in decisions if each.evaluation != "admit"]
    return Counter(each.message if each.evaluation == "deny" else f"error: {each.action}" for each in spoken)


def shipped_policies():
    """Return the shipped policies that an API server could evaluate, except that they expand pod templates."""
    for path in sorted(shipped.policies_folder().glob("*/policy.yaml")):
        bindings = [each.value for each in yamlfile.read(path.with_name("binding.yaml"))]
        for document in yamlfile.read(path):
            policy = document.value
            names = {key.removeprefix("claimgate.dev/") for key in policy["metadata"].get("annotations", {})}
            if (
                policy["kind"].startswith("Validating")
                and "expand" in names
                and not names & {"checks", "facts", "phase"}
            ):
                name = policy["metadata"]["name"]
                yield pytest.param([policy, *(b for b in bindings if b["spec"]["policyName"] == name)], id=name)


BAD = [
    # a Pod's spec and metadata that break each rule of the shipped policies, and a valid spec and metadata
    {},
    {"containers": [{"name": "c", "image": "i"}]},
    {
        "containers": [{"name": "c", "resources": {"claims": [{"name": "x"}], "limits": {"nvidia.com/gpu": "1.5"}}}],
        "resourceClaims": [{"name": "gpu"}, {"name": "gpu", "resourceClaimName": "", "resourceClaimTemplateName": "t"}],
    },
    {
        "nodeName": "n",
        "containers": [
            {"name": "c", "resources": {"claims": [{"name": "g"}, {"name": "g"}], "requests": {"gpu": 1, "cpu": "2"}}},
            {"name": "d", "resources": {"limits": {"cpu": "1", "memory": "-1"}, "requests": {"cpu": "2"}}},
        ],
        "resourceClaims": [{"name": "g", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}, {"name": "Ü"}],
        "resources": {"claims": [{"name": "g"}]},
        "ephemeralContainers": [{"resources": {"claims": [{"name": "g"}]}}],
    },
    {"containers": None, "initContainers": None, "resourceClaims": None},
    {"containers": [{"name": "c", "resources": {"limits": None, "claims": None}}], "resourceClaims": [{}]},
]


def planted(template, inner):
    """Return an object with these values at a path with a list, or with a map by names of roles."""
    head, _, rest = template.partition(".")
    plain = head.rstrip("[]{}")
    below = [planted(rest, [each]) if rest else each for each in inner]
    if head.endswith("[]"):
        return {plain: [{"name": f"n{i}", **each} if rest else each for i, each in enumerate(below)]}
    if head.endswith("{}"):
        return {plain: dict(zip(("Worker", "Master", "P.S", "Chief", "Eval", "X"), below, strict=False))}
    return {plain: below[0]}


def merged(left, right):
    return {**left, **{k: merged(left[k], v) if isinstance(left.get(k), dict) else v for k, v in right.items()}}


def workload(row, version, rule, specs):
    made = [each if rule.embeds == "podSpec" else {"metadata": None, "spec": each} for each in specs]
    obj = {
        "apiVersion": f"{row.group}/{version}".removeprefix("/"),
        "kind": row.kind,
        "metadata": {"name": "x", **({"namespace": "team"} if row.namespaced else {})},
    }
    if rule.when and not rule.when.startswith(rule.template):
        obj = merged(obj, planted(rule.when, [{"spec": {"containers": []}}]))
    return merged(obj, planted(rule.template, made))


KINDS = [
    each
    for each in TEMPLATES
    if each.values[0].pods != "parts" and each.values[2].template and each.values[2].embeds != "object"
]


@pytest.fixture(scope="module")
def pairs():
    return {each.id: (policies(each.values[0]), policies(native(each.values[0]))) for each in shipped_policies()}


@pytest.mark.parametrize(("row", "version", "rule"), some_quickly(KINDS, 3))
def test_every_kind_has_the_same_native_answer(row, version, rule, pairs):
    spoke = 0
    for specs in (*([each] for each in BAD), BAD, BAD[::-1], [None, *BAD], []):
        if rule.template[-1] not in "]}" and not specs:
            continue
        obj = workload(row, version, rule, specs)
        for name, (before, after) in pairs.items():
            expected, found = said(before, request(obj)), said(after, request(obj))
            spoke += bool(expected)
            assert_same(expected, found, name, several="[" in rule.template or "{" in rule.template)
            stored = workload(row, version, rule, specs[1:] or [{"hostNetwork": True}])
            update = request(obj, "UPDATE", stored)
            assert_same(said(before, update), said(after, update), name, several=True)
    assert spoke


def test_patches_of_a_runtime_get_the_same_native_answer(pairs):
    """An API server drops the fields that the installed Trainer does not have, before a native policy."""
    bad = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}, {"name": "nic"}]}
    good = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}]}
    installed = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"trainer": "2.4"}}
    installed["metadata"] = {"name": "trainer", "namespace": "claimgate-system"}
    cluster = FilesCluster([namespace(), installed])

    def train_job(*specs):
        jobs = [{"name": "n", "template": {"spec": {"template": {"spec": each}}}} for each in specs]
        runtime = {"template": {"spec": {"replicatedJobs": [None, *jobs]}}}
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "t", "namespace": "team"},
            "spec": {"runtimePatches": [{"manager": "m"}, {"trainingRuntimeSpec": runtime}]},
        }

    before, after = pairs["claims-exactly-one"]
    kept, broken = request(train_job(good, good)), request(train_job(good, bad))
    assert said(after, kept, cluster) == said(before, kept, cluster) == Counter()
    assert said(after, broken, cluster) == said(before, broken, cluster)
    assert said(after, broken, cluster).total() == 1
    assert said(after, request(train_job(good, bad), "UPDATE", train_job(good, bad)), cluster) == Counter()


def assert_same(expected, found, name, *, several):
    """Fail if the results differ. Of several templates, only the first one that breaks a rule is reported, without its
    path if the message fails.
    """
    if not several:
        assert found == expected, name
    assert bool(found) == bool(expected), (name, expected, found)
    assert all(any(text.endswith(short) for text in expected) for short in found), name


# --- rare forms of expressions, on kinds of both sorts ---

JOB = job(x=1)
JOBS = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "j", "namespace": "team"},
    "spec": {
        "replicatedJobs": [
            {"name": "a", "template": {"spec": {"template": {"metadata": {"labels": {"l": "v"}}, "spec": {"x": 1}}}}},
            {"name": "b", "template": {"spec": {"template": {"spec": {"x": 2, "y": [1, 2]}}}}},
            {"name": "c", "template": {"spec": {"template": None}}},
            None,
        ]
    },
}
SWAPPED = {**JOBS, "spec": {"replicatedJobs": JOBS["spec"]["replicatedJobs"][1::-1]}}
OBJECTS = [JOB, job(x=2), job(y=[1]), job(metadata={"namespace": "own"}, x=1), {**JOB, "spec": None}, JOBS, SWAPPED]
ASKED = Table((TABLE.row("batch", "Job"), TABLE.row("jobset.x-k8s.io", "JobSet")))
"""Writing and compiling a policy for all kinds would take a second."""
DELETE = {**PODS, "operations": ["*"]}
CORNERS = {
    "a message with a path": [{"expression": "object.spec.?x.orValue(0) != 1", "message": "spec.x: is one"}],
    "a message without a path": [{"expression": "object.spec.?x.orValue(0) != 1", "message": "no ones"}],
    "no message": ["object.spec.?x.orValue(0) != 1"],
    "a path that only looks like one": [{"expression": "false", "messageExpression": "'spec,x: ' + 'is one'"}],
    "a path with quotes": [{"expression": "false", "messageExpression": "'spec.y[\"a.b/c\"][0] ' + 'is one'"}],
    "blank texts": [{"expression": "false", "messageExpression": "'  '", "message": "spec.x is one"}],
    "several paths": [{"expression": "false", "messageExpression": "'spec.y: ' + 'is, in spec.x; spec.x[0]: is, likewise spec.x[1]'"}],
    "several paths in a constant message": [{"expression": "false", "message": "spec.y: is; likewise spec.x, spec.z.a"}],
    "several lines": [{"expression": "false", "messageExpression": "'a\\nb'", "message": "metadata: is one"}],
    "a message that fails": [{"expression": "false", "messageExpression": "string(1/0)", "message": "bad"}],
    "the whole Pod": [{"expression": "false", "messageExpression": "string(size(object)) + object.kind + object.apiVersion"}],
    "the namespace of the Pod": [{"expression": "false", "messageExpression": "string(object.metadata.namespace) + string(object.metadata.size())"}],
    "the old object's spec": ["oldObject == null || object.spec == oldObject.spec"],
    "the whole old object": ["oldObject == null || object == oldObject"],
    "an error": ["object.spec.x == 1"],
    "an error beside a denial": ["object.spec.x == 1 && object.spec.y == 2", "object.spec.x > 1"],
    "the request": [{"expression": "false", "messageExpression": "request.kind.kind + request.operation + string(request.name)"}],
    "presence": ["has(object.spec.x) && has(object.metadata)"],
}  # fmt: skip


@pytest.mark.parametrize("rules", some_quickly(CORNERS.values(), 2), ids=CORNERS)
@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
@pytest.mark.parametrize("rule", [PODS, DELETE], ids=["", "on delete"])
def test_native_policies_agree_in_corner_cases(rules, failure, rule):
    written = validating(*rules, annotations=EXPAND, failurePolicy=failure, rule=rule)
    agree(written)


@pytest.mark.parametrize("rule", [PODS, DELETE], ids=["", "on delete"])
def test_corners_compile_for_every_kind(rule):
    written = validating(*(each for rules in CORNERS.values() for each in rules), annotations=EXPAND, rule=rule)
    assert policies(native(written)).policies


def agree(written):
    before, after = policies(written), policies(native(written, ASKED))
    spoke = 0
    for obj in OBJECTS:
        several = obj["kind"] == "JobSet"
        asked = [request(obj), request(None, "DELETE", obj)]
        asked += [request(obj, "UPDATE", old) for old in OBJECTS if old["kind"] == obj["kind"]]
        for each in asked:
            expected, found = said(before, each), said(after, each)
            spoke += bool(expected)
            # an error of one template and a denial of another are one answer
            if several and any(key.startswith("error") for key in expected):
                assert is_denied(expected) == is_denied(found)
            else:
                assert_same(expected, found, each, several=several)
    assert spoke


def is_denied(found):
    return any(key != "error: admit" for key in found)


LAZY = [
    {"name": "y", "expression": "object.spec.y"},
    {"name": "first", "expression": "variables.y[0]"},
    {"name": "twice", "expression": "variables.y.map(i, int(i) * int(variables.first))"},
]


@pytest.mark.parametrize(
    "rule",
    [
        "!has(object.spec.y) || variables.twice.size() == 1",
        "has(object.spec.y) ? variables.y.all(i, i == variables.first) : variables.first == 1",
        "[1].exists(i, variables.first == i) || object.spec.x == 1",
        "object.spec.?y.optMap(v, variables.first == v[0]).orValue(variables.first == 2)",
        "[].all(i, variables.first == i) && object.spec.?x.orValue(0) != 1",
        "variables.twice == variables.y && (variables.first == 1 || variables.y[5] == 1)",
    ],
)
@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_variables_fail_only_where_they_are_used(rule, failure):
    conditions = [{"name": "c", "expression": "object.spec.?x.orValue(0) != 3 && request.name != ''"}]
    agree(validating(rule, annotations=EXPAND, failurePolicy=failure, variables=LAZY, matchConditions=conditions))


def test_names_of_the_policy_and_of_the_export_do_not_clash():
    rule = "object.spec.?x.orValue(0) != 1 || [1].exists(pod, [2].exists(t, pod + t + variables.pod == 7))"
    agree(validating(rule, annotations=EXPAND, variables=[{"name": "pod", "expression": "object.spec.x"}]))


def test_an_audit_annotation_of_one_template():
    audits = [{"key": "x", "valueExpression": "string(object.spec.x)"}]
    written = validating("true", annotations=EXPAND, auditAnnotations=audits)
    found = validating_decisions(request_context(policies(native(written)), request(JOB), CLUSTER), Phase.VALIDATE)
    assert [one.audit_annotations for one in found if one.audit_annotations] == [{"x": "1"}]
    left = rewrite_as_native(written[0], written[1:], TABLE, (1, 36)).left_out
    assert any("jobsets.jobset.x-k8s.io" in kinds and "audit annotation" in why for kinds, why in left)


def test_bindings_keep_their_namespaces_and_say_kinds_instead_of_pods():
    spec = {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "resourceRules": [PODS]}}
    written = validating("false", annotations=EXPAND, binding=spec)
    found = [each["spec"]["matchResources"] for each in native(written) if each["kind"].endswith("Binding")]
    assert all(each["namespaceSelector"] == {"matchLabels": {"a": "b"}} for each in found)
    assert {"deployments", "jobs"} <= {
        name for each in found for rule in each["resourceRules"] for name in rule["resources"]
    }
    other = validating(
        "false",
        annotations=EXPAND,
        binding={"matchResources": {"resourceRules": [{**PODS, "resources": ["configmaps"]}]}},
    )
    assert len([each for each in native(other) if each["kind"].endswith("Binding")]) == 1


def test_an_exported_policy_has_no_names_of_this_project():
    found = native(validating("true", annotations={"expand": "pods", "severity": "high"}))
    assert [each["metadata"].get("annotations") for each in found] == [None] * len(found)


@pytest.mark.parametrize("written", list(shipped_policies()))
def test_an_api_server_compiles_each_exported_policy_quickly(written):
    """The time grows with the square of the length. 54,000 characters took 6 s, and 10,000 take 0.3 s."""
    specs = [each["spec"] for each in native(written) if each["kind"].endswith("Policy")]
    lists = [each["expression"] for spec in specs for each in spec.get("variables", ())]
    assert max(map(len, lists), default=0) < 12_000, "export fewer kinds in one policy: _LONGEST_LIST of native.py"


def test_a_reason_to_leave_kinds_out_is_named_once():
    written = validating("true", annotations=EXPAND, auditAnnotations=[{"key": "k", "valueExpression": "'v'"}])
    reasons = Counter(why for _, why in rewrite_as_native(written[0], written[1:], TABLE, (1, 36)).left_out)
    assert reasons["an audit annotation has one value, not one for each template"] == 1, reasons


def test_kinds_without_whole_templates_of_their_own_are_left_out():
    written = validating("true", annotations=EXPAND)
    wrapped, completed = rewrite_as_native(written[0], written[1:], TABLE, (1, 36)).left_out
    holders = ("appwrappers.workload.codeflare.dev", "experiments.kubeflow.org")
    assert wrapped == (holders, "their templates are those of the objects that they wrap")
    spark = ("sparkapplications", "scheduledsparkapplications", "sparkconnects")
    kinds = tuple(f"{each}.sparkoperator.k8s.io" for each in spark)
    assert completed == (kinds, "their controllers complete the templates with other fields")


@pytest.mark.parametrize(
    "rule, spec, why",
    [
        ("[1].all(request, request == 1)", {}, "a macro has a variable `request`"),
        (".object == null", {}, "a name that begins with a dot"),
        ("true", {"matchConstraints": {"resourceRules": [PODS], "objectSelector": {"matchLabels": {"a": "b"}}}}, "objectSelector"),
    ],
)  # fmt: skip
def test_a_rewrite_that_could_change_the_meaning_is_refused(rule, spec, why):
    policy, *bindings = validating(rule, annotations=EXPAND, **spec)
    with pytest.raises(PolicyRewriteError, match=why):
        rewrite_as_native(policy, bindings, TABLE, (1, 36))


def test_an_export_for_an_older_cluster_uses_only_its_fields():
    policy, *bindings = validating("object.spec.?x.orValue(0) != 1", annotations=EXPAND)
    found = rewrite_as_native(policy, bindings, TABLE, (1, 30))
    assert {each["metadata"]["name"] for each in found.manifests} >= {"v", "v-spec-template"}
    assert any("transformList" in why for _, why in found.left_out)


def rows(*rules, kind="Odd"):
    return Table(
        (Row(group="x.io", versions=("v1",), kind=kind, resource="odds", templates="mutable", podSets=tuple(rules)),)
    )


def agree_on(table, obj, rule):
    written = validating(rule, annotations=EXPAND)
    made = rewrite_as_native(written[0], written[1:], table, (1, 36)).manifests
    before = replace(policies(written), table=table)
    asked = request({"apiVersion": "x.io/v1", "kind": "Odd", "metadata": {"name": "o"}, **obj}, resource="odds")
    found = said(policies(list(made)), asked)
    assert found == said(before, asked)
    return found


SPEC_X = {"expression": "!has(object.spec.x)", "messageExpression": "'spec.x: is ' + string(object.spec.x)"}


def test_a_custom_kind_with_one_pod_spec():
    table = rows(PodSetRule(template="spec.pod-spec", name="p", embeds="podSpec", unless="spec.other"))
    assert agree_on(table, {"spec": {"pod-spec": {"x": 1}}}, SPEC_X) == {"spec.pod-spec.x: is 1": 1}
    assert agree_on(
        table, {"spec": {"pod-spec": {"x": 1}}}, {**SPEC_X, "messageExpression": "", "message": "spec.x: no"}
    )
    assert agree_on(table, {"spec": {"pod-spec": {"x": 1}}}, {**SPEC_X, "messageExpression": "", "message": "no"})
    assert not agree_on(table, {"spec": {"pod-spec": {"x": 1}, "other": 0}}, SPEC_X)
    assert agree_on(table, {"spec": {"pod-spec": {"x": 1}}}, "object.metadata == {}") == {}


def test_list_elements_can_be_templates():
    assert agree_on(rows(PodSetRule(template="list[]")), {"list": [{"spec": {"x": 1}}]}, SPEC_X) == {
        "list[0].spec.x: is 1": 1
    }
    named = rows(PodSetRule(template="map{}", name="all"), PodSetRule(template="a.b[].c", name="other"))
    assert agree_on(named, {"map": {"o-1": {"spec": {"x": 1}}}}, SPEC_X) == {"map.o-1.spec.x: is 1": 1}


def test_a_kind_with_templates_and_bare_specs_is_left_out():
    table = rows(PodSetRule(template="a"), PodSetRule(template="b", embeds="podSpec"))
    written = validating("true", annotations=EXPAND)
    found = rewrite_as_native(written[0], written[1:], table, (1, 36))
    assert found.left_out == ((("odds.x.io",), "they hold both pod templates and pod specs"),)
    assert len(found.manifests) == 2


def test_a_policy_that_never_matches_templates_gets_no_second_policy():
    assert len(native(validating("true", annotations=EXPAND, rule={**PODS, "operations": ["CONNECT"]}))) == 2


@pytest.mark.parametrize(
    "variables, rule, why",
    [
        ([("a", "1")] + [(f"a{i}", f"true ? {previous} : true ? {previous} : 1") for i, previous in
                         enumerate(["variables.a", *(f"variables.a{i}" for i in range(14))])],
         "variables.a14 == 0", "refer to each other too often"),
        ([("a", "1")], "has(variables.a)", "without selecting a variable by its name"),
        ([], "[" * 210 + "1" + "]" * 210 + " == []", "nested more than 200"),
    ],
    ids=["doubling", "presence", "depth"],
)  # fmt: skip
def test_expressions_that_need_a_single_template_are_left_out(variables, rule, why):
    declared = [{"name": name, "expression": expression} for name, expression in variables]
    policy, *bindings = validating(rule, annotations=EXPAND, **({"variables": declared} if declared else {}))
    try:
        reasons = [reason for _, reason in rewrite_as_native(policy, bindings, TABLE, (1, 36)).left_out]
    except PolicyRewriteError as error:
        reasons = [str(error)]
    assert any(why in reason for reason in reasons)
