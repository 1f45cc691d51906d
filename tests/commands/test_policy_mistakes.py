"""`claimgate policies check` on policies that compile, but do not do what their authors intend."""

import json
from copy import deepcopy

import pytest

from tests.commands.policy_mistakes import QUANTITIES, TYPED, UNSEEN, on_train_jobs
from tests.literals import CONFIG_MAPS, mutating, validating
from webhook.cli import run_command_line
from webhook.yamltext import yamlfile

MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
SIDECAR = '[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "x", image: "y"}}]'
LABEL = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
TOLERATION = "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}]}}"
ARGS = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['x'] + []}]}}"
SELECTOR = "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}"
VOLUMES = "Object{spec: Object.spec{volumes: [Object.spec.volumes{name: 'v'}]}}"
NO_REFERENCE = "binding v-b has no paramRef, so `params` is null and reading it fails"


def checked(manifests, folder, capsys):
    (folder / "policies.yaml").write_text("---\n".join(map(yamlfile.dump, manifests)))
    code = run_command_line(["policies", "check", str(folder)])
    told, errors = capsys.readouterr()
    return code, told + errors


@pytest.mark.parametrize(
    ("manifests", "told"),
    [
        pytest.param(
            validating("object.spec.nodeNam != ''"), "`object.spec.nodeNam` does not exist in Pod", id="field"
        ),
        pytest.param(mutating(TOLERATION), "`Object.spec.tolerations` is an atomic list", id="atomic list"),
        pytest.param(mutating(ARGS), "`Object.spec.containers.args` is an atomic list", id="atomic list in a list"),
        pytest.param(mutating(SELECTOR), "`Object.spec.nodeSelector` is an atomic map", id="atomic map"),
        pytest.param(
            validating("params.data.a == ''", paramKind={**MAPS, "kind": "Configmap"}),
            "spec.paramKind: v1 has no kind `Configmap`: did you mean `ConfigMap`?",
            id="param kind",
        ),
        pytest.param(
            validating("true", paramKind={"apiVersion": "apps/v1beta9", "kind": "Deployment"}),
            "spec.paramKind: Deployment has no version `apps/v1beta9`",
            id="version of a param kind",
        ),
        pytest.param(validating("params.data.a == ''", paramKind=MAPS), NO_REFERENCE, id="paramRef"),
        pytest.param(
            validating("true", paramKind=MAPS, matchConditions=[{"name": "a", "expression": "params.data.a == ''"}]),
            NO_REFERENCE,
            id="paramRef of a condition",
        ),
    ],
)
def test_a_policy_that_fails_for_every_object_fails_the_check(manifests, told, tmp_path, capsys):
    code, text = checked(manifests, tmp_path, capsys)
    assert (code, "1 fails for every object, 1 may be wrong" in text) == (1, True)
    assert f"    fails for every object: {told}" in text


@pytest.mark.parametrize(
    "manifests",
    [
        pytest.param(mutating(LABEL), id="labels are merged"),
        pytest.param(mutating(VOLUMES), id="volumes are merged by name"),
        pytest.param(mutating("Object{spec: Object.spec{?tolerations: optional.none()}}"), id="optional field"),
        pytest.param(validating("params == null || params.data.a == ''", paramKind=MAPS), id="asks for null"),
        pytest.param(validating("params.?data.?a.orValue('') == ''", paramKind=MAPS), id="asks with a question mark"),
        pytest.param(validating("true", paramKind=MAPS), id="params are not read"),
        pytest.param(
            validating("true", paramKind={"apiVersion": "example.com/v1", "kind": "Limit"}), id="custom param kind"
        ),
    ],
)
def test_a_policy_that_may_work_passes_the_check(manifests, tmp_path, capsys):
    code, text = checked(manifests, tmp_path, capsys)
    assert (code, "fails for every object" in text) == (0, False)


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.suspend == true",  # the optional field may be absent
        "has(object.spec.suspend) || object.metadata.labels.team != ''",
        "object.metadata.labels.team != '' || has(object.spec.suspend)",
        "object.metadata.labels.team != '' || variables.suspended",
        "object.metadata.labels.team != '' || [object].exists(o, has(o.spec.suspend))",
        "!has(object.metadata.labels) || 'team' in object.metadata.labels",
        "object.metadata.?labels[?'team'].orValue('') != '' && object.status.ready",
    ],
)
def test_nothing_is_said_of_unknown_fields_of_a_custom_kind(expression, tmp_path, capsys):
    spec = {"variables": [{"name": "suspended", "expression": "has(object.spec.suspend)"}]}
    code, text = checked(on_train_jobs(expression, **spec), tmp_path, capsys)
    assert (code, "fails on" in text) == (0, False), text


