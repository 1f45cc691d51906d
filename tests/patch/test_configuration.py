"""An ApplyConfiguration merges as the API server merges it."""

import copy
import json
import pathlib
import re

import pytest

from tests.rows import all_rows
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.errors import PatchError
from webhook.patch.configuration import apply_configuration
from webhook.patch.gotext import NULL
from webhook.patch.schema import schema_of_kind, shape_of_node
from webhook.yamltext.jsontext import equal_as_json

DATA = pathlib.Path(__file__).parent.parent / "data/configuration/cases.jsonl"
CASES = [json.loads(line) for line in DATA.read_text().splitlines()]
POD = GroupVersionKind("", "v1", "Pod")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
WIDGET = GroupVersionKind("example.com", "v1", "Widget")


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@all_rows("case", [c for c in CASES if "result" in c], ids=lambda c: json.dumps(c["configuration"])[:60])
def test_a_merge_gives_what_the_go_library_gives(case):
    before = copy.deepcopy(case["document"])
    assert equal_as_json(apply_configuration(case["document"], case["configuration"], POD), case["result"])
    assert equal_as_json(case["document"], before)


@all_rows("case", [c for c in CASES if "error" in c], ids=lambda c: c["error"][:60])
def test_an_invalid_configuration_is_refused_with_the_same_message(case):
    with pytest.raises(PatchError) as raised:
        apply_configuration(case["document"], case["configuration"], POD)
    assert claims(str(raised.value).removeprefix("error applying patch: ")) == claims(case["error"])


def claims(text):
    """Return the parts of an error in order. Go writes them in any order, and with its own format of a value."""
    text = re.sub(r", got .*", "", text)
    return sorted(re.split(r"\n|, |(?<=structs): ", text))


