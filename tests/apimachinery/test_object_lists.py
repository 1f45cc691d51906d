"""Lists as kubectl prints them, and typed lists such as PodList."""

import pytest

from webhook.apimachinery.object_lists import objects_of_list

POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(POD, [((), POD)], id="an object is itself"),
        pytest.param({"kind": "List", "items": [POD]}, [(("items", 0), POD)], id="a List"),
        pytest.param({"apiVersion": "v1", "kind": "PodList", "items": [{}]}, [(("items", 0), POD)], id="a typed list"),
        pytest.param(
            {"kind": "List", "items": [{"kind": "List", "items": [POD]}]},
            [(("items", 0, "items", 0), POD)],
            id="a list in a list",
        ),
        pytest.param({"kind": "List", "items": None}, [], id="items may be null"),
        pytest.param({"kind": "ConfigMap", "items": [POD]}, [(("items", 0), POD)], id="a List of another name"),
        pytest.param({**POD, "items": [{}]}, [(("items", 0), POD)], id="items of the kind of their list"),
        pytest.param({**POD, "items": []}, [((), {**POD, "items": []})], id="another kind without items"),
        pytest.param({"kind": "AllowList"}, [((), {"kind": "AllowList"})], id="a kind that only ends in List"),
        pytest.param({"kind": "List", "items": [1]}, [(("items", 0), 1)], id="an item that is not an object"),
        pytest.param(
            {**POD, "items": [1]}, [((), {**POD, "items": [1]})], id="another kind with items that are not objects"
        ),
        pytest.param(None, [((), None)], id="null"),
    ],
)
def test_a_list_is_split_into_its_items(value, expected):
    assert list(objects_of_list(value)) == expected