def test_a_policy_that_ignores_bookkeeping_is_tried_on_new_objects_of_a_custom_kind(tmp_path, capsys):
    """On an update, a policy that ignores bookkeeping compares whole objects. So the check must also try new
    objects.
    """
    policy, binding = on_train_jobs("object.metadata.labels.team != ''")
    own = {**policy, "apiVersion": "claimgate.dev/v1alpha1", "kind": "ValidatingPolicy"}
    bound = {**binding, "apiVersion": "claimgate.dev/v1alpha1", "kind": "PolicyBinding"}
    code, text = checked([own, bound], tmp_path, capsys)
    assert (code, "fails on the smallest valid TrainJob: " in text) == (1, True), text


def test_a_field_in_has_is_not_a_failure(tmp_path, capsys):
    code, text = checked(validating("!has(object.spec.nodeNam)"), tmp_path, capsys)
    assert code == 0
    assert "    field: `object.spec.nodeNam` does not exist in Pod: did you mean `nodeName`?\n" in text


@pytest.mark.parametrize("reinvocation", ["Never", "IfNeeded"])
def test_a_mutation_that_changes_its_own_result_is_reported(reinvocation, tmp_path, capsys):
    manifests = mutating(SIDECAR, reinvocationPolicy=reinvocation)
    code, text = checked(manifests, tmp_path, capsys)
    assert code == 0
    assert "    not idempotent: applied to its own result it changes /spec/containers/2 of a Pod again: " in text


def test_a_mutation_under_a_condition_is_idempotent(tmp_path, capsys):
    once = [{"name": "once", "expression": "!object.spec.containers.exists(c, c.name == 'x')"}]
    _, text = checked(mutating(SIDECAR, matchConditions=once), tmp_path, capsys)
    assert "not idempotent" not in text


def test_the_cases_of_the_suite_are_samples(tmp_path, capsys):
    """The condition of this mutation excludes the small objects of the check, so only a case of the suite reaches
    it.
    """
    manifests = mutating(SIDECAR, matchConditions=[{"name": "b", "expression": "object.metadata.name == 'big'"}])
    assert "not idempotent" not in checked(manifests, tmp_path, capsys)[1]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}, "spec": {"containers": [{"name": "a"}]}}
    suite = {"cases": [{"name": "big", "input": pod, "expect": {"allowed": True}}]}
    (tmp_path / "suite.yaml").write_text(yamlfile.dump(suite))
    assert "not idempotent: " in checked(manifests, tmp_path, capsys)[1]


@pytest.mark.parametrize(
    ("facts", "expression", "told"),
    [
        ("gpu", "gpu.devices < 9", "`gpu.devices` is the devices of one pod of this template"),
        ("gpu", "gpu.vendors.size() < 9", "`gpu.vendors` is the devices of one pod"),
        ("podSets", "podSets.size() < 9", "`podSets` is a list with the template"),
        ("kueue", "kueue.managed", "the result for the template as a single Pod"),
        ("gpu", "gpu.containers.size() < 9", ""),
        ("dra", "dra.claims.size() < 9", ""),
    ],
)
def test_a_fact_that_is_incomplete_for_templates_is_reported(facts, expression, told, tmp_path, capsys):
    expanded = validating(expression, annotations={"expand": "pods", "facts": facts})
    code, text = checked(expanded, tmp_path, capsys)
    assert code == 0
    assert ("    with `expand: pods`, " in text) is bool(told)
    assert told in text
    assert (
        "with `expand: pods`, "
        not in checked(validating(expression, annotations={"facts": facts}), tmp_path, capsys)[1]
    )


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("objekt.metadata.name == ''", "did you mean `object`?"),
        ("object.metadata.name.startWith('a')", "did you mean `startsWith`?"),
        ("request.operatoin == ''", "did you mean `operation`?"),
        (
            "gpu.devices < 8",
            "`gpu` is a fact, which a policy must declare: add the annotation `claimgate.dev/facts: gpu`",
        ),
        ("problems.size() == 0", "`problems` has what checks find: name groups of checks in the annotation"),
        ("params.data.a == ''", "`params` exists only with `spec.paramKind`: add it, or remove `params`"),
        ("whatever == 1", ""),
    ],
)
def test_an_expression_that_does_not_compile_gets_a_hint(expression, hint, tmp_path, capsys):
    code, text = checked(validating(expression, rule=CONFIG_MAPS), tmp_path, capsys)
    assert code == 2
    assert ("    hint: " in text) is bool(hint)
    assert hint in text