@all_rows(
    "spec, text",
    [
        (
            {"nodeSelector": {"a": "b"}},
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector",
        ),
        (
            {"containers": [{"name": "a", "args": ["x"]}]},
            "may not mutate atomic arrays, maps or structs: .spec.containers[0].args",
        ),
        ({"imagePullSecrets": [{"name": "x"}]}, "atomic arrays, maps or structs: .spec.imagePullSecrets[0]"),
        (
            {"replicaz": 3},
            "failed to convert patch object to typed object: .spec.replicaz: field not declared in schema",
        ),
        ({"priority": "x"}, ".spec.priority: expected numeric (int or float), got string"),
        ({"hostNetwork": 1}, ".spec.hostNetwork: expected boolean, got &{1}"),
        ({"overhead": {"cpu": {}}}, ".spec.overhead.cpu: expected any scalar, got &{map[]}"),
        ({"containers": {}}, ".spec.containers: expected list, got &{map[]}"),
        ({"containers": [None]}, ".spec.containers: element 0: associative list with keys may not have a null element"),
        (
            {"containers": ["x"]},
            ".spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        ({"securityContext": []}, ".spec.securityContext: expected map, got &{[]}"),
        ({"nodeName": NULL}, ".spec.nodeName: expected string, got &value.valueUnstructured{Value:0}"),
        ({"volumes": NULL}, ".spec.volumes: expected list, got &{NULL_VALUE}"),
        ({"securityContext": NULL}, ".spec.securityContext: expected map, got &{NULL_VALUE}"),
    ],
)
def test_an_invalid_apply_configuration_is_reported(spec, text):
    with pytest.raises(PatchError) as raised:
        apply_configuration(pod(), {"spec": spec}, POD)
    assert text in str(raised.value)
    assert str(raised.value).startswith("error applying patch: ")


def test_a_new_environment_variable_comes_where_the_configuration_puts_it():
    before = pod(containers=[{"name": "main", "env": [{"name": "A", "value": "1"}]}])
    env = [{"name": "B", "value": "2"}, {"name": "A", "value": "9"}]
    after = apply_configuration(before, {"spec": {"containers": [{"name": "main", "env": env}]}}, POD)
    assert after["spec"]["containers"] == [{"name": "main", "env": env}]


def test_an_entry_without_its_key_is_appended():
    after = apply_configuration(pod(containers=[{"name": "main"}]), {"spec": {"containers": [{"image": "i"}]}}, POD)
    assert after["spec"]["containers"] == [{"name": "main"}, {"image": "i"}]


def test_untouched_parts_stay_the_same_objects():
    before = pod(containers=[{"name": "a", "env": []}, {"name": "b"}], volumes=[{"name": "v"}])
    after = apply_configuration(before, {"spec": {"containers": [{"name": "b", "image": "i"}]}}, POD)
    assert after["spec"]["containers"][0] is before["spec"]["containers"][0]
    assert after["spec"]["volumes"] is before["spec"]["volumes"]
    assert after["metadata"] is before["metadata"]
    assert (
        apply_configuration(before, {"spec": {"containers": [{"name": "a"}]}, "metadata": {"name": "p"}}, POD) is before
    )


def test_an_item_that_the_document_has_twice_is_replaced_by_one_item():
    before = pod(volumes=[{"name": "a", "x": 1}, {"name": "b"}, {"name": "a", "x": 2}])
    after = apply_configuration(before, {"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}}, POD)
    assert after["spec"]["volumes"] == [{"name": "a", "emptyDir": {}}, {"name": "b"}]


def test_finalizers_are_a_set():
    before = {"metadata": {"finalizers": ["a", "b"]}}
    assert apply_configuration(before, {"metadata": {"finalizers": ["c", "b"]}}, POD)["metadata"]["finalizers"] == [
        "a",
        "c",
        "b",
    ]
    with pytest.raises(PatchError, match="without keys has an element that's a map type"):
        apply_configuration(before, {"metadata": {"finalizers": [{}]}}, POD)


def test_a_document_that_does_not_fit_cannot_be_merged():
    with pytest.raises(PatchError, match=r"failed to merge patch: .spec: lhs: expected map, got &{1}"):
        apply_configuration({"spec": 1}, {"spec": {"priority": 1}}, POD)
    with pytest.raises(PatchError, match=r"failed to merge patch: .spec.volumes: lhs: expected list, got &{1}"):
        apply_configuration(pod(volumes=1), {"spec": {"volumes": []}}, POD)
    with pytest.raises(PatchError, match=r"failed to merge patch: .spec.volumes: element 0: .* non-map elements"):
        apply_configuration(pod(volumes=[1]), {"spec": {"volumes": [{"name": "a"}]}}, POD)


@pytest.mark.parametrize(
    "old, new, merged",
    [
        ({"volumes": None}, {"volumes": []}, {"volumes": []}),
        ({"volumes": None}, {"volumes": [{"name": "a"}]}, {"volumes": [{"name": "a"}]}),
        ({"volumes": [{"name": "a"}]}, {"volumes": []}, {"volumes": [{"name": "a"}]}),
        ({"securityContext": None}, {"securityContext": {}}, {"securityContext": {}}),
        ({"securityContext": None}, {"securityContext": {"runAsUser": 1}}, {"securityContext": {"runAsUser": 1}}),
        ({"priority": None}, {"priority": 1}, {"priority": 1}),
        ({"x": 1}, {"priority": 1}, {"x": 1, "priority": 1}),
    ],
)
def test_null_and_empty(old, new, merged):
    assert apply_configuration(pod(**old), {"spec": new}, POD)["spec"] == merged


def test_templates_of_built_in_workloads_are_known():
    before = {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
    new = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}}}
    assert apply_configuration(before, new, DEPLOYMENT) == new
    for kind in ("Job", "CronJob"):
        assert schema_of_kind(GroupVersionKind("batch", "v1", kind)) == f"#batch.v1.{kind}"
    assert schema_of_kind(GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")) == "#resource.v1.ResourceClaim"


def test_a_custom_kind_without_schema_accepts_any_patch_and_replaces_lists():
    before = {"spec": {"l": [1, 2], "m": {"a": 1}}, "metadata": {"labels": {"a": "b"}}}
    after = apply_configuration(
        before, {"spec": {"l": [9], "m": {"b": [1]}}, "metadata": {"labels": {"c": "d"}}}, WIDGET
    )
    assert after == {"spec": {"l": [9], "m": {"a": 1, "b": [1]}}, "metadata": {"labels": {"a": "b", "c": "d"}}}
    assert apply_configuration(before, {"spec": {"n": None}}, WIDGET)["spec"]["n"] is None
    assert apply_configuration(before, {"spec": {"m": None}}, WIDGET)["spec"]["m"] == {"a": 1}
    with pytest.raises(PatchError, match=r"metadata.labels.a: expected string"):
        apply_configuration(before, {"metadata": {"labels": {"a": 1}}}, WIDGET)
    assert apply_configuration({"spec": {"x": 1}}, {"spec": {"x": {}}}, WIDGET) == {"spec": {"x": {}}}
    assert apply_configuration({"spec": {"x": ["a"]}}, {"spec": {"x": {"b": "c"}}}, WIDGET) == {
        "spec": {"x": {"b": "c"}}
    }
    assert apply_configuration({"spec": {"x": {"b": "c"}}}, {"spec": {"x": 1}}, WIDGET) == {"spec": {"x": 1}}


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "keyed": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "port"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}, "v": {}},
                    },
                },
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "plain": {"type": "array", "items": {"type": "number"}},
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "labels": {"type": "object", "additionalProperties": {"type": "boolean"}},
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"n": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "free": {"type": "object"},
                "closed": {"type": "object", "additionalProperties": False},
                "any": {"type": "object", "additionalProperties": True},
                "either": {"x-kubernetes-int-or-string": True},
                "time": {"type": "string", "format": "date-time"},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object"}},
                },
            },
        }
    },
}
CRD = {
    "spec": {
        "versions": [
            {"name": "v0", "schema": {"openAPIV3Schema": {}}},
            {"name": "v1", "schema": {"openAPIV3Schema": SCHEMA}},
        ]
    }
}


