"""The objects that policies need in a view of the cluster."""

import pytest

from tests.literals import PODS, mutating, namespace, pod, policies, request, validating
from tests.rows import all_rows
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import GroupVersionKind, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.interest import Interest, ObjectScope
from webhook.manifests.label_selectors import compile_selector
from webhook.manifests.models import LabelSelector
from webhook.policy.interests import CRD
from webhook.policy.policy_set import PolicySet

CONFIG = GroupVersionKind("", "v1", "ConfigMap")
KIND = {"apiVersion": "v1", "kind": "ConfigMap"}


def bound(**reference):
    return validating("true", paramKind=KIND, binding={"paramRef": {"parameterNotFoundAction": "Deny", **reference}})


def of_params(found):
    return [each for each in found.interests() if each.gvk == CONFIG]


@pytest.mark.parametrize(
    "reference, scope",
    [
        pytest.param({"name": "x", "namespace": "n"}, ObjectScope(name="x", namespace="n"), id="a name in a namespace"),
        pytest.param({"name": "x"}, ObjectScope(name="x"), id="a name in the namespace of the request"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}}, ObjectScope(labels="a in (b)"), id="a selector"),
        pytest.param({"selector": {}, "namespace": "n"}, ObjectScope(namespace="n"), id="everything in a namespace"),
    ],
)
def test_a_view_has_whole_params_selected_by_reference(reference, scope):
    loaded = policies(bound(**reference))
    assert of_params(loaded) == [Interest(CONFIG, scope=scope)]
    assert loaded.kinds_looked_up() == {each.kind for each in loaded.interests()}


def test_a_policy_without_a_binding_needs_no_parameter():
    assert of_params(policies(validating("true", paramKind=KIND))) == []


def test_a_parameter_of_the_cluster_replaces_the_shipped_one():
    found = policies(bound(selector={"matchLabels": {"a": "b"}}, namespace="n"))
    shipped = {**KIND, "metadata": {"name": "s", "namespace": "n", "labels": {"a": "b"}}}
    other = {"apiVersion": "example.com/v1", "kind": "ConfigMap", "metadata": {"name": "t"}}
    held = PolicySet(validating=found.validating, mutating=(), params=(shipped, other), table=found.table)
    assert [each.scope for each in of_params(held)] == [
        ObjectScope(name="s", namespace="n"),
        ObjectScope(namespace="n", labels="a in (b)"),
    ]


def test_a_selector_is_written_as_the_api_server_reads_it():
    # k8s.io/apimachinery v0.36 pkg/labels/selector.go: Parse
    expressions = [
        {"key": "b", "operator": "NotIn", "values": ["y", "x"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    found = compile_selector(LabelSelector.model_validate({"matchLabels": {"a": "z"}, "matchExpressions": expressions}))
    assert found.text == "!d,a in (z),b notin (x,y),c"


@pytest.mark.parametrize(
    "expression, fields",
    [
        pytest.param("true", {"metadata.labels"}, id="none"),
        pytest.param("namespaceObject == null", {"metadata.labels"}, id="whether the Namespace exists"),
        pytest.param("namespaceObject.metadata.name != ''", {"metadata.labels", "metadata.name"}, id="a name"),
        pytest.param(
            "has(namespaceObject.metadata.annotations)", {"metadata.labels", "metadata.annotations"}, id="annotations"
        ),
        pytest.param(
            "namespaceObject.?metadata.?generateName.hasValue()",
            {"metadata.labels", "metadata.generateName"},
            id="optional",
        ),
        pytest.param("has(namespaceObject.status.phase)", {"metadata.labels", "status"}, id="status"),
    ],
)
def test_namespaces_are_held_with_the_fields_that_expressions_read(expression, fields):
    (found,) = policies(validating(expression)).interests()
    assert found.fields == fields


@pytest.mark.parametrize(
    "expression", ["[namespaceObject].size() > 0", "namespaceObject.metadata == namespaceObject.metadata"]
)
def test_a_namespace_with_other_reads_is_kept_as_a_whole(expression):
    (found,) = policies(validating(expression)).interests()
    assert {"spec", "status", "metadata.annotations", "metadata.labels"} <= found.fields


@pytest.mark.parametrize(
    "metadata, expected",
    [
        pytest.param({"name": "x"}, True, id="cluster-scoped"),
        pytest.param({"name": "x", "namespace": "team"}, True, id="in the namespace of the request"),
        pytest.param({"name": "x", "namespace": "other"}, False, id="in another namespace"),
    ],
)
def test_the_view_knows_whether_a_custom_parameter_has_a_namespace(metadata, expected):
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    chosen = {"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}}
    found = policies(validating("params.metadata.name == 'x'", paramKind=kind, binding=chosen))
    view = FilesCluster([{**kind, "metadata": metadata}, namespace("team")])
    assert answer_request(request(pod()), found, view, phase=Phase.VALIDATE).allowed is expected


LAYS_OVER, PATCHES = "Object{metadata: Object.metadata{}}", "[JSONPatch{op: 'remove', path: '/spec'}]"


@all_rows(
    "expression, groups, resources, names",
    [
        (LAYS_OVER, ["ex.io"], ["widgets", "gadgets/status"], ["gadgets.ex.io", "widgets.ex.io"]),
        (LAYS_OVER, ["ex.io", "apps", ""], ["widgets"], ["widgets.ex.io"]),
        (LAYS_OVER, ["ex.io"], ["*"], [""]),
        (LAYS_OVER, ["*"], ["widgets"], [""]),
        (PATCHES, ["ex.io"], ["widgets"], []),
    ],
)
def test_a_policy_that_patches_custom_kinds_needs_their_definitions(expression, groups, resources, names):
    rule = {**PODS, "apiGroups": groups, "resources": resources}
    found = [each for each in policies(mutating(expression, rule=rule)).interests() if each.gvk == CRD]
    assert [each.scope for each in found] == [ObjectScope(name=name) for name in names]
    assert all(each.fields == {"spec.versions.name", "spec.versions.schema"} for each in found)
