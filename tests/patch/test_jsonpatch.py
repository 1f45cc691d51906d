"""Patches apply as the API server applies them, and do not change their input."""

import copy
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.apimachinery.attributes import JSON
from webhook.errors import PatchError
from webhook.patch.diff import operations_between
from webhook.patch.jsonpatch import FailedTest, apply_operations
from webhook.yamltext.jsontext import equal_as_json

DATA = pathlib.Path(__file__).parent.parent / "data/jsonpatch"
DOCUMENT = json.loads((DATA / "document.json").read_text())
CASES = [json.loads(line) for line in (DATA / "cases.jsonl").read_text().splitlines()]

NEW_MAP = {"op": "add", "path": "/b", "value": {}}
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 0.5]) | st.sampled_from(["a", "b", ""])
KEYS = st.sampled_from(["a", "b", "c/d", "~e", "0", ""])
JSONS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=14
)
DOCUMENTS = st.dictionaries(KEYS, JSONS, max_size=4)


@all_rows("case", CASES, ids=lambda case: json.dumps(case["patch"])[:60])
def test_a_patch_does_what_the_go_library_does(case):
    before = copy.deepcopy(DOCUMENT)
    if "error" in case:
        with pytest.raises(PatchError) as raised:
            apply_operations(DOCUMENT, case["patch"])
        assert str(raised.value) == case["error"]
    else:
        assert equal_as_json(apply_operations(DOCUMENT, case["patch"]), case["result"])
    assert before == DOCUMENT


@pytest.mark.parametrize(
    "operation, message",
    [
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        ({"op": "replace", "path": 1}, "replace operation failed to decode path: operation missing path field"),
        ({"op": "move", "path": "/x"}, "move operation failed to decode from: operation, missing from field"),
        ({"path": "/x"}, "Unexpected kind: unknown"),
        ({"op": "merge", "path": "/x"}, "Unexpected kind: merge"),
        ({"op": "replace", "path": "", "value": 1}, "replace operation value must be object or array"),
    ],
)
def test_an_unreadable_patch_operation_is_refused(operation, message):
    with pytest.raises(PatchError, match=message):
        apply_operations({}, [operation])


@pytest.mark.parametrize("operations", [{"op": "add"}, ["add"], None])
def test_only_a_list_of_operations_is_a_patch(operations):
    with pytest.raises(PatchError, match="must be a list of operations"):
        apply_operations({}, operations)


def test_an_object_that_is_absent_has_no_paths():
    with pytest.raises(PatchError, match="doc is missing path"):
        apply_operations(None, [{"op": "add", "path": "/a", "value": 1}])


def test_a_failed_test_operation_is_recognized():
    with pytest.raises(FailedTest, match="testing value /a failed: test failed"):
        apply_operations({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}])


def test_untouched_parts_stay_the_same_objects():
    document = {"a": {"b": [1]}, "c": {"d": [2]}}
    patched = apply_operations(
        document, [{"op": "add", "path": "/a/b/-", "value": 2}, {"op": "add", "path": "/a/b/-", "value": 3}]
    )
    assert patched == {"a": {"b": [1, 2, 3]}, "c": {"d": [2]}}
    assert patched["c"] is document["c"]
    assert apply_operations(document, []) is document


def test_a_change_of_a_copy_does_not_change_the_original():
    patched = apply_operations(
        {"a": {"x": [1]}},
        [
            {"op": "add", "path": "/a/x/-", "value": 2},
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/b/x/-", "value": 3},
        ],
    )
    assert patched == {"a": {"x": [1, 2]}, "b": {"x": [1, 2, 3]}}


def test_values_of_operations_are_not_changed():
    operations = [{"op": "add", "path": "/a", "value": []}, {"op": "add", "path": "/a/-", "value": 1}]
    assert apply_operations({}, operations) == {"a": [1]}
    assert operations[0]["value"] == []


@given(DOCUMENTS, DOCUMENTS)
def test_applying_the_diff_gives_the_second_object(before, after):
    kept = copy.deepcopy(before)
    operations = operations_between(before, after)
    assert equal_as_json(apply_operations(before, operations), after)
    assert equal_as_json(before, kept)
    assert bool(operations) != equal_as_json(before, after)
    assert operations_between(before, after) == operations
    assert {operation["op"] for operation in operations} <= {"add", "remove", "replace"}


@given(st.lists(SCALARS, max_size=6), st.integers(0, 6), SCALARS)
def test_one_item_more_or_less_is_one_operation(items, at, item):
    longer = [*items[:at], item, *items[at:]]
    assert len(operations_between({"x": items}, {"x": longer})) == 1
    assert len(operations_between({"x": longer}, {"x": items})) == 1