@pytest.mark.parametrize(
    "new, merged",
    [
        ({"keyed": [{"name": "a", "v": 2}]}, {"keyed": [{"name": "a", "port": 80, "v": 2}], "free": {"a": 1}}),
        ({"set": ["x"]}, {"set": ["x"]}),
        ({"labels": {"x": True}}, {"labels": {"x": True}}),
        ({"open": {"x": {"y": [1]}, "n": {"z": 1}}}, {"open": {"x": {"y": [1]}, "n": {"z": 1}}}),
        ({"free": {"x": [1]}}, {"free": {"a": 1, "x": [1]}}),
        ({"any": {"x": 1}}, {"any": {"x": 1}}),
        ({"either": "5%", "time": "now"}, {"either": "5%", "time": "now"}),
        ({"template": {"metadata": {"labels": {"a": "b"}}}}, {"template": {"metadata": {"labels": {"a": "b"}}}}),
    ],
)
def test_a_custom_kind_with_schema_merges_by_it(new, merged):
    before = {"spec": {"keyed": [{"name": "a", "port": 80}], "free": {"a": 1}}}
    assert apply_configuration(before, {"spec": new}, WIDGET, crd=CRD)["spec"] == before["spec"] | merged


@pytest.mark.parametrize(
    "new, text",
    [
        ({"plain": [1]}, "atomic arrays, maps or structs: .spec.plain"),
        ({"whole": {"a": "b"}}, "atomic arrays, maps or structs: .spec.whole"),
        ({"closed": {"a": 1}}, ".spec.closed.a: field not declared in schema"),
        ({"new": 1}, ".spec.new: field not declared in schema"),
        ({"labels": {"x": 1}}, ".spec.labels.x: expected boolean, got &{1}"),
        ({"either": [1]}, "atomic arrays, maps or structs: .spec.either"),
    ],
)
def test_a_custom_kind_with_schema_refuses_by_it(new, text):
    with pytest.raises(PatchError) as raised:
        apply_configuration({}, {"spec": new}, WIDGET, crd=CRD)
    assert text in str(raised.value)


def test_a_list_without_usable_keys_is_refused():
    crd = copy.deepcopy(CRD)
    del crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["keyed"]["items"][
        "properties"
    ]["port"]["default"]
    with pytest.raises(PatchError, match=r'omits all key fields \["name" "port"\]'):
        apply_configuration({}, {"spec": {"keyed": [{"v": 1}]}}, WIDGET, crd=crd)


def test_a_version_without_schema_is_an_unknown_kind():
    for version in ("v0", "v9"):
        gvk = GroupVersionKind("example.com", version, "Widget")
        assert apply_configuration({}, {"spec": {"plain": [1]}}, gvk, crd=CRD) == {"spec": {"plain": [1]}}


def test_a_use_of_an_atomic_type_may_be_declared_not_atomic():
    shape = shape_of_node({"ref": "core.v1.ObjectReference", "atomic": False})
    assert shape.map is not None
    assert not shape.map.is_atomic
    assert shape_of_node("#core.v1.ObjectReference").map.is_atomic