def test_typical_mistakes_are_reported_with_their_fix(tmp_path, capsys):
    rows = {**TYPED, **UNSEEN, **QUANTITIES}
    assert len(rows) >= 40
    manifests = []
    for number, (found, _) in enumerate(rows.values()):
        policy, binding = deepcopy(found)
        policy["metadata"]["name"] = binding["spec"]["policyName"] = f"m{number:02}"
        binding["metadata"]["name"] = f"m{number:02}-b"
        manifests += [policy, binding]
    (tmp_path / "policies.yaml").write_text("---\n".join(map(yamlfile.dump, manifests)))
    assert run_command_line(["policies", "check", "-o", "json", str(tmp_path)]) == 1
    described = {one["name"]: json.dumps(one, ensure_ascii=False) for one in json.loads(capsys.readouterr().out)}
    missed = {
        name: described[f"m{number:02}"]
        for number, (name, (_, told)) in enumerate(rows.items())
        if json.dumps(told, ensure_ascii=False)[1:-1] not in described[f"m{number:02}"]
    }
    assert missed == {}


def test_variables_that_refer_to_each_other_twice_are_expanded_once(tmp_path, capsys):
    doubled = [{"name": f"v{n}", "expression": f"variables.v{n - 1} && variables.v{n - 1}"} for n in range(1, 40)]
    variables = [{"name": "v0", "expression": "object.metadata.name == 'a'"}, *doubled]
    policy = validating("request.operation != 'CONNECT' || variables.v39", rule=CONFIG_MAPS, variables=variables)
    code, text = checked(policy, tmp_path, capsys)
    assert code == 1
    assert "is true for every request, so it refuses nothing: `request.operation` is " in text


MIXED = "Object{spec: Object.spec{volumes: object.spec.volumes.map(v, has(v.emptyDir) ? %s : v)}}"


def test_a_missing_field_is_reported_in_an_expression_with_a_wrong_type(tmp_path, capsys):
    change = MIXED % "Object.spec.volumes{name: v.name, emptyDir: Object.spec.volumes.emptyDir{sizeLimit: '1Gi'}}"
    code, text = checked(mutating(change), tmp_path, capsys)
    assert code == 1
    assert "fails on the smallest valid Pod: `object.spec.volumes` is not set there: write" in text
    assert ".projected.sources: write only fields that change, or write a JSONPatch\n" in text
    assert "have different types, `Object.spec.volumes` and `core.v1.Volume`: write `dyn(v)`\n" in text


def test_a_failure_that_a_missing_field_does_not_cause_is_not_described_by_the_field(tmp_path, capsys):
    """The condition is true only for a volume without a limit. The mutation writes all fields of all volumes, so a
    missing field is not the cause of the failure.
    """
    no_limit = "object.spec.?volumes.orValue([]).exists(v, has(v.emptyDir) && !has(v.emptyDir.sizeLimit))"
    added = "Object.spec.volumes{name: v.name, emptyDir: Object.spec.volumes.emptyDir{sizeLimit: '1Gi'}}"
    manifests = mutating(
        f"Object{{spec: Object.spec{{volumes: object.spec.volumes.map(v, has(v.emptyDir) ? {added} : dyn(v))}}}}",
        matchConditions=[{"name": "no-limit", "expression": no_limit}],
    )
    code, out = checked(manifests, tmp_path, capsys)
    assert code == 1
    assert "fails on a valid Pod: error applying patch: invalid ApplyConfiguration" in out