@pytest.mark.parametrize(
    "before, after, operations",
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, ["remove /a", "replace /b", "add /c"]),
        ({"a": [1, 2, 3]}, {"a": [1, 9, 3]}, ["replace /a/1"]),
        ({"a": [1, 2, 3]}, {"a": [3]}, ["remove /a/0", "remove /a/0"]),
        ({"a": [1, 4]}, {"a": [1, 2, 3, 4]}, ["add /a/1", "add /a/2"]),
        ({"a": []}, {"a": [{}]}, ["add /a/0"]),
        ({"a": json.loads("[1.5]")}, {"a": json.loads("[1.5]")}, []),
        ({"a": None}, {"a": {}}, ["replace /a"]),
        ({"a/b": {"~": True}}, {"a/b": {"~": 1}}, ["replace /a~1b/~0"]),
        ({"a": {"b": 1}}, {"a": [1]}, ["replace /a"]),
    ],
)
def test_differences_are_small_and_in_order(before, after, operations):
    assert [f"{operation['op']} {operation['path']}" for operation in operations_between(before, after)] == operations


def test_shared_parts_are_not_compared():
    class Unlooked(dict):
        def items(self):
            raise AssertionError

    shared = Unlooked()
    assert operations_between({"a": shared, "b": 1}, {"a": shared, "b": 2}) == (
        {"op": "replace", "path": "/b", "value": 2},
    )


def test_a_copy_of_a_changed_object_is_a_new_value() -> None:
    operations = [
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "copy", "from": "/c", "path": "/d"},
        {"op": "add", "path": "/a/y", "value": 2},
    ]
    assert apply_operations({"a": {}, "c": 3}, operations) == {"a": {"x": 1, "y": 2}, "b": {"x": 1}, "c": 3, "d": 3}


def test_a_copy_into_its_own_source_makes_no_circle() -> None:
    operations = [{"op": "copy", "from": "/a", "path": f"/a/{name}"} for name in "xyz"]
    first = {"k": 1}
    second = {**first, "x": first}
    third = {**second, "y": second}
    assert apply_operations({"a": {"k": 1}}, operations) == {"a": {**third, "z": third}}


def test_copies_are_bounded_as_in_an_api_server() -> None:
    """--json-patch-max-copy-bytes of k8s.io/apiserver: three MiB, in the error of the Go library."""
    double = {"op": "copy", "from": "/a", "path": "/a/-"}
    with pytest.raises(
        PatchError, match=r"the accumulated size increase of copy is \d{7}, exceeding the limit 3145728"
    ):
        apply_operations({"a": ["text"]}, [double] * 40)
    text = "<" + "é" * ((3 << 20) // 2 - 10)  # in JSON, `<` has 6 bytes, and `é` two
    of_limit = "x" * (3145728 - 2 - len(text[1:].encode()) - 6)
    assert apply_operations({"a": text + of_limit}, [{"op": "copy", "from": "/a", "path": "/b"}])["b"]
    with pytest.raises(PatchError, match="copy is 3145729, exceeding the limit 3145728"):
        apply_operations({"a": text + of_limit + "x"}, [{"op": "copy", "from": "/a", "path": "/b"}])
    assert apply_operations({"a": []}, [double]) == {"a": [[]]}


@pytest.mark.parametrize(
    "document, operation",
    [
        ({"a": {}}, {"op": "copy", "from": "/a", "path": "/a/x"}),
        ({"a": {}, "b": {}}, {"op": "move", "from": "/a", "path": "/b/x"}),
    ],
)
def test_no_patch_nests_deeper_than_objects_are_read(document: JSON, operation: JSON) -> None:
    within = [operation] * 190
    if operation["op"] == "move":  # each time the object moves into a new object
        within = [each for _ in range(190) for each in (operation, {"op": "move", "from": "/b", "path": "/a"}, NEW_MAP)]
    assert apply_operations(document, within)
    with pytest.raises(PatchError, match="nested deeper than 200 levels"):
        apply_operations(document, within * 2)


@pytest.mark.parametrize("operation", ["add", "replace"])
def test_no_value_nests_deeper_than_objects_are_read(operation: str) -> None:
    value: JSON = {}
    for _ in range(198):
        value = {"x": value}
    path = {"op": operation, "path": "/a"}
    assert apply_operations({"a": 1}, [{**path, "value": value}])
    with pytest.raises(PatchError, match="nested deeper than 200 levels"):
        apply_operations({"a": 1}, [{**path, "value": {"x": {"x": value}}}])
